"""The `report` section of a study's YAML, checked against the study and its finished runs before
anything is drawn. See `studies.report.report`.
"""

import math
import re
from dataclasses import fields
from typing import Any

from studies.analysis.claims.claim_reader import ClaimReader
from studies.analysis.collect import Collection
from studies.figures.examples import RULES
from studies.plan.comparable_runs import items_of
from studies.plan.factor_levels import chosen_levels, nothing_left_over
from studies.plan.published_numbers import published
from studies.plan.section_checks import Checks
from studies.plan.study import Study
from studies.report.comparison_part import KINDS as COMPARED
from studies.report.section import (
    KINDS,
    ChangesSpec,
    ComparisonSpec,
    DatasetsSpec,
    FigureSpec,
    ModeShiftSpec,
    Part,
    Section,
    TableSpec,
)
from studies.tables.measures import MEASURES

CHOICES = {
    "test": ("wilcoxon", "t"),
    "alternative": ("two-sided", "less", "greater"),
    "family": ("holm",),
}
KEYS = {
    "scale",
    "labels",
    "comment",
    "datasets",
    "tables",
    "changes",
    "mode_shifts",
    "figures",
    "comparisons",
    "claims",
}
INTERNAL = {"levels", "planned_units", "published_entry"}  # of specs, not of the YAML


def read_section(study: Study, collection: Collection) -> Section:
    """The section with its defaults filled in; a mistake raises an InputError that names the file
    and the key.
    """
    return _Reader(study, collection).section()


class _Reader:
    def __init__(self, study: Study, collection: Collection):
        self.study, self.collection, self.checks = study, collection, Checks(study.path)
        self.metrics = {
            *MEASURES,
            *(name for record in collection.finished.values() for name in record.metrics),
        }

    def section(self) -> Section:
        checks = self.checks
        content = checks.mapping(self.study.report or {}, "report", KEYS)
        datasets = [
            self._datasets(entry, key)
            for key, entry in checks.entries(content.get("datasets"), "report.datasets")
        ]
        tables = [
            self._table(entry, key)
            for key, entry in checks.entries(content.get("tables"), "report.tables")
        ]
        changes = [
            self._changes(entry, key)
            for key, entry in checks.entries(content.get("changes"), "report.changes")
        ]
        shifts = [
            self._mode_shift(entry, key)
            for key, entry in checks.entries(content.get("mode_shifts"), "report.mode_shifts")
        ]
        figures = [
            self._figure(entry, key)
            for key, entry in checks.entries(content.get("figures"), "report.figures")
        ]
        compared = [
            self._comparison(entry, key)
            for key, entry in checks.entries(content.get("comparisons"), "report.comparisons")
        ]
        for key, parts in (("tables", tables), ("figures", figures), ("comparisons", compared)):
            checks.unique([part.name for part in parts], f"report.{key}")
        reader = ClaimReader(self.study, self.collection, checks, self.metrics, figures, compared)
        claims = [
            reader.claim(entry, key)
            for key, entry in checks.entries(content.get("claims"), "report.claims")
        ]
        checks.unique([claim.id for claim in claims], "report.claims")
        files = [part.name for part in (*datasets, *tables, *changes, *shifts, *compared)] + [
            "claims"
        ] * bool(claims)
        files += [
            f"{spec.name}-{what}"
            for spec in figures
            if spec.kind == "target_error"
            for what in ("spearman", "bins")
        ]
        files += [f"{spec.name}-maps" for spec in figures if spec.kind == "data_map"]
        files += [f"{name}-options" for name in self.study.selections]
        checks.unique(files, "report")
        known = {
            str(level)
            for grid in self.study.grid_names
            for levels in self.collection.levels(grid).values()
            for level in levels
        }
        labels = checks.mapping(content.get("labels") or {}, "report.labels", known)
        scale, comment = (str(content.get(key) or "") for key in ("scale", "comment"))
        return Section(
            tables, figures, compared, claims, scale, comment, labels, datasets, changes, shifts
        )

    def _table(self, entry: Any, key: str) -> TableSpec:
        entry, checks = self._part(entry, key, TableSpec, {"rows", "columns"}), self.checks
        if isinstance(entry["columns"], str):
            checks.one_of(
                entry["columns"],
                entry["levels"],
                f"{key}.columns",
                "a list of metrics or a factor of the grid",
            )
            if "metric" not in entry:
                checks.wrong(
                    f"{key}.metric",
                    "is missing; a table whose columns are a factor shows one metric",
                )
            checks.one_of(entry["metric"], self.metrics, f"{key}.metric", "a metric")
        elif "metric" in entry:
            checks.wrong(f"{key}.metric", "is only for a table whose columns are a factor")
        else:
            self._metrics(
                entry["columns"],
                f"{key}.columns",
                "must be a list of metrics or a factor of the grid",
            )
        for name, allowed in CHOICES.items():
            if name in entry:
                checks.one_of(entry[name], allowed, f"{key}.{name}")
                if "reference" not in entry:
                    checks.wrong(
                        f"{key}.{name}",
                        "needs a reference, the row that the others are tested against",
                    )
        spec = TableSpec(**self._with_published(entry, key))
        shown = [spec.rows, spec.groups] + [spec.columns] * spec.pivot
        if len(set(shown)) < len(shown):
            checks.wrong(
                key,
                f"shows {max(shown, key=shown.count)} twice; rows, groups and columns must be "
                "different factors",
            )
        self._nothing_left_over(spec, set(shown), key)
        return spec

    def _datasets(self, entry: Any, key: str) -> DatasetsSpec:
        entry = self._part(entry, key, DatasetsSpec, {"rows"})
        spec = DatasetsSpec(**self._with_published(entry, key))
        self._one_dataset_each(spec, spec.rows, f"{key}.rows")
        return spec

    def _changes(self, entry: Any, key: str) -> ChangesSpec:
        entry, checks = (
            self._part(
                entry, key, ChangesSpec, {"groups", "rows", "level", "reference", "columns"}
            ),
            self.checks,
        )
        self._metrics(entry["columns"], f"{key}.columns", "must be a list of metrics")
        checks.one_of(
            entry["level"],
            entry["levels"][entry["rows"]],
            f"{key}.level",
            f"a level of {entry['rows']}",
        )
        if entry["level"] == entry["reference"]:
            checks.wrong(
                f"{key}.level",
                f"is {entry['level']}, as is reference; a change is between two levels",
            )
        entry["where"] = {**entry["where"], entry["rows"]: [entry["reference"], entry["level"]]}
        spec = ChangesSpec(**self._with_published(entry, key))
        self._nothing_left_over(spec, {spec.rows, spec.groups}, key)
        return spec

    def _mode_shift(self, entry: Any, key: str) -> ModeShiftSpec:
        spec = ModeShiftSpec(
            **self._part(entry, key, ModeShiftSpec, {"groups", "rows", "reference"})
        )
        self._nothing_left_over(spec, {spec.rows, spec.groups}, key)
        return spec

    def _metrics(self, names: Any, key: str, wanted: str) -> None:
        if not isinstance(names, list) or not names:
            self.checks.wrong(key, wanted)
        for metric in names:
            self.checks.one_of(metric, self.metrics, key, "a metric")

    def _one_dataset_each(self, part: Part, factor: str, key: str) -> None:
        """Every level of the factor must be one dataset, whatever else its runs differ in."""
        result: dict[Any, Any] = {}
        for run in self.collection.planned:
            levels = run.factors.get(part.grid)
            if levels and all(levels[name] in chosen for name, chosen in part.where.items()):
                items = result.setdefault(levels[factor], items_of(run))
                if items != items_of(run):
                    self.checks.wrong(
                        key,
                        f"is {factor}, but runs at its level {levels[factor]} differ in their "
                        "data; choose with where",
                    )

    def _figure(self, entry: Any, key: str) -> FigureSpec:
        entry, checks = self._part(entry, key, FigureSpec, {"kind"}), self.checks
        checks.one_of(entry["kind"], KINDS, f"{key}.kind")
        kind = KINDS[entry["kind"]]
        given = entry.keys() - {"kind", *(f.name for f in fields(Part) if f.name != "rows")}
        odd = sorted((kind.needed - given) | (given - kind.needed - kind.optional))
        if odd:
            message = "is missing from" if odd[0] in kind.needed else "does not belong in"
            checks.wrong(f"{key}.{odd[0]}", f"{message} a figure of kind {entry['kind']}")
        if "metric" in entry:
            self._figure_metric(entry, f"{key}.metric")
        if "published" in entry:
            checks.one_of(entry["published"], published("facts"), f"{key}.published")
        for name, allowed in (("distance", ("js", "l1")), ("items", ("all", "high"))):
            checks.one_of(entry.get(name, allowed[0]), allowed, f"{key}.{name}")
        checks.one_of(entry.get("choose", "spread"), RULES, f"{key}.choose")
        checks.number(entry.get("quantile", 0), f"{key}.quantile", 0, 1)
        for name in ("bins", "number", "last"):
            checks.number(entry.get(name, 1), f"{key}.{name}", 1, math.inf, whole=True)
        if entry["kind"] == "entropy_histogram":
            entry.setdefault("bins", 20)
        spec = FigureSpec(**entry)
        shown = [factor for factor in (spec.rows, spec.x, spec.lines, spec.panels) if factor]
        if spec.x and not all(
            isinstance(level, int | float) and not isinstance(level, bool)
            for level in spec.levels[spec.x]
        ):
            checks.wrong(
                f"{key}.x",
                f"is {spec.x}, whose levels are not all numbers; leave the others out with where",
            )
        if (
            spec.kind == "entropy_histogram"
        ):  # of votes, which do not depend on how they are delivered
            self._one_dataset_each(spec, spec.panels, f"{key}.panels")
        else:
            self._nothing_left_over(spec, set(shown), key)
        if spec.kind == "target_error":
            self._sparse_only(spec, key)
        return spec

    def _figure_metric(self, entry: dict[str, Any], key: str) -> None:
        metric = entry["metric"]
        if entry["kind"] == "history":  # its columns are those of the runs' history.json
            if not metric or not all(
                isinstance(one, str) for one in (metric if isinstance(metric, list) else [metric])
            ):
                self.checks.wrong(
                    key,
                    f"is {metric}; it must be a column of history.json, such as val/soft_nll, or "
                    "a list of columns",
                )
            return
        if metric == []:
            self.checks.wrong(key, "is an empty list; it must name at least one metric")
        for one in metric if isinstance(metric, list) else [metric]:
            self.checks.one_of(one, self.metrics, key, "a metric")

    def _sparse_only(self, spec: FigureSpec, key: str) -> None:
        """Only a target made from few votes has an error."""
        for run in self.collection.planned:
            levels = run.factors.get(spec.grid)
            shown = levels and all(
                levels[factor] in chosen for factor, chosen in spec.where.items()
            )
            if shown and run.config["data"]["init_args"].get("votes_per_item") is None:
                self.checks.wrong(
                    key,
                    f"shows {run.name}, which trains on all votes, so that its targets have no "
                    "error; see where",
                )

    def _comparison(self, entry: Any, key: str) -> ComparisonSpec:
        entry = self._part(entry, key, ComparisonSpec, {"rows"})
        self.checks.number(entry.get("points", 3), f"{key}.points", 3, math.inf, whole=True)
        self.checks.number(entry.get("quantile", 0), f"{key}.quantile", 0, 1)
        for kind, fact in self.checks.mapping(
            entry.get("published", {}), f"{key}.published", set(COMPARED)
        ).items():
            self.checks.one_of(fact, published("facts"), f"{key}.published.{kind}")
        spec = ComparisonSpec(**entry)
        self._nothing_left_over(spec, {spec.rows}, key)
        return spec

    def _part(self, entry: Any, key: str, kind: type, needed: set[str]) -> dict[str, Any]:
        """Check what tables, figures and comparisons share: names, the grid, its factors and their
        levels.
        """
        checks = self.checks
        entry = dict(checks.mapping(entry, key, {f.name for f in fields(kind)} - INTERNAL))
        checks.present(entry, {"name", *needed}, key)
        if not re.fullmatch(r"[\w-]+", str(entry["name"])):
            checks.wrong(
                f"{key}.name",
                f"is {entry['name']}; it names files, so it must be letters, digits, _ and -",
            )
        grid = entry.setdefault("grid", next(iter(self.study.grids)))
        checks.one_of(grid, self.study.grid_names, f"{key}.grid")
        levels = self.collection.levels(grid)
        entry["where"], entry["levels"] = chosen_levels(
            checks, entry.get("where"), levels, f"{key}.where"
        )
        entry["planned_units"] = math.prod(
            len(entry["levels"][factor]) for factor in self.study.paired if factor in levels
        )
        for factor in entry.keys() & {"rows", "x", "lines", "panels", "groups"}:
            checks.one_of(entry[factor], levels, f"{key}.{factor}", f"a factor of the grid {grid}")
        if "reference" in entry and "rows" in entry:
            rows = entry["rows"]
            checks.one_of(
                entry["reference"], entry["levels"][rows], f"{key}.reference", f"a level of {rows}"
            )
        return {"title": entry["name"], **entry, "name": str(entry["name"])}

    def _nothing_left_over(self, part: Part, shown: set[str], key: str) -> None:
        nothing_left_over(self.checks, part.levels, shown, self.study.paired, key)

    def _with_published(self, entry: dict[str, Any], key: str) -> dict[str, Any]:
        """With the published numbers that it names, if it names any."""
        if "published" not in entry:
            return entry
        name, key = entry["published"], f"{key}.published"
        self.checks.one_of(name, published("tables"), key)
        result = published("tables")[name]
        if result.get("metric") != entry.get("metric"):
            has = (
                f"its columns are levels, of the metric {result['metric']}"
                if "metric" in result
                else "its columns are metrics"
            )
            self.checks.wrong(key, f"is {name}, which does not fit this table: {has}")
        if ("groups" in result) != ("groups" in entry):
            self.checks.wrong(
                key,
                f"is {name}, which does not fit this table: it has "
                f"{'' if 'groups' in result else 'no '}groups",
            )
        return {**entry, "published_entry": result}
