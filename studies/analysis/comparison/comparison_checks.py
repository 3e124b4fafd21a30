"""Whether what a file says is a comparison between runs: it may hold anything, and a report shows
every number of it.
"""

from typing import Any

from core.read_json import is_number
from studies.analysis.comparison.comparison import NAMES, Comparison
from studies.analysis.comparison.loss_barrier import LossLine
from studies.analysis.statistics import LARGEST

LONGEST_NAME = 1000  # characters


def is_comparison(result: Comparison) -> bool:
    """Whether everything in it is of the kind that comparing runs gives."""
    if not isinstance(result.methods, list) or not isinstance(result.notes, list):
        return False
    names = [result.dataset, result.network, result.layer or "", result.factor]
    names += [*result.notes, *map(str, result.methods)]
    counts = [result.table_items, *(n for v in result.values for n in (v.items, v.left_out))]
    return (
        all(isinstance(name, str) and len(name) <= LONGEST_NAME for name in names)
        and isinstance(result.simulated_annotators, bool)
        and all(isinstance(method, str | int | float | None) for method in result.methods)
        and all(map(_is_count, counts))
        and _is_score(result.quantile)
        and all(
            v.measure in NAMES and _is_pair(v.methods, result.methods) and _is_score(v.value)
            for v in result.values
        )
        and all(len(v.seeds) == 2 and all(map(_is_count, v.seeds)) for v in result.values)
        and any(v.measure == "cka" and v.seeds[0] != v.seeds[1] for v in result.values)
        and all(
            _is_pair(line.methods, result.methods)
            and _is_count(line.seed)
            and _is_count(line.items)
            for line in result.lines
        )
        and all(_is_way(line.line) for line in result.lines)
        and len({len(line.line.alphas) for line in result.lines}) < 2
    )


def _is_pair(pair: tuple[Any, ...], methods: list[Any]) -> bool:
    return len(pair) == 2 and all(method in methods for method in pair)


def _is_way(line: LossLine) -> bool:
    curves = [line.alphas, line.plain, *([] if line.reestimated is None else [line.reestimated])]
    return all(
        len(curve) == len(line.alphas) > 1 and all(map(_is_score, curve)) for curve in curves
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _is_score(value: Any) -> bool:
    return is_number(value) and not abs(value) > LARGEST  # NaN where there is none
