"""The numbers, one per seed, that a claim is about: from results, from a figure's correlations, or
from comparisons between networks.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from studies.analysis.collect import Collection, Record
from studies.analysis.comparison.comparison import Comparison
from studies.analysis.target_error import TargetError
from studies.analysis.uncertainty.item_spreads import ALONE, ItemSpreads
from studies.analysis.uncertainty.spread import Spread
from studies.report.section import ABSENT, ClaimSpec
from studies.tables.tables import units

Values = dict[tuple, float]  # by unit (the levels of the paired factors, as a rule the seed)


@dataclass(frozen=True)
class Measured:
    """All that claims may be about."""

    collection: Collection
    paired: list[str]
    target_errors: dict[str, TargetError]  # by the name of their figure
    comparisons: dict[str, Comparison | str]  # by name; a text where there is none, which says why
    label: Callable[[Any], str] = str
    items: ItemSpreads | None = None  # what runs' scores owe to items; None where nobody asks

    def values(
        self, claim: ClaimSpec, level: Any, column: Any = ABSENT, metric: str = ""
    ) -> tuple[Values, str]:
        """The finite values of one level (in one column), or why there are none."""
        if claim.figure:
            result, absent = self._of_figure(claim, level, column)
        elif claim.comparison:
            result, absent = self._of_comparison(claim, level)
        else:
            result, absent = self._of_runs(claim, level, column, metric or claim.metric)
        finite = {unit: value for unit, value in result.items() if math.isfinite(value)}
        return finite, "" if finite else absent

    def records(self, claim: ClaimSpec, level: Any, column: Any = ABSENT) -> list[Record]:
        """The finished runs of one level (in one column)."""
        wanted = {**claim.where, claim.rows: [level]}
        if claim.columns:
            wanted[claim.columns] = [column]
        return [
            record
            for record in self.collection.records(claim.grid)
            if all(record.factors[factor] in levels for factor, levels in wanted.items())
        ]

    def spread(
        self,
        claim: ClaimSpec,
        seeds: Iterable[tuple],
        level: Any,
        column: Any = ABSENT,
        metric: str = "",
        reference: Any = ABSENT,
    ) -> Spread | str:
        """What the values of these seeds, or their differences from the reference, owe to items
        and votes; or why that is not known.
        """
        if claim.figure or claim.comparison:
            return "these values are not scores of test items"
        if self.items is None:
            return ALONE
        sides, own = [], list(seeds)
        for one in (level, reference) if reference is not ABSENT else (level,):
            records = self.records(claim, one, column)
            by_seed = {tuple(r.factors.get(factor) for factor in self.paired): r for r in records}
            sides.append([by_seed[seed] for seed in own])
        metric = metric or claim.metric
        if len(sides) == 1:
            return self.items.of_scores(sides[0], metric)
        return self.items.of_differences(sides[0], sides[1], metric)

    def _of_runs(
        self, claim: ClaimSpec, level: Any, column: Any, metric: str
    ) -> tuple[Values, str]:
        records = self.records(claim, level, column)
        if not records:
            return {}, f"no run of {self._name(level, column)} is finished"
        absent = f"no finished run of {self._name(level, column)} has a finite {metric}"
        return units(records, metric, self.paired), absent

    def _of_figure(self, claim: ClaimSpec, level: Any, column: Any) -> tuple[Values, str]:
        result = self.target_errors[claim.figure]
        absent = f"{self._name(level, column)} has no correlation in the figure {claim.figure}"
        return result.spearman(level, column), result.note or absent

    def _of_comparison(self, claim: ClaimSpec, level: Any) -> tuple[Values, str]:
        result = self.comparisons[claim.comparison]
        if isinstance(result, str):
            return {}, result
        if claim.between:
            first, second = claim.between
            chosen = result.select(claim.metric, (first, second), "same")
            absent = f"the comparison {claim.comparison} has no {claim.metric} between both"
            return {(v.seeds[0],): v.value for v in chosen}, absent
        chosen = result.select(claim.metric, (level, level), "different")
        within = f"{claim.metric} within {self.label(level)}"
        if not chosen:
            return {}, f"the comparison {claim.comparison} has no {within}"
        absent = f"{within} takes at least 3 seeds, and a value for every two of them"
        return jackknife_by_seed({v.seeds: v.value for v in chosen}), absent

    def _name(self, level: Any, column: Any) -> str:
        name = self.label(level)
        return name if column is ABSENT else f"{name} at {self.label(column)}"


def jackknife_by_seed(pairs: dict[tuple[int, int], float]) -> Values:
    """One number per seed out of numbers about pairs of seeds; their mean is the mean over pairs.

    Pairs that share a seed are not independent, and a seed's mean over its pairs shares all the
    others' seeds: tested as if they were independent, either would look far more certain than it
    is. The jackknife's pseudo-values of the mean over pairs have about the right spread (Arvesen
    1969). With n seeds, mean U and mean U_-i of the pairs without seed i, they are n U - (n - 1)
    U_-i. All are NaN where there are fewer than three seeds.

    >>> jackknife_by_seed({(0, 1): 1.0, (0, 2): 2.0, (1, 2): 6.0})
    {(0,): -3.0, (1,): 5.0, (2,): 7.0}
    """
    seeds = sorted({seed for pair in pairs for seed in pair})
    n = len(seeds)
    if n < 3:
        return {(seed,): math.nan for seed in seeds}
    table = np.full((n, n), math.nan)
    np.fill_diagonal(table, 0)
    for (first, second), value in pairs.items():
        i, j = seeds.index(first), seeds.index(second)
        table[i, j] = table[j, i] = value
    of_seed = table.sum(1)
    total = of_seed.sum() / 2
    mean, without = total / math.comb(n, 2), (total - of_seed) / math.comb(n - 1, 2)
    pseudo_values = n * mean - (n - 1) * without
    return {(seed,): float(value) for seed, value in zip(seeds, pseudo_values, strict=True)}
