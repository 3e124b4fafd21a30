"""Many members trained as one by PackedClassifier, against what a user would pick instead, with one
process, one core and one thread on every side.

Measured are an epoch's training steps with all that makes their batches and targets, without
validation on any side. The peers:

- stock Lightning: `Trainer.fit` of a bare LightningModule over DataLoader(TensorDataset,
  shuffle=True), without logger, checkpoints or progress bar. One member is measured and multiplied
  by their number.
- a plain PyTorch loop with fused Adam; the batches of an epoch are gathered at once. One member as
  well, multiplied.
- `torch.func.vmap` over stacked weights with one fused Adam, one learning rate for all and no
  weight decay, which is less than the others do.
- vmap that does the same as a pack: rate, weight decay and delivery of each member, inputs and
  dropout of each seed. Eager it has fused Adam with a group of views for each pair of rate and
  decay; mapped over 4, 6 or 12 members at a time, which is what helps a pack, it was slower (1.1 to
  2 times). Compiled it is gradients and an Adam written by hand in one function; the time of
  compiling does not count.

All sides take turns, one epoch each, in several rounds after one that warms up, and of each the
fastest epoch counts: by the CPU time of this process, because a core may be shared; the ratio by
the clock is noted beside it. The members are the same: from the same weights, the first epoch's
losses of the pack, of vmap and of the plain loop must agree, but for the draws of dropout in the
loop and the order of items in stock Lightning.

    python -m benchmarks packed        about 3 minutes, 2 GB
"""

import logging
import math
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.packed_peer import RATE, Case, Epoch, plain_loop, stock, timed
from benchmarks.packed_vmap import Mapped, compiled, eager, one_rate
from benchmarks.row import Row, main, times
from lightning_modules.networks import LeNet, MLPHead
from lightning_modules.packed.packed_classifier import PackedClassifier

ROUNDS, PER_FIT = 4, 2
STOCK, PLAIN = "stock Lightning, run by run", "a plain loop with fused Adam, run by run"
ONE_RATE, EAGER = "vmap, fused Adam of one rate for all", "vmap that does the same, eager"
COMPILED = "vmap that does the same, compiled"
# how far a peer's mean loss of the first epoch may be from the pack's
AGREEMENT = {STOCK: 0.1, PLAIN: 0.03, EAGER: 1e-3, COMPILED: 1e-3}


class Comparison(NamedTuple):
    """A case, and the least ratios that are wanted."""

    case: Case
    limits: dict[str, float]


def heads(batch_size: int, items: int) -> Case:
    name = f"36 MLP heads, 384 inputs, batch {batch_size}"
    return Case(name, MLPHead, (384,), 3, batch_size, (RATE, 3e-4, 3e-3), items)


LENETS = Case("24 LeNets, 28 x 28, batch 64", LeNet, (1, 28, 28), 10, 64, (RATE, 3e-3), 960)
COMPARISONS = [
    Comparison(heads(8, 1_000), {STOCK: 10, EAGER: 1.6, COMPILED: 1.6}),
    Comparison(heads(32, 1_984), {STOCK: 7, EAGER: 1.5, COMPILED: 1.5}),
    Comparison(LENETS, {STOCK: 4, PLAIN: 2}),
]


def pack_epochs(case: Case) -> Iterator[Epoch]:
    """Epochs of all members as one pack, without validation."""
    pack = PackedClassifier(case.members())

    def train() -> Tensor:
        return pack.train_epoch().clone()

    while True:
        yield timed(train)
        pack.epoch += 1


def stock_epochs(case: Case) -> Iterator[Epoch]:
    """Epochs of the first member, always from its start: a Trainer's first epoch warms it up."""
    while True:
        first, *rest = stock(case.members()[0], case.batch_size, PER_FIT)
        fastest = min(rest, key=lambda epoch: epoch.cpu)
        yield fastest._replace(losses=first.losses)


def mapped_epochs(case: Case, way: Callable[[Mapped], Callable[..., Tensor]]) -> Iterator[Epoch]:
    mapped = Mapped(case.members(), case.batch_size)
    return mapped.epochs(way(mapped))


def measure(case: Case) -> dict[str, tuple[float, float]]:
    """CPU seconds and seconds by the clock of an epoch of all members, of each side."""
    sides = {
        "ours": pack_epochs(case),
        STOCK: stock_epochs(case),
        PLAIN: plain_loop(case.members()[0], case.batch_size),
        ONE_RATE: mapped_epochs(case, one_rate),
        EAGER: mapped_epochs(case, eager),
        COMPILED: mapped_epochs(case, compiled),
    }
    first = {name: next(side) for name, side in sides.items()}
    for name, most in AGREEMENT.items():
        check_losses(f"{case.name}, {name}", first["ours"].losses, first[name].losses, most)
    members = len(first["ours"].losses)
    best = dict.fromkeys(sides, (math.inf, math.inf))
    for _ in range(ROUNDS):
        for name, side in sides.items():
            epoch = next(side)
            scale = members / len(epoch.losses)
            taken = epoch.cpu * scale, epoch.wall * scale
            best[name] = min(best[name][0], taken[0]), min(best[name][1], taken[1])
    return best


def check_losses(what: str, ours: Tensor, theirs: Tensor, most: float) -> None:
    """That they are of the same work, as far as a peer has these members."""
    apart = ((theirs - ours[: len(theirs)]).abs() / theirs).max().item()
    print(f"{what}: losses of the first epoch {apart:.2g} apart")
    assert apart <= most, f"{what}: the losses are further apart than {most}."


def rows() -> Iterator[Row]:
    """An epoch of all members of each case."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    for case, limits in COMPARISONS:
        best = measure(case)
        ours = best.pop("ours")
        for peer, theirs in best.items():
            note = f"CPU time; {times(theirs[1] / ours[1])} by the clock"
            yield Row(case.name, peer, ours[0], theirs[0], limits.get(peer), note)


if __name__ == "__main__":
    main(rows)
