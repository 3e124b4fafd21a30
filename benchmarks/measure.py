"""Timing that benchmarks share."""

import multiprocessing
import sys
from collections.abc import Callable, Mapping
from time import perf_counter

SPAWN = multiprocessing.get_context("spawn")


def best_of(repeats: int, work: Callable[[int], object]) -> float:
    """Seconds of the fastest of several calls `work(0)`, `work(1)`, …: what the work costs when
    nothing else gets in its way.
    """

    def seconds(repeat: int) -> float:
        start = perf_counter()
        work(repeat)
        return perf_counter() - start

    return min(seconds(repeat) for repeat in range(repeats))


def alternate(
    rounds: int, sides: Mapping[str, Callable[[], object]], calls: int = 1
) -> dict[str, float]:
    """Seconds of a call of each side: the fastest of several rounds in which all have their turn,
    so that what slows the machine down for a while does not fall on one side alone. Work of
    microseconds is called several times a round. A first round warms up and does not count.

    >>> sorted(alternate(2, {"ours": lambda: None, "theirs": lambda: None}, calls=3))
    ['ours', 'theirs']
    """
    fastest = dict.fromkeys(sides, float("inf"))
    for number in range(1 + rounds):
        for name, work in sides.items():
            start = perf_counter()
            for _ in range(calls):
                work()
            if number:
                fastest[name] = min(fastest[name], (perf_counter() - start) / calls)
    return fastest


def linux_counts_memory() -> bool:
    """Whether memory can be measured here, by Linux's /proc; where it cannot, that is said."""
    if sys.platform != "linux":
        print("memory is measured as Linux counts it; for that part run it on Linux")
    return sys.platform == "linux"


def verdict(reached: bool) -> str:
    """Whether a target is reached, in a word."""
    return "reached" if reached else "NOT reached"
