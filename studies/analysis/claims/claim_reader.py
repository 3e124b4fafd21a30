"""The `claims` of a report section, checked against the study.

`studies.analysis.claims.claims` says what their entries mean.
"""

import math
import re
from typing import Any

from studies.analysis.collect import Collection
from studies.analysis.comparison.comparison import NAMES
from studies.plan.factor_levels import chosen_levels, nothing_left_over
from studies.plan.published_numbers import fact_in_words, published
from studies.plan.section_checks import Checks
from studies.plan.study import Study
from studies.report.section import ABSENT, ClaimSpec, ComparisonSpec, FigureSpec

ALWAYS = {"id", "claim", "paper", "test"}
NEEDED = {  # by each test, besides where its values come from
    "less": {"level", "reference"},
    "greater": {"level", "reference"},
    "equal": {"level", "reference", "margin"},
    "above": {"level", "bound"},
    "below": {"level", "bound"},
    "family": {"levels", "direction"},
    "monotone": {"levels", "direction"},
}
OPTIONAL = {"family": {"reference", "bound", "columns"}}
DIRECTIONS = {"family": ("less", "greater"), "monotone": ("rising", "falling")}
# Where values come from: the entries that say so, those that may restrict it, and the tests that it
# is for.
SOURCES = {
    "figure": ({"figure"}, {"where"}, ("above", "below", "family")),
    "comparison": ({"comparison", "metric"}, set(), ("less", "greater", "equal", "above", "below")),
    "runs": ({"metric", "rows"}, {"grid", "where"}, tuple(NEEDED)),
}
BETWEEN = ("barrier", "barrier_reestimated")  # measures of two methods; the others are of one


class ClaimReader:
    """Reads one claim after the other."""

    def __init__(
        self,
        study: Study,
        collection: Collection,
        checks: Checks,
        metrics: set[str],
        figures: list[FigureSpec],
        comparisons: list[ComparisonSpec],
    ):
        self.study, self.collection, self.checks, self.metrics = study, collection, checks, metrics
        self.figures = {spec.name: spec for spec in figures if spec.kind == "target_error"}
        self.comparisons = {spec.name: spec for spec in comparisons}

    def claim(self, entry: Any, key: str) -> ClaimSpec:
        checks = self.checks
        every = ALWAYS.union(
            *NEEDED.values(),
            *OPTIONAL.values(),
            *(n | o for n, o, _ in SOURCES.values()),
            {"between", "published"},
        )
        entry = dict(checks.mapping(entry, key, every))
        checks.present(entry, ALWAYS, key)
        checks.one_of(entry["test"], NEEDED, f"{key}.test")
        source = next((name for name in ("figure", "comparison") if name in entry), "runs")
        self._entries_of_test(entry, source, key)
        {"figure": self._of_figure, "comparison": self._of_comparison, "runs": self._of_runs}[
            source
        ](entry, key)
        if "published" in entry:
            checks.one_of(entry["published"], published("facts"), f"{key}.published")
            entry["published_values"] = fact_in_words(entry["published"])
        texts = {name: str(entry[name]) for name in ("id", "claim", "paper")}
        lists = {name: tuple(entry[name]) for name in ("levels", "between") if name in entry}
        return ClaimSpec(**{**entry, **texts, **lists})

    def _entries_of_test(self, entry: dict[str, Any], source: str, key: str) -> None:
        """That there is what the test needs and nothing that it would not look at, each of its own
        type.
        """
        checks, test = self.checks, entry["test"]
        needed_source, optional_source, tests = SOURCES[source]
        if test not in tests:
            checks.wrong(
                f"{key}.test", f"is {test}; on a {source} it must be one of {', '.join(tests)}"
            )
        needed = NEEDED[test] | needed_source
        if source == "comparison" and entry.get("metric") in BETWEEN and test in ("above", "below"):
            needed = needed - {"level"} | {"between"}
        checks.present(entry, needed, key)
        odd = sorted(
            entry.keys()
            - needed
            - ALWAYS
            - {"published"}
            - OPTIONAL.get(test, set())
            - optional_source
        )
        if odd:
            checks.wrong(
                f"{key}.{odd[0]}",
                f"does not belong in a claim of test {test} on "
                f"{'runs' if source == 'runs' else f'a {source}'}",
            )
        if "direction" in entry:
            checks.one_of(entry["direction"], DIRECTIONS[test], f"{key}.direction")
        if test == "family" and ("reference" in entry) == ("bound" in entry):
            checks.wrong(
                key, "needs a reference or a bound that its levels are compared with, and not both"
            )
        if "bound" in entry:
            checks.number(entry["bound"], f"{key}.bound", -math.inf, math.inf)
        if "margin" in entry and not re.fullmatch(r"\d+(\.\d+)? ?%", str(entry["margin"])):
            checks.number(entry["margin"], f"{key}.margin", 0, math.inf)
        for name, least in (("levels", 3 if test == "monotone" else 1), ("between", 2)):
            if name in entry and (not isinstance(entry[name], list) or len(entry[name]) < least):
                checks.wrong(
                    f"{key}.{name}", f"must be a list of at least {least} level{'s' * (least > 1)}"
                )

    def _of_runs(self, entry: dict[str, Any], key: str) -> None:
        checks = self.checks
        grid = entry.setdefault("grid", next(iter(self.study.grids)))
        checks.one_of(grid, self.study.grid_names, f"{key}.grid")
        entry["where"], levels = chosen_levels(
            checks, entry.get("where"), self.collection.levels(grid), f"{key}.where"
        )
        several = isinstance(entry["metric"], list) and entry["test"] == "family"
        for metric in entry["metric"] if several else [entry["metric"]]:
            checks.one_of(metric, self.metrics, f"{key}.metric", "a metric")
        for name in entry.keys() & {"rows", "columns"}:
            checks.one_of(entry[name], levels, f"{key}.{name}", f"a factor of the grid {grid}")
        self._levels(entry, levels[entry["rows"]], f"a level of {entry['rows']}", key)
        if "columns" in entry:
            entry["column_levels"] = tuple(levels[entry["columns"]])
        nothing_left_over(
            checks,
            levels,
            {entry["rows"], entry.get("columns", entry["rows"])},
            self.study.paired,
            key,
        )

    def _of_figure(self, entry: dict[str, Any], key: str) -> None:
        """The correlations of a figure of kind target_error."""
        self.checks.one_of(
            entry["figure"], self.figures, f"{key}.figure", "a figure of kind target_error"
        )
        spec = self.figures[entry["figure"]]
        if "reference" in entry or "columns" in entry:
            odd = "reference" if "reference" in entry else "columns"
            self.checks.wrong(
                f"{key}.{odd}",
                "does not belong in a claim from a figure, whose correlations are compared with "
                "a bound",
            )
        methods = [level for level in spec.levels[spec.rows] if level != spec.reference]
        self._levels(entry, methods, f"a level of {spec.rows} other than its reference", key)
        panels = {spec.panels: spec.panel_levels} if spec.panels else {}
        entry["where"], left = chosen_levels(
            self.checks, entry.get("where"), panels, f"{key}.where"
        )
        entry["column_levels"] = tuple(left.get(spec.panels, [ABSENT]))
        if entry["test"] != "family" and len(entry["column_levels"]) > 1:
            self.checks.wrong(
                key, f"would average over {spec.panels}; fix its level with where, or test a family"
            )

    def _of_comparison(self, entry: dict[str, Any], key: str) -> None:
        checks = self.checks
        checks.one_of(entry["comparison"], self.comparisons, f"{key}.comparison", "a comparison")
        spec, between = self.comparisons[entry["comparison"]], entry["metric"] in BETWEEN
        allowed = [
            name for name in NAMES if entry["test"] in ("above", "below") or name not in BETWEEN
        ]
        checks.one_of(entry["metric"], allowed, f"{key}.metric")
        methods = spec.levels[spec.rows]
        self._levels(entry, methods, f"a level of {spec.rows}", key)
        if between:
            for level in entry["between"]:
                checks.one_of(level, methods, f"{key}.between", f"a level of {spec.rows}")
            if len(entry["between"]) > 2 or len(set(entry["between"])) < 2:
                checks.wrong(f"{key}.between", "must be two different levels")
            entry["between"] = sorted(entry["between"], key=methods.index)

    def _levels(self, entry: dict[str, Any], allowed: list[Any], kind: str, key: str) -> None:
        for name in ("level", "reference"):
            if name in entry:
                self.checks.one_of(entry[name], allowed, f"{key}.{name}", kind)
        for level in entry.get("levels", []):
            self.checks.one_of(level, allowed, f"{key}.levels", kind)
        used = [entry[name] for name in ("level", "reference") if name in entry] + list(
            entry.get("levels", [])
        )
        twice = next((level for level in used if used.count(level) > 1), ABSENT)
        if twice is not ABSENT:
            self.checks.wrong(key, f"compares {twice} with itself")
