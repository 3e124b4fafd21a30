"""What the `report` section of a study's YAML may ask for.

`studies.report.section_reader` reads it, and docs/study-reference.md lists all of its options.
"""

from dataclasses import dataclass, replace
from typing import Any

from studies.analysis.claims.claim_reader import ClaimReader
from studies.analysis.claims.claim_spec import ClaimSpec
from studies.figures.figure_spec import FigureSpec
from studies.report.listing_specs import ChangesSpec, ComparisonSpec, DatasetsSpec, ModeShiftSpec
from studies.report.part import Part
from studies.report.table_spec import TableSpec
from studies.schema.checks import Checks
from studies.schema.grid_options import planned_units
from studies.schema.options import ABSENT, Kind, Text, option, options_of, read_entry


class Entries(Kind):
    """Parts of one sort, each an entry of a list."""

    words = "a list of entries"

    def __init__(self, part: type[Part]):
        self.part = part

    def read(self, value: Any, key: str, reading: Any) -> list[Any]:
        """Part by part."""
        entries = reading.checks.entries(value, key)
        return [self.read_one(entry, key, reading) for key, entry in entries]

    def read_one(self, entry: Any, key: str, reading: Any) -> Part:
        """An entry by the options of its part, then by what these say together."""
        return read_part(self.part, entry, key, reading)


def read_part(part: type[Part], entry: Any, key: str, reading: Any, **about: Any) -> Any:
    """A part of a report from its entry, checked against the study."""
    own = replace(reading, values={})
    values = read_entry(part, entry, key, own, **about)
    result = part(**values, planned_units=planned_units(values["levels"], reading.paired))
    result.check(key, own)
    own.check_runs(result, key)
    return result


class Figures(Entries):
    """Figures, each of a kind that has options of its own."""

    def __init__(self):
        super().__init__(FigureSpec)

    def read_one(self, entry: Any, key: str, reading: Any) -> FigureSpec:
        """By the options of its kind."""
        from studies.figures.kinds import figure_kinds, imported_kind

        checks, kinds = reading.checks, figure_kinds()
        name = entry.get("kind") if isinstance(entry, dict) else None
        if isinstance(name, str) and "." in name and (own := imported_kind(name)):
            kinds = {**kinds, name: own}
        every = {name for kind in kinds.values() for name in options_of(kind)}
        entry = dict(checks.mapping(entry, key, every | {"kind"}))
        checks.present(entry, {"name", "kind"}, key)
        checks.one_of(entry["kind"], kinds, f"{key}.kind")
        of = f"a figure of kind {entry['kind']}"
        return read_part(kinds[entry.pop("kind")], entry, key, reading, of=of, others=every)


class Claims(Kind):
    """Claims of papers, which may be about figures and comparisons of the same report."""

    words = "a list of entries"

    def read(self, value: Any, key: str, reading: Any) -> list[ClaimSpec]:
        """Claim by claim."""
        parts = (reading.values.get(name, []) for name in ("figures", "comparisons"))
        reader = ClaimReader(reading, *parts)
        entries = reading.checks.entries(value, key)
        claims = [reader.claim(entry, key) for key, entry in entries]
        reading.checks.unique([claim.id for claim in claims], key)
        return claims


class Labels(Kind):
    """What levels are called."""

    words = "a text by level"

    def read(self, value: Any, key: str, reading: Any) -> dict[Any, Any]:
        """As it is."""
        known = {
            str(level)
            for grid in reading.grids
            for levels in reading.levels_of(grid).values()
            for level in levels
        }
        return reading.checks.mapping(value or {}, key, known)


@dataclass(frozen=True)
class Section:
    """Everything that a report shows."""

    tables: list[TableSpec] = option(Entries(TableSpec), "means over seeds", default=[])
    figures: list[FigureSpec] = option(Figures(), "of the kinds below", default=[])
    comparisons: list[ComparisonSpec] = option(
        Entries(ComparisonSpec), "of networks with each other", default=[]
    )
    claims: list[ClaimSpec] = option(Claims(), "of papers, tested on the runs", default=[])
    scale: str = option(
        Text(),
        "how the scale was reduced, such as `30 epochs instead of 200`: said beside every table "
        "and figure",
        default="",
    )
    comment: str = option(
        Text(), "a paragraph of the author's at the top: what this shows, and what not", default=""
    )
    labels: dict[Any, str] = option(
        Labels(), "how levels are called in tables and figures", default={}
    )
    datasets: list[DatasetsSpec] = option(
        Entries(DatasetsSpec), "statistics of the data itself", default=[]
    )
    changes: list[ChangesSpec] = option(
        Entries(ChangesSpec), "of one level from another, in percent", default=[]
    )
    mode_shifts: list[ModeShiftSpec] = option(
        Entries(ModeShiftSpec),
        "gains in accuracy, split by whether the labels' class changed",
        default=[],
    )

    def label(self, level: Any) -> str:
        """How a level is called."""
        return str(self.labels.get(level, level))


def check_keys(section: Any, checks: Checks) -> None:
    """Refuse an option that no part of a report has, as soon as its file is read.

    What values mean depends on the runs, and is checked with them by
    `studies.report.section_reader`. So are the options of figures, whose kinds are found together
    with what they draw with.
    """
    options = options_of(Section)
    for name, entries in checks.mapping(section or {}, "report", set(options)).items():
        kind = options[name].metadata["kind"]
        if isinstance(kind, Figures) or not isinstance(kind, Entries | Claims):
            continue
        part = kind.part if isinstance(kind, Entries) else ClaimSpec
        for key, entry in checks.entries(entries, f"report.{name}"):
            checks.mapping(entry, key, set(options_of(part)))


__all__ = [
    "ABSENT",
    "ChangesSpec",
    "ClaimSpec",
    "ComparisonSpec",
    "DatasetsSpec",
    "FigureSpec",
    "ModeShiftSpec",
    "Part",
    "Section",
    "TableSpec",
    "check_keys",
]
