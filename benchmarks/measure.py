"""Timing that all benchmarks share."""

from collections.abc import Callable
from time import perf_counter


def best_of(repeats: int, work: Callable[[int], object]) -> float:
    """Seconds of the fastest of several calls `work(0)`, `work(1)`, …: what the work costs when nothing else gets in its way."""

    def seconds(repeat: int) -> float:
        start = perf_counter()
        work(repeat)
        return perf_counter() - start

    return min(seconds(repeat) for repeat in range(repeats))


def verdict(reached: bool) -> str:
    return "reached" if reached else "NOT reached"
