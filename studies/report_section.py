"""What the `report` section of a study's YAML asks for, checked against the study before anything is drawn. See `studies.report`."""

import math
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

import yaml

from errors import InputError
from studies.collect import Collection, Record
from studies.measures import MEASURES
from studies.study import Study

PUBLISHED = Path(__file__).parent / "published"
CHOICES = {"test": ("wilcoxon", "t"), "alternative": ("two-sided", "less", "greater"), "family": ("holm",)}
ABSENT: Any = object()  # null may be a level
NEEDED = {"points": {"metric", "rows"}, "lines": {"metric", "x", "lines"}, "curves": {"rows"}}


@dataclass(frozen=True)
class Part:
    """What a table and a figure have in common: the runs that they show."""

    name: str
    title: str = ""
    grid: str = ""
    where: dict[str, list] = field(default_factory=dict)
    rows: str = ""
    metric: str = ""
    levels: dict[str, list] = field(default_factory=dict, repr=False)  # of every factor, after `where`
    planned_units: int = 1  # how many seeds a mean has when all runs are finished

    def select(self, records: list[Record]) -> list[Record]:
        return [r for r in records if all(r.factors[factor] in levels for factor, levels in self.where.items())]


@dataclass(frozen=True)
class TableSpec(Part):
    columns: Any = None  # a list of metrics, or one factor
    reference: Any = ABSENT
    test: str = "wilcoxon"
    alternative: str = "two-sided"
    family: str = ""
    published: str = ""
    published_entry: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def pivot(self) -> bool:
        return isinstance(self.columns, str)

    def cell(self, column: Any) -> tuple[str, dict[str, Any]]:
        """The metric that a column shows, and the levels that it is restricted to."""
        return (self.metric, {self.columns: column}) if self.pivot else (column, {})

    @property
    def column_keys(self) -> list[Any]:
        return self.levels[self.columns] if self.pivot else self.columns


@dataclass(frozen=True)
class FigureSpec(Part):
    kind: str = ""
    x: str = ""
    lines: str = ""


@dataclass(frozen=True)
class Section:
    tables: list[TableSpec]
    figures: list[FigureSpec]
    scale: str = ""
    labels: dict[Any, str] = field(default_factory=dict)

    def label(self, level: Any) -> str:
        return str(self.labels.get(level, level))


def read_section(study: Study, collection: Collection) -> Section:
    """The section with its defaults filled in; a mistake raises an InputError that names the file and the key."""
    return _Reader(study, collection).section()


class _Reader:
    def __init__(self, study: Study, collection: Collection):
        self.study, self.collection = study, collection
        self.metrics = {*MEASURES, *(name for record in collection.finished.values() for name in record.metrics)}

    def section(self) -> Section:
        content = self._mapping(self.study.report or {}, "report", {"scale", "labels", "tables", "figures"})
        tables = [self._table(entry, f"report.tables[{i}]") for i, entry in enumerate(content.get("tables") or [])]
        figures = [self._figure(entry, f"report.figures[{i}]") for i, entry in enumerate(content.get("figures") or [])]
        for key, parts in (("tables", tables), ("figures", figures)):
            names = [part.name for part in parts]
            if len(set(names)) < len(names):
                self._wrong(f"report.{key}", f"uses the name {max(names, key=names.count)} twice; every name must be its own")
        known = {str(level) for grid in self.study.grids for levels in self.collection.levels(grid).values() for level in levels}
        labels = self._mapping(content.get("labels") or {}, "report.labels", known)
        return Section(tables, figures, str(content.get("scale") or ""), labels)

    def _table(self, entry: Any, key: str) -> TableSpec:
        entry = self._part(entry, key, TableSpec, {"rows", "columns"})
        if isinstance(entry["columns"], str):
            self._one_of(entry["columns"], entry["levels"], f"{key}.columns", "a list of metrics or a factor of the grid")
            if "metric" not in entry:
                self._wrong(f"{key}.metric", "is missing; a table whose columns are a factor shows one metric")
        elif "metric" in entry:
            self._wrong(f"{key}.metric", "is only for a table whose columns are a factor")
        elif not isinstance(entry["columns"], list) or not entry["columns"]:
            self._wrong(f"{key}.columns", "must be a list of metrics or a factor of the grid")
        else:
            for metric in entry["columns"]:
                self._one_of(metric, self.metrics, f"{key}.columns", "a metric")
        for name, allowed in CHOICES.items():
            if name in entry:
                self._one_of(entry[name], allowed, f"{key}.{name}")
                if "reference" not in entry:
                    self._wrong(f"{key}.{name}", "needs a reference, the row that the others are tested against")
        if "reference" in entry:
            self._one_of(entry["reference"], entry["levels"][entry["rows"]], f"{key}.reference", f"a level of {entry['rows']}")
        if "published" in entry:
            entry["published_entry"] = self._published(entry["published"], entry.get("metric"), f"{key}.published")
        spec = TableSpec(**entry)
        self._nothing_left_over(spec, {spec.rows, spec.columns} if spec.pivot else {spec.rows}, key)
        return spec

    def _figure(self, entry: Any, key: str) -> FigureSpec:
        entry = self._part(entry, key, FigureSpec, {"kind"})
        self._one_of(entry["kind"], NEEDED, f"{key}.kind")
        given, needed = entry.keys() & {"metric", "rows", "x", "lines"}, NEEDED[entry["kind"]]
        if given != needed:
            odd = sorted(given ^ needed)[0]
            self._wrong(f"{key}.{odd}", f"{'is missing from' if odd in needed else 'does not belong in'} a figure of kind {entry['kind']}")
        spec = FigureSpec(**entry)
        shown = [factor for factor in (spec.rows, spec.x, spec.lines) if factor]
        if spec.x and not all(isinstance(level, int | float) and not isinstance(level, bool) for level in spec.levels[spec.x]):
            self._wrong(f"{key}.x", f"is {spec.x}, whose levels are not all numbers; leave the others out with where")
        self._nothing_left_over(spec, set(shown), key)
        return spec

    def _part(self, entry: Any, key: str, kind: type, needed: set[str]) -> dict[str, Any]:
        """Check what tables and figures share: names, the grid, its factors and their levels."""
        entry = dict(self._mapping(entry, key, {f.name for f in fields(kind)} - {"levels", "planned_units", "published_entry"}))
        absent = sorted({"name", *needed} - entry.keys())
        if absent:
            self._wrong(f"{key}.{absent[0]}", "is missing")
        if not re.fullmatch(r"[\w-]+", str(entry["name"])):
            self._wrong(f"{key}.name", f"is {entry['name']}; it names files, so it must be letters, digits, _ and -")
        grid = entry.setdefault("grid", next(iter(self.study.grids)))
        self._one_of(grid, self.study.grids, f"{key}.grid")
        levels = self.collection.levels(grid)
        where = self._mapping(entry.get("where") or {}, f"{key}.where", set(levels))
        entry["where"] = {factor: chosen if isinstance(chosen, list) else [chosen] for factor, chosen in where.items()}
        for factor, chosen in entry["where"].items():
            for level in chosen:
                self._one_of(level, levels[factor], f"{key}.where.{factor}", f"a level of {factor}")
        entry["levels"] = {f: [level for level in all_ if level in entry["where"].get(f, all_)] for f, all_ in levels.items()}
        entry["planned_units"] = math.prod(len(entry["levels"][factor]) for factor in self.study.paired if factor in levels)
        for factor in entry.keys() & {"rows", "x", "lines"}:
            self._one_of(entry[factor], levels, f"{key}.{factor}", f"a factor of the grid {grid}")
        if "metric" in entry:
            self._one_of(entry["metric"], self.metrics, f"{key}.metric", "a metric")
        return {"title": entry["name"], **entry, "name": str(entry["name"])}

    def _nothing_left_over(self, part: Part, shown: set[str], key: str) -> None:
        """A mean over a factor that is neither shown nor paired would mix different experiments unsaid."""
        for factor in shown.intersection(self.study.paired):
            self._wrong(key, f"shows {factor}, which is paired: its levels are what means are taken over")
        for factor, levels in part.levels.items():
            if len(levels) > 1 and factor not in shown and factor not in self.study.paired:
                self._wrong(key, f"would average over {factor}; show that factor, or fix its level with where")

    def _published(self, name: Any, metric: str | None, key: str) -> dict[str, Any]:
        known = {
            f"{path.stem}.{entry}": path
            for path in sorted(PUBLISHED.glob("*.yaml"))
            for entry in yaml.safe_load(path.read_text())["tables"]
        }
        self._one_of(name, known, key)
        content = yaml.safe_load(known[name].read_text())
        entry = content["tables"][name.split(".", 1)[1]]
        if entry.get("metric") != metric:
            has = f"its columns are levels, of the metric {entry['metric']}" if "metric" in entry else "its columns are metrics"
            self._wrong(key, f"is {name}, which does not fit this table: {has}")
        return {"paper": content["paper"], "source": content["source"], "setting": content["setting"], **entry}

    def _mapping(self, value: Any, key: str, allowed: set[str]) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._wrong(key, f"must have entries, of {', '.join(sorted(allowed))}")
        for name in value:
            if str(name) not in allowed:
                self._wrong(f"{key}.{name}", f"is not an option; allowed are {', '.join(sorted(allowed))}")
        return value

    def _one_of(self, value: Any, allowed: Any, key: str, kind: str = "") -> None:
        if isinstance(value, list | dict) or value not in allowed:
            choices = ", ".join(str(choice) for choice in (sorted(allowed) if isinstance(allowed, set) else allowed))
            self._wrong(key, f"is {value}; it must be {kind + ': ' if kind else 'one of '}{choices}")

    def _wrong(self, key: str, what: str) -> NoReturn:
        raise InputError(f"{self.study.path}: {key} {what}.")
