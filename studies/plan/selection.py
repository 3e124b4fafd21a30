"""The `selections` of a study's YAML: what is chosen from a grid by validation loss, and with what
it is run again.

The factors of the new grid are those of `for_each` and `then`; what was chosen is listed in the
report as NAME-options.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from studies.plan.published_numbers import published
from studies.plan.study_checks import check_factors, check_number, runs_of
from studies.schema.calibrate_factor import split_off
from studies.schema.grid_options import Grid, GridReading, Where
from studies.schema.levels import Levels, all_levels, labelled_levels
from studies.schema.options import Choice, Kind, option, read_entry

# metrics of results.json that know nothing of the test set
BY = (
    "val_loss",
    "best_val_soft_nll",
    "final_val_soft_nll",
)


class ForEach(Kind):
    """Factors of the grid that is chosen from."""

    words = "a list of factors of it"

    def read(self, value: Any, key: str, reading: GridReading) -> list[str]:
        """As they are."""
        grid = reading.values["grid"]
        if not isinstance(value, list):
            reading.checks.wrong(key, "must be a list of factors")
        for factor in value:
            reading.checks.one_of(
                factor, reading.values["levels"], key, f"a factor of the grid {grid}"
            )
        return value


class Then(Kind):
    """Factors as in a grid."""

    words = "factors with levels, as in a grid"

    def read(self, value: Any, key: str, reading: GridReading) -> dict[str, Any]:
        """As they are."""
        checks = reading.checks
        if not isinstance(value, dict) or not value:
            checks.wrong(key, "must have factors with levels, such as seed_everything: [0, 1, 2]")
        check_factors(value, key, checks)
        check_number(runs_of(value), key, checks)
        for factor in value:
            if factor in reading.values["for_each"]:
                checks.wrong(f"{key}.{factor}", "is in for_each, too; a winner has one level of it")
        return value


class PaperChoices(Kind):
    """Facts of one table of a paper."""

    words = "the beginning of the names of facts in studies/published"

    def read(self, value: Any, key: str, reading: GridReading) -> Any:
        """As it is."""
        if value and not any(fact.startswith(f"{value}_") for fact in published("facts")):
            reading.checks.wrong(
                key,
                f"is {value}; there are no facts in studies/published that are called {value}_ "
                "and the levels",
            )
        return value


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is chosen from a grid by validation loss, and run again: a further grid of the study,
    for tables, figures and claims as any other. Its factors are those of `for_each` and `then`;
    what was chosen is listed in the report as NAME-options.
    """

    example: ClassVar[str] = """\
from: main
for_each: [data.delivery]
then: {seed_everything: [0, 1, 2, 3]}
where: {data.votes_per_item: [5, 10]}
by: val_loss
"""

    name: str
    grid: str = option(Grid("a grid"), "what is chosen from", name="from")
    where: dict[str, list[Any]] = option(Where(), "only these cells can win", default={})
    for_each: list[str] = option(ForEach(), "one winner for each combination of their levels")
    then: dict[str, Any] = option(
        Then(), "what winners are run with; they replace factors of the same name"
    )
    by: str = option(
        Choice(*BY),
        "the metric whose least value wins, of those that know nothing of the test set",
        default=BY[0],
    )
    published: str = option(
        PaperChoices(),
        "the paper's choices: facts called `epistemic.table2_LEVEL_LEVEL`, as in for_each",
        default="",
    )
    # of the factors of its own grid: those of for_each and of then
    levels: Levels = field(repr=False)

    @property
    def winners(self) -> int:
        """How many cells win."""
        return math.prod(len(self.levels[factor]) for factor in self.for_each)

    @property
    def runs(self) -> int:
        """How many runs follow."""
        return runs_of(self.levels)

    def in_words(self) -> str:
        """For the plan."""
        of_each = f" for each {' and '.join(self.for_each)}" if self.for_each else ""
        winners = f"{self.winners} winner{'s' * (self.winners > 1)}"
        return (
            f"{self.name}: the least {self.by} of {self.grid}{of_each}; {winners} x "
            f"{self.runs // self.winners} = {self.runs} runs"
        )


class Selections(Kind):
    """Selections by their names."""

    words = "entries, each with a name"

    def read(self, value: Any, key: str, reading: Any) -> dict[str, Selection]:
        """Checked against the grids of their study."""
        checks = reading.checks
        if not isinstance(value or {}, dict):
            checks.wrong(key, "must have entries, each with a name")
        grids = reading.values["grids"].items()
        levels = {name: all_levels(split_off(grid)[0]) for name, grid in grids}
        result = {}
        for name, entry in (value or {}).items():
            own = GridReading(checks, grids=list(levels), levels_of=levels.__getitem__)
            result[str(name)] = _read_selection(str(name), entry, f"{key}.{name}", own)
        return result


def _read_selection(name: str, entry: Any, key: str, reading: GridReading) -> Selection:
    values = read_entry(Selection, entry, key, reading)
    if not re.fullmatch(r"[\w-]+", name) or name in reading.grids:
        reading.checks.wrong(
            key,
            "must be a name of its own, of letters, digits, _ and -: it is a grid like the others "
            "and names a file",
        )
    left = values.pop("levels")
    levels = {factor: left[factor] for factor in values["for_each"]} | {
        factor: list(labelled_levels(factor, levels)) for factor, levels in values["then"].items()
    }
    return Selection(name=name, levels=levels, **values)
