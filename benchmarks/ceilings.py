"""Floors and ceilings of every score from votes, against the loop that one would write at first:
item by item, distributions drawn from a flat Dirichlet given the votes, and scored.

Votes are drawn from known distributions (correlated normal logits, which are no mixture of
Dirichlets), so that it is also known how far each side's ceiling is off. The loop scores four means
alone and knows no interval; it draws each item's distribution ten times.
Times are seconds of one core.

    OMP_NUM_THREADS=1 python -m benchmarks.ceilings        about a minute

Targets: 10,000 x 10 in under 2 s and 1,000,000 x 10 in under 90 s on one core, in memory that grows
no faster than the number of items; ceilings within 5 % of (floor - ceiling).
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from time import process_time

import numpy as np
import torch

from benchmarks.data.scale import Watch
from benchmarks.measure import SPAWN, linux_counts_memory
from benchmarks.row import Row, main
from metrics import every_score
from metrics.worth import score_bounds

CLASSES, VOTES, DRAWS = 10, 50, 10
MEANS = ("soft_nll", "kl", "soft_brier", "accuracy")


def known_votes(items: int) -> tuple[np.ndarray, np.ndarray]:
    """Distributions [N, K] and votes drawn from them."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(items, CLASSES)) @ rng.normal(0, 0.8, (CLASSES, CLASSES))
    chances = np.exp(logits - logits.max(1, keepdims=True))
    truth = chances / chances.sum(1, keepdims=True)
    return truth, rng.multinomial(VOTES, truth)


def loop_over_items(counts: np.ndarray) -> dict[str, float]:
    """The mean of each score of distributions drawn item by item, given its votes."""
    rng = np.random.default_rng(0)
    sums = dict.fromkeys(MEANS, 0.0)
    for row in counts:
        votes = row / row.sum()
        entropy = -(votes[votes > 0] * np.log(votes[votes > 0])).sum()
        for _ in range(DRAWS):
            probs = rng.dirichlet(row + 1)
            nll = -(votes * np.log(probs)).sum()
            sums["soft_nll"] += nll
            sums["kl"] += nll - entropy
            sums["soft_brier"] += ((probs - votes) ** 2).sum()
            sums["accuracy"] += probs.argmax() == votes.argmax()
    return {name: total / len(counts) / DRAWS for name, total in sums.items()}


def watched(items: int) -> tuple[float, float]:
    """Seconds of a core, and the peak of memory in MB beside the votes, in a fresh process."""
    torch.set_num_threads(1)
    _, counts = known_votes(items)
    score_bounds(counts[:100], counts[:100])  # imports
    watch = Watch(lambda: score_bounds(counts, counts))
    return watch.busy, watch.megabytes


def core_seconds(repeats: int, work: Callable[[], object]) -> float:
    """Seconds of a core that the cheapest of several calls takes."""
    spent = []
    for _ in range(repeats):
        start = process_time()
        work()
        spent.append(process_time() - start)
    return min(spent)


def rows() -> Iterator[Row]:
    """Time, memory and error."""
    truth, counts = known_votes(10_000)
    shape = "bounds of 10,000 x 10, every score"
    seconds = core_seconds(3, lambda: score_bounds(counts, counts))
    yield Row(shape, "at most 2 s", seconds, 2.0, 1.0, "seconds of a core")
    loop = core_seconds(2, lambda: loop_over_items(counts))
    yield Row(shape, "a loop over items", seconds, loop, None, "which scores four means alone")
    votes, ours, theirs = counts / VOTES, score_bounds(counts, counts), loop_over_items(counts)
    known = every_score(truth, votes)
    for name in MEANS:
        room = abs((ours[name].floor or 0.0) - known[name])
        off, loops = (
            100 * abs(said - known[name]) / room
            for said in (ours[name].ceiling or np.nan, theirs[name])
        )
        what = f"error of the ceiling of {name}"
        yield Row(what, "at most 5 %", off, 5.0, 1.0, "of floor - ceiling", unit="%")
        yield Row(what, "a loop over items", off, loops, None, "of floor - ceiling", unit="%")
    if not linux_counts_memory():
        return
    measured = {}
    for items in (100_000, 1_000_000):
        with ProcessPoolExecutor(1, SPAWN) as own_process:
            measured[items] = own_process.submit(watched, items).result()
    seconds, megabytes = measured[1_000_000]
    shape = "bounds of 1,000,000 x 10, every score"
    yield Row(shape, "at most 90 s", seconds, 90.0, 1.0, "seconds of a core")
    yield Row(shape, "a loop over items", seconds, 100 * loop, None, "100 times that of 10,000")
    yield Row(
        "memory of 1,000,000 items",
        "ten times that of 100,000",
        megabytes,
        10 * measured[100_000][1],
        0.9,
        "beside the votes",
        unit="MB",
    )


if __name__ == "__main__":
    main(rows)
