"""The `selections` of a study's YAML: what is chosen from a grid by validation loss, and with what
it is run again.

    selections:
      best:                                  # a further grid of the study, for tables, figures and claims as any other
        from: search                         # * a grid
        for_each: [dataset, data.delivery]   # * factors of it: one winner for each combination of their levels
        then: {seed_everything: [0, 1, 2]}   # * factors, as in a grid, that the winners are run with; they replace those of the same name
        where: {dataset: ChaosNLI}           # a level, or a list of levels, of factors: only these cells can win
        by: val_loss                         # the metric whose least value wins, of those that know nothing of the test set
        published: epistemic.table2          # the paper's choices: facts of studies/published called epistemic.table2_LEVEL_LEVEL, as in for_each

The factors of the new grid are those of `for_each` and `then`; what was chosen is listed in the
report as NAME-options.
"""  # noqa: E501

import math
import re
from dataclasses import dataclass, field
from typing import Any

from studies.plan.published_numbers import published
from studies.plan.study_checks import check_factors, check_number, runs_of
from studies.schema.checks import Checks
from studies.schema.levels import Levels, chosen_levels

# metrics of results.json that know nothing of the test set
BY = (
    "val_loss",
    "best_val_soft_nll",
    "final_val_soft_nll",
)
NEEDED = {"from", "for_each", "then"}


@dataclass(frozen=True)
class Selection:
    """One entry of `selections`."""

    name: str
    grid: str
    for_each: list[str]
    then: dict[str, Any]
    where: dict[str, list[Any]]
    # of the factors of its own grid: those of for_each and of then
    levels: Levels = field(repr=False)
    by: str = "val_loss"
    published: str = ""

    @property
    def winners(self) -> int:
        return math.prod(len(self.levels[factor]) for factor in self.for_each)

    @property
    def runs(self) -> int:
        return math.prod(len(levels) for levels in self.levels.values())

    def in_words(self) -> str:
        of_each = f" for each {' and '.join(self.for_each)}" if self.for_each else ""
        winners = f"{self.winners} winner{'s' * (self.winners > 1)}"
        return (
            f"{self.name}: the least {self.by} of {self.grid}{of_each}; {winners} x "
            f"{self.runs // self.winners} = {self.runs} runs"
        )


class SelectionReader:
    """Checks entries against the grids of their study.

    `levels` are those of every factor of every grid.
    """

    def __init__(self, checks: Checks, levels: dict[str, Levels], labels: Any):
        self.checks, self.levels, self.labels = checks, levels, labels

    def read(self, name: str, entry: Any) -> Selection:
        checks, key = self.checks, f"selections.{name}"
        entry = dict(checks.mapping(entry, key, NEEDED | {"where", "by", "published"}))
        checks.present(entry, NEEDED, key)
        if not re.fullmatch(r"[\w-]+", name) or name in self.levels:
            checks.wrong(
                key,
                "must be a name of its own, of letters, digits, _ and -: it is a grid like the "
                "others and names a file",
            )
        checks.one_of(entry["from"], list(self.levels), f"{key}.from", "a grid")
        where, left = chosen_levels(
            checks, entry.get("where"), self.levels[entry["from"]], f"{key}.where"
        )
        if not isinstance(entry["for_each"], list):
            checks.wrong(f"{key}.for_each", "must be a list of factors")
        for factor in entry["for_each"]:
            checks.one_of(factor, left, f"{key}.for_each", f"a factor of the grid {entry['from']}")
        then = self._then(entry["then"], entry["for_each"], f"{key}.then")
        checks.one_of(entry.get("by", BY[0]), BY, f"{key}.by")
        prefix = entry.get("published", "")
        if prefix and not any(fact.startswith(f"{prefix}_") for fact in published("facts")):
            checks.wrong(
                f"{key}.published",
                f"is {prefix}; there are no facts in studies/published that are called {prefix}_ "
                "and the levels",
            )
        levels = {factor: left[factor] for factor in entry["for_each"]} | {
            f: self.labels(f, options) for f, options in then.items()
        }
        return Selection(
            name,
            entry["from"],
            entry["for_each"],
            then,
            where,
            levels,
            entry.get("by", BY[0]),
            prefix,
        )

    def _then(self, then: Any, for_each: list[str], key: str) -> dict[str, Any]:
        if not isinstance(then, dict) or not then:
            self.checks.wrong(
                key, "must have factors with levels, such as seed_everything: [0, 1, 2]"
            )
        check_factors(then, key, self.checks)
        check_number(runs_of(then), key, self.checks)
        for factor in then:
            if factor in for_each:
                self.checks.wrong(
                    f"{key}.{factor}", "is in for_each, too; a winner has one level of it"
                )
        return then
