"""Many networks of any one architecture as one, by `torch.func`: their weights and buffers are
stacked, and one network is mapped over them.

It serves networks that have no layers of their own in `packed_network`, and all networks on a GPU,
where a mapped matmul is a batched one and a mapped convolution a grouped one of cuDNN. What is
stacked is all that training changes: BatchNorm's running statistics are written in place.
"""

from collections.abc import Sequence
from copy import copy, deepcopy

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lightning_modules.packed.drawn_dropout import DrawnDropout
from lightning_modules.packed.layers.stacked_linear import Span


class VmappedNetwork:
    """M networks of one architecture, built from M ordinary ones and taken apart into ordinary
    state dicts again.

    >>> members = [nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)) for _ in range(2)]
    >>> packed, inputs = VmappedNetwork(members), torch.ones(5, 4)
    >>> torch.allclose(packed([inputs], [Span(0, 2)])[1], members[1].eval()(inputs), atol=1e-6)
    True
    """

    convolutional = True  # it may be, so that few items are evaluated at a time

    def __init__(self, members: Sequence[nn.Module], device: torch.device | str = "cpu"):
        first = members[0]
        names = _name_of_each_tensor(first)
        tensors = [dict(_own_tensors(member)) for member in members]
        stacked = {
            name: torch.stack([of_member[name].detach().to(device) for of_member in tensors])
            for name in dict.fromkeys(names.values())
        }
        trained = {name for name, value in tensors[0].items() if value.requires_grad}
        self.trained = {
            name: _with_buffer(value) for name, value in stacked.items() if name in trained
        }
        self.fixed = {name: value for name, value in stacked.items() if name not in trained}
        # of tensors with several names, a name for each place where a module looks for it
        self._places = {
            place: names[id(tensor)] for place, tensor in _own_tensors(first, distinct=False)
        }
        self._saved = {
            name: names[id(tensor)] for name, tensor in first.state_dict(keep_vars=True).items()
        }
        self._template = deepcopy(first).to("meta")

    def __call__(
        self,
        inputs: Sequence[Tensor],
        spans: Sequence[Span],
        dropout_seeds: Sequence[int] | None = None,
    ) -> Tensor:
        """Logits [M, B, K] from the inputs of each span, [B, ...]; in training, `dropout_seeds` has
        one seed for each span.
        """
        one = len(spans) == 1
        seen = (
            inputs[0]
            if one
            else torch.cat(
                [
                    own.expand(span.stop - span.start, *own.shape)
                    for span, own in zip(spans, inputs, strict=True)
                ]
            )
        )
        mapped = vmap(self._of_one_member, (0, 0, None if one else 0), randomness="error")
        if dropout_seeds is None:
            self._template.eval()
            return mapped(self.trained, self.fixed, seen)
        self._template.train()
        with DrawnDropout(spans, dropout_seeds):
            return mapped(self.trained, self.fixed, seen)

    def _of_one_member(
        self, trained: dict[str, Tensor], fixed: dict[str, Tensor], inputs: Tensor
    ) -> Tensor:
        own = {**trained, **fixed}
        state = {place: own[name] for place, name in self._places.items()}
        return functional_call(self._template, state, (inputs,), tie_weights=False)

    def differentiate(
        self,
        inputs: Sequence[Tensor],
        targets: Tensor,
        spans: Sequence[Span],
        seeds: Sequence[int],
    ) -> Tensor:
        """Each member's loss against its targets [M, B, K]; the gradients go to the buffers."""
        losses = -(targets * self(inputs, spans, seeds).log_softmax(-1)).sum(-1).mean(-1)
        # a member's loss depends on its own weights alone, so the gradients do not mix
        gradients = torch.autograd.grad(losses.sum(), list(self.trained.values()))
        for weight, gradient in zip(self.trained.values(), gradients, strict=True):
            assert weight.grad is not None
            weight.grad.copy_(gradient)
        return losses.detach()

    def part(self, span: Span) -> "VmappedNetwork":
        """Some members alone, in the same memory."""
        view = copy(self)
        view.trained, view.fixed = (
            {name: value.detach()[slice(*span)] for name, value in tensors.items()}
            for tensors in (self.trained, self.fixed)
        )
        return view

    def keep(self, members: Tensor) -> None:
        """Go on with these members alone."""
        self.trained = {
            name: _with_buffer(value.detach()[members]) for name, value in self.trained.items()
        }
        self.fixed = {name: value[members] for name, value in self.fixed.items()}

    def tensors(self) -> dict[str, Tensor]:
        """The stacked weights that are trained, by the names that they have in an ordinary
        network.
        """
        return self.trained

    def buffers(self) -> dict[str, Tensor]:
        """What else an ordinary network's state dict has, stacked: running statistics, frozen
        weights, and second names of trained ones.
        """
        own = {**self.trained, **self.fixed}
        return {
            name: own[first].detach()
            for name, first in self._saved.items()
            if name not in self.trained
        }


def _own_tensors(network: nn.Module, distinct: bool = True) -> list[tuple[str, Tensor]]:
    """Parameters and buffers with their names; each once, or once for each place that it has."""
    places: list[tuple[str, Tensor]] = []
    for prefix, module in network.named_modules():
        for kind in (module.named_parameters, module.named_buffers):
            places += kind(prefix, recurse=False, remove_duplicate=False)
    if not distinct:
        return places
    seen: set[int] = set()
    return [(name, t) for name, t in places if not (id(t) in seen or seen.add(id(t)))]


def _name_of_each_tensor(network: nn.Module) -> dict[int, str]:
    return {id(tensor): name for name, tensor in _own_tensors(network)}


def _with_buffer(tensor: Tensor) -> Tensor:
    tensor = tensor.contiguous().requires_grad_()
    tensor.grad = torch.zeros_like(tensor)
    return tensor
