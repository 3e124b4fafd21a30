"""The `report` section of a study's YAML, checked against the study and its finished runs before anything is drawn. See `studies.report`."""

import math
import re
from dataclasses import fields
from typing import Any

from studies.claim_reader import ClaimReader
from studies.collect import Collection
from studies.factor_levels import chosen_levels, nothing_left_over
from studies.measures import MEASURES
from studies.published_numbers import published
from studies.report_section import KINDS, ComparisonSpec, FigureSpec, Part, Section, TableSpec
from studies.section_checks import Checks
from studies.study import Study

CHOICES = {"test": ("wilcoxon", "t"), "alternative": ("two-sided", "less", "greater"), "family": ("holm",)}
KEYS = {"scale", "labels", "comment", "tables", "figures", "comparisons", "claims"}
INTERNAL = {"levels", "planned_units", "published_entry"}  # of specs, not of the YAML


def read_section(study: Study, collection: Collection) -> Section:
    """The section with its defaults filled in; a mistake raises an InputError that names the file and the key."""
    return _Reader(study, collection).section()


class _Reader:
    def __init__(self, study: Study, collection: Collection):
        self.study, self.collection, self.checks = study, collection, Checks(study.path)
        self.metrics = {*MEASURES, *(name for record in collection.finished.values() for name in record.metrics)}

    def section(self) -> Section:
        checks = self.checks
        content = checks.mapping(self.study.report or {}, "report", KEYS)
        tables = [self._table(entry, key) for key, entry in checks.entries(content.get("tables"), "report.tables")]
        figures = [self._figure(entry, key) for key, entry in checks.entries(content.get("figures"), "report.figures")]
        compared = [self._comparison(entry, key) for key, entry in checks.entries(content.get("comparisons"), "report.comparisons")]
        for key, parts in (("tables", tables), ("figures", figures), ("comparisons", compared)):
            checks.unique([part.name for part in parts], f"report.{key}")
        reader = ClaimReader(self.study, self.collection, checks, self.metrics, figures, compared)
        claims = [reader.claim(entry, key) for key, entry in checks.entries(content.get("claims"), "report.claims")]
        checks.unique([claim.id for claim in claims], "report.claims")
        files = [part.name for part in (*tables, *compared)] + ["claims"] * bool(claims)
        files += [f"{spec.name}-{what}" for spec in figures if spec.kind == "target_error" for what in ("spearman", "bins")]
        files += [f"{name}-options" for name in self.study.selections]
        checks.unique(files, "report")
        known = {str(level) for grid in self.study.grid_names for levels in self.collection.levels(grid).values() for level in levels}
        labels = checks.mapping(content.get("labels") or {}, "report.labels", known)
        scale, comment = (str(content.get(key) or "") for key in ("scale", "comment"))
        return Section(tables, figures, compared, claims, scale, comment, labels)

    def _table(self, entry: Any, key: str) -> TableSpec:
        entry, checks = self._part(entry, key, TableSpec, {"rows", "columns"}), self.checks
        if isinstance(entry["columns"], str):
            checks.one_of(entry["columns"], entry["levels"], f"{key}.columns", "a list of metrics or a factor of the grid")
            if "metric" not in entry:
                checks.wrong(f"{key}.metric", "is missing; a table whose columns are a factor shows one metric")
            checks.one_of(entry["metric"], self.metrics, f"{key}.metric", "a metric")
        elif "metric" in entry:
            checks.wrong(f"{key}.metric", "is only for a table whose columns are a factor")
        elif not isinstance(entry["columns"], list) or not entry["columns"]:
            checks.wrong(f"{key}.columns", "must be a list of metrics or a factor of the grid")
        else:
            for metric in entry["columns"]:
                checks.one_of(metric, self.metrics, f"{key}.columns", "a metric")
        for name, allowed in CHOICES.items():
            if name in entry:
                checks.one_of(entry[name], allowed, f"{key}.{name}")
                if "reference" not in entry:
                    checks.wrong(f"{key}.{name}", "needs a reference, the row that the others are tested against")
        if "published" in entry:
            entry["published_entry"] = self._published(entry["published"], entry.get("metric"), f"{key}.published")
        spec = TableSpec(**entry)
        self._nothing_left_over(spec, {spec.rows, spec.columns} if spec.pivot else {spec.rows}, key)
        return spec

    def _figure(self, entry: Any, key: str) -> FigureSpec:
        entry, checks = self._part(entry, key, FigureSpec, {"kind"}), self.checks
        checks.one_of(entry["kind"], KINDS, f"{key}.kind")
        kind = KINDS[entry["kind"]]
        given = entry.keys() - {"kind", *(f.name for f in fields(Part) if f.name != "rows")}
        odd = sorted((kind.needed - given) | (given - kind.needed - kind.optional))
        if odd:
            said = "is missing from" if odd[0] in kind.needed else "does not belong in"
            checks.wrong(f"{key}.{odd[0]}", f"{said} a figure of kind {entry['kind']}")
        if "metric" in entry:
            self._figure_metric(entry, f"{key}.metric")
        for name, allowed in (("distance", ("js", "l1")), ("items", ("all", "high"))):
            checks.one_of(entry.get(name, allowed[0]), allowed, f"{key}.{name}")
        checks.number(entry.get("quantile", 0), f"{key}.quantile", 0, 1)
        checks.number(entry.get("bins", 1), f"{key}.bins", 1, math.inf, whole=True)
        spec = FigureSpec(**entry)
        shown = [factor for factor in (spec.rows, spec.x, spec.lines, spec.panels) if factor]
        if spec.x and not all(isinstance(level, int | float) and not isinstance(level, bool) for level in spec.levels[spec.x]):
            checks.wrong(f"{key}.x", f"is {spec.x}, whose levels are not all numbers; leave the others out with where")
        self._nothing_left_over(spec, set(shown), key)
        if spec.kind == "target_error":
            self._sparse_only(spec, key)
        return spec

    def _figure_metric(self, entry: dict[str, Any], key: str) -> None:
        metric = entry["metric"]
        if entry["kind"] == "history":  # its columns are those of the runs' history.json
            if not isinstance(metric, str):
                self.checks.wrong(key, f"is {metric}; it must be one column of history.json, such as val/soft_nll")
            return
        if metric == []:
            self.checks.wrong(key, "is an empty list; it must name at least one metric")
        for one in metric if isinstance(metric, list) else [metric]:
            self.checks.one_of(one, self.metrics, key, "a metric")

    def _sparse_only(self, spec: FigureSpec, key: str) -> None:
        """Only a target made from few votes has an error."""
        for run in self.collection.planned:
            levels = run.factors.get(spec.grid)
            shown = levels and all(levels[factor] in chosen for factor, chosen in spec.where.items())
            if shown and run.config["data"]["init_args"].get("votes_per_item") is None:
                self.checks.wrong(key, f"shows {run.name}, which trains on all votes, so that its targets have no error; see where")

    def _comparison(self, entry: Any, key: str) -> ComparisonSpec:
        entry = self._part(entry, key, ComparisonSpec, {"rows"})
        self.checks.number(entry.get("points", 3), f"{key}.points", 3, math.inf, whole=True)
        self.checks.number(entry.get("quantile", 0), f"{key}.quantile", 0, 1)
        spec = ComparisonSpec(**entry)
        self._nothing_left_over(spec, {spec.rows}, key)
        return spec

    def _part(self, entry: Any, key: str, kind: type, needed: set[str]) -> dict[str, Any]:
        """Check what tables, figures and comparisons share: names, the grid, its factors and their levels."""
        checks = self.checks
        entry = dict(checks.mapping(entry, key, {f.name for f in fields(kind)} - INTERNAL))
        checks.present(entry, {"name", *needed}, key)
        if not re.fullmatch(r"[\w-]+", str(entry["name"])):
            checks.wrong(f"{key}.name", f"is {entry['name']}; it names files, so it must be letters, digits, _ and -")
        grid = entry.setdefault("grid", next(iter(self.study.grids)))
        checks.one_of(grid, self.study.grid_names, f"{key}.grid")
        levels = self.collection.levels(grid)
        entry["where"], entry["levels"] = chosen_levels(checks, entry.get("where"), levels, f"{key}.where")
        entry["planned_units"] = math.prod(len(entry["levels"][factor]) for factor in self.study.paired if factor in levels)
        for factor in entry.keys() & {"rows", "x", "lines", "panels"}:
            checks.one_of(entry[factor], levels, f"{key}.{factor}", f"a factor of the grid {grid}")
        if "reference" in entry and "rows" in entry:
            rows = entry["rows"]
            checks.one_of(entry["reference"], entry["levels"][rows], f"{key}.reference", f"a level of {rows}")
        return {"title": entry["name"], **entry, "name": str(entry["name"])}

    def _nothing_left_over(self, part: Part, shown: set[str], key: str) -> None:
        nothing_left_over(self.checks, part.levels, shown, self.study.paired, key)

    def _published(self, name: Any, metric: str | None, key: str) -> dict[str, Any]:
        self.checks.one_of(name, published("tables"), key)
        entry = published("tables")[name]
        if entry.get("metric") != metric:
            has = f"its columns are levels, of the metric {entry['metric']}" if "metric" in entry else "its columns are metrics"
            self.checks.wrong(key, f"is {name}, which does not fit this table: {has}")
        return entry
