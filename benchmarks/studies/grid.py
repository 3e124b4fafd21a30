"""An exhaustive grid of MLP heads, packed as `study run` packs it, against stock Lightning running
it run by run.

The grid is that of "Soft-Label Training Preserves Epistemic Uncertainty": learning rate {1e-3,
1e-4, 1e-5} x batch {8, 16, 32} x epochs {10, 15, 20} x weight decay {0, 1e-4} x scheduler {none,
plateau}, for soft labels and majority votes, on items of the three datasets' numbers and sizes: 648
trainings. Packed, the members of one dataset and batch size are two packs of twelve in two
processes, and the three numbers of epochs are read off one run of 20. Run by run each is trained
for its own: 45 epochs instead of 20 for the same three results.

Both sides are samples of synthetic items, as in packed.py: epochs after a first that warms up, the
fastest counts, one thread or two for the peer, whichever is faster. They are extrapolated to all
epochs of the grid, none stopped early. Ours includes the start of every process; neither includes
the writing of results. What the real study takes from start to end is in configs/studies.

    python -m benchmarks.studies.grid        about 3 minutes on two idle cores, 1 GB

A number after it leaves out all but as many of the nine cases.
"""

import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmarks.measure import best_of, verdict, with_idle_threads_asleep
from benchmarks.packed import CORES, THREADS, run_packs_side_by_side, silence
from benchmarks.packed_peer import Case, run_stock
from datamodules.votes.delivery import MajorityVote, SoftLabels
from lightning_modules.networks import MLPHead

LENGTHS = (10, 15, 20)
MINUTES, TIMES = 8, 10  # what the packed grid must keep to, and how many times faster it must be
# inputs, classes, training items
DATASETS = {
    "ChaosNLI": (384, 3, 2_200),
    "POPQUORN": (384, 5, 2_600),
    "CIFAR-10H-Hard": (1_280, 10, 770),
}


@dataclass(frozen=True)
class GridCase(Case):
    """One dataset and batch size of the grid."""

    def options(self) -> list[tuple[Any, float, float]]:
        """Each twice, for the two schedulers: what a schedule does to the learning rate costs
        nothing.
        """
        return list(product((SoftLabels(), MajorityVote()), self.rates, (0.0, 1e-4))) * 2


CASES = [
    GridCase(
        f"{name}, batch {batch}",
        MLPHead,
        (inputs,),
        classes,
        batch,
        (1e-3, 1e-4, 1e-5),
        TIMES,
        items,
        seeds=(0,),
    )
    for name, (inputs, classes, items) in DATASETS.items()
    for batch in (8, 16, 32)
]


def in_minutes(seconds: float) -> str:
    """Seconds as minutes to read."""
    return f"{seconds / 60:.1f} min"


def measure(number: int) -> None:
    """Print every case, and the whole grid's time in both ways."""
    silence()
    start = best_of(
        2,
        lambda repeat: subprocess.run(
            [sys.executable, "-c", "import studies.launch.pack_job"], check=True
        ),
    )
    print(f"start of a process: {start:.1f} s")
    packed = stock = 0.0
    for case in CASES[:number]:
        peer = min((run_stock(case, threads) for threads in THREADS), key=lambda side: side.seconds)
        ours = run_packs_side_by_side(case)
        run_by_run, together = peer.seconds * sum(LENGTHS), ours.seconds * max(LENGTHS) + start
        packed, stock = packed + together, stock + run_by_run
        print(
            f"{case.name:26s}{case.members * len(LENGTHS)} trainings: run by run "
            f"{in_minutes(run_by_run)} ({1e3 * peer.seconds / case.members / case.steps:.2f} ms "
            f"a step with {peer.threads} thread(s)), packed {in_minutes(together)} "
            f"({1e3 * ours.seconds / case.steps:.2f} ms a step of all), "
            f"{run_by_run / together:.1f}x",
            flush=True,
        )
    trainings = sum(case.members * len(LENGTHS) for case in CASES[:number])
    print(
        f"\n{trainings} trainings would take {in_minutes(stock)} run by run in stock Lightning, "
        f"extrapolated from 2 x {len(CASES[:number])} of them."
    )
    print(
        f"packed on {CORES} cores: {in_minutes(packed)} (target {MINUTES} min): "
        f"{verdict(packed < 60 * MINUTES)}"
    )
    print(
        f"packed against run by run: {stock / packed:.1f}x (target {TIMES}x): "
        f"{verdict(stock >= TIMES * packed)}"
    )


if __name__ == "__main__":
    with_idle_threads_asleep(measure, int(sys.argv[1]) if len(sys.argv) > 1 else len(CASES))
