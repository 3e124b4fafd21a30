"""How benchmarks/packed.py's members are trained by `torch.func.vmap` over stacked weights."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import groupby
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value, stack_module_state, vmap

from benchmarks.packed_peer import RATE, Epoch, epoch_inputs, timed
from core.randomness import generator
from lightning_modules.packed.pack_member import Member

Stack = dict[str, Tensor]


class Masked(nn.Module):
    """Dropout by a mask that is given as a buffer, so that each member can have its own."""

    mask: Tensor

    def __init__(self, chance: float):
        super().__init__()
        self.chance = chance
        self.register_buffer("mask", torch.ones(1))

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden * self.mask


def options(member: Member) -> tuple[float, float]:
    return member.rate, member.optimizer.param_groups[0]["weight_decay"]


class Mapped:
    """All members as one, each with its seed's inputs and dropout, its delivery, its rate and its
    weight decay. Those of equal rate and decay are neighbours, so that one fused Adam has a group
    of views for each of these.
    """

    def __init__(self, members: Sequence[Member], batch_size: int):
        self.places = sorted(range(len(members)), key=lambda m: options(members[m]))
        self.members, self.batch_size = [members[m] for m in self.places], batch_size
        own = [member.classifier.seed for member in self.members]
        self.data = {member.classifier.seed: member.data for member in members}
        self.loaders = {seed: data.train_dataloader() for seed, data in self.data.items()}
        self.rows = torch.tensor([list(self.data).index(seed) for seed in own])
        networks = [with_masks(member.classifier.network) for member in self.members]
        self.template = deepcopy(networks[0]).to("meta")
        weights, _ = stack_module_state(networks)
        self.weights = {name: weight.detach() for name, weight in weights.items()}
        self.dropouts = {
            f"{name}.mask": (module.chance, before)
            for (name, module), before in zip(
                networks[0].named_modules(), widths(networks[0]), strict=True
            )
            if isinstance(module, Masked)
        }
        self.step = 0

    def loss(self, weights: Stack, masks: Stack, inputs: Tensor, targets: Tensor) -> Tensor:
        """Of one member."""
        logits = functional_call(self.template, (weights, masks), (inputs,))
        return F.cross_entropy(logits, targets)

    def masks(self, items: int) -> Stack:
        """Of a step, [M, items, width], drawn as each member alone would draw them."""
        if not self.dropouts:
            return {}
        drawn = []
        for seed in self.data:
            draw = torch.Generator().manual_seed(
                int(generator(seed, "dropout", self.step, 0).integers(2**63))
            )
            drawn.append(
                [
                    torch.empty(items, width).bernoulli_(1 - chance, generator=draw) / (1 - chance)
                    for chance, width in self.dropouts.values()
                ]
            )
        stacked = (torch.stack(masks)[self.rows] for masks in zip(*drawn, strict=True))
        return dict(zip(self.dropouts, stacked, strict=True))

    def epochs(self, update: Callable[[Stack, Tensor, Tensor], Tensor]) -> Iterator[Epoch]:
        """One after the other; `update(masks, inputs, targets)` makes a step of all members and
        gives their losses.
        """
        epoch = 0
        while True:
            yield timed(partial(self.train, epoch, update))
            epoch += 1

    def train(self, epoch: int, update: Callable[[Stack, Tensor, Tensor], Tensor]) -> Tensor:
        seen = {s: epoch_inputs(self.data[s], self.loaders[s], epoch) for s in self.data}
        inputs = torch.stack([own for own, _ in seen.values()])
        targets = torch.stack(
            [
                distributions(member, epoch)[seen[member.classifier.seed][1]]
                for member in self.members
            ]
        )
        losses = []
        for some, wanted in zip(
            inputs.split(self.batch_size, 1), targets.split(self.batch_size, 1), strict=True
        ):
            losses.append(update(self.masks(some.shape[1]), some[self.rows], wanted))
            self.step += 1
        of_members = torch.stack(losses).double().mean(0)
        return of_members[torch.tensor(self.places).argsort()]


def distributions(member: Member, epoch: int) -> Tensor:
    targets: Any = member.bound.targets(epoch)
    if targets.is_floating_point():
        return targets
    return F.one_hot(targets, member.data.num_classes).float()


def with_masks(network: nn.Module) -> nn.Module:
    network = deepcopy(network).train()
    for name, module in list(network.named_modules()):
        if isinstance(module, nn.Dropout):
            parent, _, own = name.rpartition(".")
            setattr(network.get_submodule(parent), own, Masked(module.p))
    return network


def widths(network: nn.Module) -> Iterator[int]:
    """Of each module, how wide the last linear layer before it is."""
    width = 0
    for module in network.modules():
        width = module.out_features if isinstance(module, nn.Linear) else width
        yield width


def eager(mapped: Mapped) -> Callable[[Stack, Tensor, Tensor], Tensor]:
    """Gradients by vmap, and fused Adam with a group for each rate and weight decay."""
    views: list[tuple[nn.Parameter, str, slice]] = []
    groups, start = [], 0
    for (rate, decay), equal in groupby(mapped.members, options):
        part = slice(start, start := start + len(list(equal)))
        own = [nn.Parameter(weight[part]) for weight in mapped.weights.values()]
        views += [(view, name, part) for view, name in zip(own, mapped.weights, strict=True)]
        groups.append({"params": own, "lr": rate, "weight_decay": decay})
    optimizer = torch.optim.Adam(groups, fused=True)
    gradients = vmap(grad_and_value(mapped.loss))

    def update(masks: Stack, inputs: Tensor, targets: Tensor) -> Tensor:
        found, losses = gradients(mapped.weights, masks, inputs, targets)
        for view, name, part in views:
            view.grad = found[name][part]
        optimizer.step()
        return losses

    return update


def compiled(mapped: Mapped) -> Callable[[Stack, Tensor, Tensor], Tensor]:
    """Gradients and an Adam written by hand, with a rate for each member, compiled as one."""
    names, weights = list(mapped.weights), list(mapped.weights.values())
    one, two = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    rates, decays = torch.tensor([options(member) for member in mapped.members]).unbind(1)
    gradients = vmap(grad_and_value(mapped.loss))
    count = torch.zeros(())

    @torch.compile(dynamic=False)
    def update(weights, one, two, count, masks: Stack, inputs: Tensor, targets: Tensor) -> Tensor:
        named = dict(zip(names, weights, strict=True))
        found, losses = gradients(named, masks, inputs, targets)
        count += 1
        first, second = 1 - 0.9**count, (1 - 0.999**count).sqrt()
        for name, weight, m, v in zip(names, weights, one, two, strict=True):
            each = (-1, *[1] * (weight.ndim - 1))
            gradient = found[name] + decays.view(each) * weight
            m.lerp_(gradient, 0.1)
            v.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            weight -= rates.view(each) / first * m / (v.sqrt() / second + 1e-8)
        return losses

    return partial(update, weights, one, two, count)


def one_rate(mapped: Mapped) -> Callable[[Stack, Tensor, Tensor], Tensor]:
    """Gradients by vmap, and one fused Adam of one rate over the stacked weights."""
    stacked = [nn.Parameter(weight) for weight in mapped.weights.values()]
    optimizer = torch.optim.Adam(stacked, lr=RATE, fused=True)
    gradients = vmap(grad_and_value(mapped.loss))

    def update(masks: Stack, inputs: Tensor, targets: Tensor) -> Tensor:
        found, losses = gradients(mapped.weights, masks, inputs, targets)
        for weight, gradient in zip(stacked, found.values(), strict=True):
            weight.grad = gradient
        optimizer.step()
        return losses

    return update
