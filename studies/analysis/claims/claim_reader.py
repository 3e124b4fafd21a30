"""The `claims` of a report section, checked against the study and the report's other parts."""

from dataclasses import replace
from typing import Any

from studies.analysis.claims.claim_spec import (
    ALWAYS,
    BETWEEN,
    DIRECTIONS,
    NEEDED,
    OPTIONAL,
    SOURCES,
    ClaimSpec,
)
from studies.plan.published_numbers import fact_in_words
from studies.schema.levels import chosen_levels, nothing_left_over
from studies.schema.options import ABSENT, options_of


class ClaimReader:
    """Reads one claim after the other."""

    def __init__(self, reading: Any, figures: list[Any], comparisons: list[Any]):
        """
        Args:
            reading: Of the report's section.
            figures: Those of the report.
            comparisons: Those of the report.
        """
        self.reading, self.checks = reading, reading.checks
        self.figures = {spec.name: spec for spec in figures if spec.for_claims}
        self.comparisons = {spec.name: spec for spec in comparisons}

    def claim(self, entry: Any, key: str) -> ClaimSpec:
        """One claim, checked against what it is about."""
        checks, options = self.checks, options_of(ClaimSpec)
        entry = dict(checks.mapping(entry, key, set(options)))
        checks.present(entry, ALWAYS, key)
        checks.one_of(entry["test"], NEEDED, f"{key}.test")
        source = next((name for name in ("figure", "comparison") if name in entry), "runs")
        self._entries_of_test(entry, source, key)
        entry = {
            name: options[name].metadata["kind"].read(value, f"{key}.{name}", self.reading)
            for name, value in entry.items()
        }
        {"figure": self._of_figure, "comparison": self._of_comparison, "runs": self._of_runs}[
            source
        ](entry, key)
        if "published" in entry:
            entry["published_values"] = fact_in_words(entry["published"])
        lists = {name: tuple(entry[name]) for name in ("levels", "between") if name in entry}
        return ClaimSpec(**{**entry, **lists})

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
        if test == "equal" and "margin" not in entry and not _has_floor(entry, source):
            checks.wrong(
                f"{key}.margin",
                f"is missing; {entry['metric']} has no floor that a margin would follow from",
            )
        for name, least in (("levels", 3 if test == "monotone" else 1), ("between", 2)):
            if name in entry and (not isinstance(entry[name], list) or len(entry[name]) < least):
                checks.wrong(
                    f"{key}.{name}", f"must be a list of at least {least} level{'s' * (least > 1)}"
                )

    def _of_runs(self, entry: dict[str, Any], key: str) -> None:
        checks = self.checks
        grid = entry.setdefault("grid", self.reading.grids[0])
        checks.one_of(grid, self.reading.grids, f"{key}.grid")
        entry["where"], levels = chosen_levels(
            checks, entry.get("where"), self.reading.levels_of(grid), f"{key}.where"
        )
        several = isinstance(entry["metric"], list) and entry["test"] == "family"
        own = replace(self.reading, values={"grid": grid, "where": entry["where"]})
        for metric in entry["metric"] if several else [entry["metric"]]:
            own.check_metric(metric, f"{key}.metric")
        for name in entry.keys() & {"rows", "columns"}:
            checks.one_of(entry[name], levels, f"{key}.{name}", f"a factor of the grid {grid}")
        self._levels(entry, levels[entry["rows"]], f"a level of {entry['rows']}", key)
        if "columns" in entry:
            entry["column_levels"] = tuple(levels[entry["columns"]])
        nothing_left_over(
            checks,
            levels,
            {entry["rows"], entry.get("columns", entry["rows"])},
            self.reading.paired,
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
        from studies.analysis.comparison.comparison import NAMES

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
        for name in ("level", "reference", "control"):
            if name in entry:
                self.checks.one_of(entry[name], allowed, f"{key}.{name}", kind)
        for level in entry.get("levels", []):
            self.checks.one_of(level, allowed, f"{key}.levels", kind)
        used = [entry[name] for name in ("level", "reference", "control") if name in entry]
        used += list(entry.get("levels", []))
        twice = next((level for level in used if used.count(level) > 1), ABSENT)
        if twice is not ABSENT:
            self.checks.wrong(key, f"compares {twice} with itself")


def _has_floor(entry: dict[str, Any], source: str) -> bool:
    """Whether a best constant prediction says how much of a measure there is to learn."""
    from metrics.registry import score_of

    score, _ = score_of(str(entry["metric"]))
    return source == "runs" and score is not None and score.floor is not None
