"""The trainings of the study of human uncertainty as `study run` does them, against stock Lightning
running them run by run.

The study is that of "An Assessment of Human vs. Model Uncertainty": 3 networks x 4 kinds of labels
x 6 seeds x 2 sources x 2 regimes, 288 trainings of 28 x 28 images in batches of 64. Of each network
and source, the 24 members of a regime are two packs in two processes; `study run` packs both
regimes together, so that eight members share what they see, not four. One regime trains at most 60
epochs, the other 40.

Both sides are samples of synthetic items, as in packed.py: epochs after a first that warms up, the
fastest counts, one thread or two for the peer, whichever is faster. They are extrapolated to all
epochs, none stopped early; neither includes tests, predictions and the writing of results. What the
real study takes from start to end is in configs/studies/human_uncertainty.yaml.

    python -m benchmarks.studies.human_uncertainty        about 3 minutes on two idle cores, 1 GB
"""

from dataclasses import dataclass
from typing import Any

from benchmarks.measure import verdict, with_idle_threads_asleep
from benchmarks.packed import CORES, THREADS, run_packs_side_by_side, silence
from benchmarks.packed_peer import RATE, Case, run_stock
from benchmarks.studies.grid import in_minutes
from datamodules.votes.delivery import SoftLabels
from lightning_modules.networks import DeeperFFN, LeNet, SimpleFFN

EPOCHS = {"with early stopping, at most": 60, "for the dynamics": 40}
MINUTES = 15
SOURCES = {"MNIST": 2_131, "ambiguous digits": 1_738}  # training items


@dataclass(frozen=True)
class StudyCase(Case):
    """One network and source of the study."""

    def options(self) -> list[tuple[Any, float, float]]:
        """Four kinds of labels cost the same."""
        return [(SoftLabels(), RATE, 0.0)] * 4


CASES = [
    StudyCase(
        f"{network.__name__}, {source}",
        network,
        (1, 28, 28),
        11,
        64,
        (RATE,),
        1,
        items,
        seeds=tuple(range(6)),
    )
    for network in (SimpleFFN, DeeperFFN, LeNet)
    for source, items in SOURCES.items()
]


def measure() -> None:
    """Print every case, and the whole study's time in both ways."""
    silence()
    ours = stock = 0.0
    for case in CASES:
        peer = min((run_stock(case, threads) for threads in THREADS), key=lambda side: side.seconds)
        mine = run_packs_side_by_side(case)
        run_by_run, together = (side.seconds * sum(EPOCHS.values()) for side in (peer, mine))
        ours, stock = ours + together, stock + run_by_run
        trainings = case.members * len(EPOCHS)
        print(
            f"{case.name:28s}{trainings} trainings: run by run {in_minutes(run_by_run)} "
            f"({1e3 * peer.seconds / case.members / case.steps:.2f} ms a step with "
            f"{peer.threads} thread(s)), ours {in_minutes(together)}, {run_by_run / together:.1f}x",
            flush=True,
        )
    trainings = sum(case.members * len(EPOCHS) for case in CASES)
    print(
        f"\n{trainings} trainings would take {in_minutes(stock)} run by run in stock Lightning, "
        f"extrapolated from 2 x {len(CASES)} of them."
    )
    print(
        f"ours on {CORES} cores: {in_minutes(ours)} (target {MINUTES} min): "
        f"{verdict(ours < 60 * MINUTES)}"
    )
    print(f"ratio: {stock / ours:.1f}x")


if __name__ == "__main__":
    with_idle_threads_asleep(measure)
