"""The reference of everything that a study's YAML may say, made of the descriptions that it is read
by.

    python -m studies.schema.reference    # writes docs/study-reference.md
"""

import inspect
from collections.abc import Set
from dataclasses import Field
from pathlib import Path
from typing import Any

from studies.analysis.claims.claim_spec import NEEDED, OPTIONAL, SOURCES, SUPPORTED, ClaimSpec
from studies.figures.figure_spec import FigureSpec
from studies.figures.kinds import figure_kinds
from studies.plan.selection import Selection
from studies.plan.study import Study
from studies.report.listing_specs import ChangesSpec, ComparisonSpec, DatasetsSpec, ModeShiftSpec
from studies.report.part import Part
from studies.report.section import Section
from studies.report.table_spec import TableSpec
from studies.schema.options import ABSENT, is_needed, options_of

PAGE = Path(__file__).parents[2] / "docs" / "study-reference.md"
PARTS = {
    "datasets": DatasetsSpec,
    "tables": TableSpec,
    "changes": ChangesSpec,
    "mode_shifts": ModeShiftSpec,
    "comparisons": ComparisonSpec,
}
HEAD = """\
# Study reference

<!-- Written by python -m studies.schema.reference from the code; edit the code, not this page. -->

Every entry of a study's YAML. `python cli.py study plan STUDY.yaml` checks all of them, and says in
a sentence what is wrong and what was probably meant, before anything trains. Options in **bold**
must be given.
"""


def reference() -> str:
    """The page, in Markdown."""
    common = set(options_of(FigureSpec))
    parts = [HEAD, *described(Study, "A study"), *described(Selection, "selections", "NAME: ")]
    parts += described(Section, "report")
    parts += [
        "### What all parts of a report take",
        "Tables, figures and the others are entries of lists. Any factor that is neither shown\n"
        "nor `paired` must be fixed with `where`, because a mean over it would mix different\n"
        "experiments.",
        options_table(Part),
    ]
    for name, part in PARTS.items():
        parts += described(part, f"report.{name}", "- ", set(options_of(Part)))
    parts += [
        "## report.figures",
        "Each figure has a `kind`, which has options of its own besides those of all parts and\n"
        "`published`. A kind of one's own is named by its class, such as `box.Box`.",
        options_table(FigureSpec, set(options_of(Part))),
    ]
    for name, kind in figure_kinds().items():
        parts += described(kind, f"kind: {name}", "- ", common, level=3)
        if kind.tables:
            listed = ", ".join(f"NAME-{table}" for table in kind.tables)
            parts.append(f"Its numbers are written as the tables {listed}.")
    parts += [*described(ClaimSpec, "report.claims", "- "), claims_table()]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def described(
    described_by: Any, title: str, entry: str = "", without: Set[str] = frozenset(), level: int = 2
) -> list[str]:
    """What a dataclass describes: its words, its options, and an example."""
    parts = [f"{'#' * level} {title}", inspect.cleandoc(described_by.__doc__)]
    table = options_table(described_by, without)
    example = getattr(described_by, "example", "")
    if entry and example:
        indent = " " * (len(entry) if entry == "- " else 2)
        first, *rest = example.rstrip().splitlines()
        start = entry + first if entry == "- " else f"{entry.strip()}\n{indent}{first}"
        example = "\n".join([start, *(indent + line for line in rest)])
    return parts + [table] * bool(table) + [f"```yaml\n{example.rstrip()}\n```"] * bool(example)


def options_table(described_by: type, without: Set[str] = frozenset()) -> str:
    """The options of a dataclass, one row each."""
    rows = [
        f"| {f'**{name}**' if is_needed(option) else name} | {_cell(option.metadata['kind'].words)}"
        f" | {_cell(option.metadata['what'])}{_default(option)} |"
        for name, option in options_of(described_by).items()
        if name not in without
    ]
    return "\n".join(["| option | value | what it is |", "|---|---|---|", *rows]) if rows else ""


def claims_table() -> str:
    """What each test of a claim needs, and when it supports the claim."""
    rows = []
    for test, supported in SUPPORTED.items():
        needs = ", ".join(sorted(NEEDED[test]))
        more = f"; may have {', '.join(sorted(OPTIONAL[test]))}" if test in OPTIONAL else ""
        on = ", ".join(source for source, (_, _, tests) in SOURCES.items() if test in tests)
        rows.append(f"| {test} | {needs}{more} | {on} | {supported} |")
    return "\n".join(["| test | needs | on values of | supported if |", "|---|---|---|---|", *rows])


def _default(option: Field) -> str:
    plain = isinstance(option.default, str | int | float) and option.default not in ("", ABSENT)
    return f" (`{str(option.default).lower()}`)" if plain else ""


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(reference())
