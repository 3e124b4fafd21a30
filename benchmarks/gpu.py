"""Packs and Hessian-vector products on a GPU, against what a user would write there.

    python -m benchmarks.gpu        on a machine with a GPU, about 5 minutes; elsewhere it says so

An epoch of a pack, its validation included, is held against the training steps alone of two peers
on the same device and data: `torch.func.vmap(grad)` over stacked weights with one fused Adam (one
rate, one order of items and one dropout seed for all), and a plain loop with fused Adam, run by
run, measured for one run and multiplied. A product of the Hessian is held against forward over
reverse mode by `torch.func`. No GPU was at hand when this was written: all rows are blank until
somebody has run it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from time import perf_counter

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, stack_module_state, vmap

from benchmarks.packed_peer import Case, items_of
from benchmarks.row import Row, main
from callbacks.hessian.hessian_product import HessianProduct
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.networks import MLPHead, ResNet18
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier

RATE, EPOCHS, PRODUCTS = 1e-3, 3, 5
PEERS = ("torch.func.vmap, fused Adam, one rate", "a plain loop, fused Adam, run by run")
HVP = "torch.func.jvp of grad"


@dataclass(frozen=True)
class Pack:
    """A network, its data, and how many are trained."""

    case: Case
    members: int


HEADS = Pack(Case("MLP heads", MLPHead, (384,), 3, 32, (RATE,), items=20_000), 36)
RESNETS = Pack(Case("ResNet-18", ResNet18, (3, 32, 32), 10, 128, (RATE,), items=10_000), 5)


def rows() -> Iterator[Row]:
    """Each pack against its peers, and a Hessian-vector product; blank without a GPU."""
    if not torch.cuda.is_available():
        print("there is no GPU here, so nothing is measured")
        seconds: dict[str, list[float]] = {}
    else:
        print(f"on {torch.cuda.get_device_name()}")
        device = torch.device("cuda", 0)
        seconds = {pack.case.name: of_pack(pack, device) for pack in (HEADS, RESNETS)}
        seconds["Hessian"] = of_hessian(RESNETS.case, device)
    blank = [math.nan] * 3
    for pack in (HEADS, RESNETS):
        ours, *theirs = seconds.get(pack.case.name, blank)
        what = f"GPU: an epoch of {pack.members} {pack.case.name}, batch {pack.case.batch_size}"
        for peer, its in zip(PEERS, theirs, strict=True):
            yield Row(what, peer, ours, its, None)
    ours, theirs = seconds.get("Hessian", blank[:2])
    yield Row("GPU: a Hessian-vector product, ResNet-18", HVP, ours, theirs, None)


def of_pack(pack: Pack, device: torch.device) -> list[float]:
    """Seconds of an epoch of all members: ours, mapped, and run by run."""
    data = items_of(pack.case, 0)
    classifiers = [
        AnnotatorClassifier(
            pack.case.input_shape,
            pack.case.num_classes,
            pack.case.network,  # pyright: ignore[reportArgumentType]
            partial(torch.optim.Adam, lr=RATE),
            seed=seed,
        )
        for seed in range(pack.members)
    ]
    members = [Member(one, data, data.bound, EPOCHS + 1) for one in classifiers]
    ends: list[float] = []

    def note(trained: PackedClassifier) -> None:
        ends.append(now(device))

    PackedClassifier(members, device).fit(note)
    ours = min(after - before for before, after in pairwise(ends))
    assert data.corpus is not None
    inputs, targets = data.corpus.inputs, data.annotator_probs
    assert isinstance(inputs, Tensor)
    inputs, targets = (part[: pack.case.items].to(device) for part in (inputs, targets))
    networks = [one.network.to(device).train() for one in classifiers]
    size = pack.case.batch_size
    mapped = best_epoch(mapped_step(networks), inputs, targets, size, device)
    alone = best_epoch(plain_step(networks[0]), inputs, targets, size, device)
    return [ours, mapped, alone * pack.members]


def mapped_step(networks: Sequence[nn.Module]) -> Callable[[Tensor, Tensor], None]:
    """A training step of all networks by vmap."""
    weights, buffers = stack_module_state(list(networks))
    optimizer = torch.optim.Adam(weights.values(), lr=RATE, fused=True)

    def loss(weights, buffers, inputs: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(functional_call(networks[0], (weights, buffers), inputs), targets)

    gradients = vmap(grad(loss), (0, 0, None, None), randomness="same")

    def step(inputs: Tensor, targets: Tensor) -> None:
        detached = {name: weight.detach() for name, weight in weights.items()}
        for name, gradient in gradients(detached, buffers, inputs, targets).items():
            weights[name].grad = gradient
        optimizer.step()

    return step


def plain_step(network: nn.Module) -> Callable[[Tensor, Tensor], None]:
    """A training step of one network."""
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE, fused=True)

    def step(inputs: Tensor, targets: Tensor) -> None:
        optimizer.zero_grad()
        F.cross_entropy(network(inputs), targets).backward()
        optimizer.step()

    return step


def best_epoch(
    step: Callable[[Tensor, Tensor], None],
    inputs: Tensor,
    targets: Tensor,
    batch_size: int,
    device: torch.device,
) -> float:
    """Seconds of the fastest epoch after one that warms up."""
    seconds = []
    for _ in range(1 + EPOCHS):
        start = now(device)
        for index in torch.randperm(len(inputs), device=device).split(batch_size):
            step(inputs[index], targets[index])
        seconds.append(now(device) - start)
    return min(seconds[1:])


def of_hessian(case: Case, device: torch.device) -> list[float]:
    """Seconds of a product over one batch of a network: ours, and by torch.func."""
    network = case.network(case.input_shape, case.num_classes).to(device).eval()
    inputs = torch.randn(case.batch_size, *case.input_shape, device=device)
    targets = torch.rand(case.batch_size, case.num_classes, device=device).softmax(-1)
    product = HessianProduct(network, lambda: iter([(inputs, targets)]))
    direction = torch.ones(product.size, device=device)
    weights = {name: weight.detach() for name, weight in network.named_parameters()}
    sizes = [weight.numel() for weight in weights.values()]
    tangent = {
        name: part.view_as(weight)
        for (name, weight), part in zip(weights.items(), direction.split(sizes), strict=True)
    }

    def loss(weights: dict[str, Tensor]) -> Tensor:
        return F.cross_entropy(functional_call(network, weights, (inputs,)), targets)

    sides = (lambda: product(direction), lambda: jvp(grad(loss), (weights,), (tangent,)))
    return [fastest(side, device) for side in sides]


def fastest(work: Callable[[], object], device: torch.device) -> float:
    """Seconds of the fastest of several calls after one that warms up."""
    seconds = []
    for _ in range(1 + PRODUCTS):
        start = now(device)
        work()
        seconds.append(now(device) - start)
    return min(seconds[1:])


def now(device: torch.device) -> float:
    """The time when the device has done all that it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter()


if __name__ == "__main__":
    main(rows)
