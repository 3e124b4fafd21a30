"""A table of a report as Markdown, CSV, LaTeX and HTML.

The first three are for papers and programs, so CSV keeps every digit.
"""

import math
from collections.abc import Iterator
from typing import Any

from studies.analysis.uncertainty.needed import needed
from studies.report.section import Section
from studies.tables.captions import table_caption
from studies.tables.grid import (
    NOTHING,
    Column,
    Grid,
    GridCell,
    csv_text,
    grid_html,
    grid_markdown,
    grid_tex,
)
from studies.tables.measures import factor_name
from studies.tables.tables import Cell, Table
from studies.tables.worth_rows import (
    WORTH_COLUMNS,
    bound_rows,
    ensemble_row,
    with_skill,
    worth_numbers,
)

CSV_COLUMNS: tuple[str, ...] = (
    *("table", "group", "row", "column", "metric", "mean", "sd", "n", "best"),
    *("reference", "test", "alternative", "p", "p_holm", "minimum_p", "pairs", "agree", "agree_of"),
    *("effect_size", "difference", "difference_low", "difference_high", "random", "p_seeds"),
    *("items", "votes_per_item", "seeds_needed", "items_needed", "votes_needed"),
    *("published_mean", "published_sd", "published_p", "published_where", "simulated", "scale"),
    *WORTH_COLUMNS,
)


def heading(table: Table, column: Any, section: Section) -> str:
    """What stands above a column: its measure, or the level of a factor that it is about."""
    if table.spec.pivot:
        return f"{factor_name(table.spec.columns)} = {section.label(column)}"
    return table.measure(column).name + table.measure(column).arrow


def lines_of(cell: Cell, digits: int, most: int) -> tuple[str, str, str]:
    """A cell as read by people: the measured value, the comparison with the reference, the
    published value; empty where there is none.

    The number of seeds is said where it is below `most`, that of the other cells.
    """
    if cell.summary is None:
        return NOTHING, "", _published(cell, digits)
    details = [f"n = {cell.summary.n}"] if cell.summary.n < most else []
    if cell.test:
        details.append(f"p {p_value(cell.p)}")
    if not math.isnan(cell.holm_p):
        details.append(f"Holm {p_value(cell.holm_p)}")
    if cell.agreement:
        details.append("{}/{}".format(*cell.agreement))
    return (
        with_sd(cell.summary.mean, cell.summary.sd, digits),
        ", ".join(details),
        _published(cell, digits),
    )


def difference_lines(cell: Cell, digits: int) -> dict[str, str]:
    """The difference from the reference with its interval, and what it would take to see it."""
    if cell.difference is None:
        return {}
    low, high = cell.interval
    words = needed(cell.difference).in_short()
    shown = f"Δ {cell.difference.mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"
    return {"difference": shown, "needed": f"needs {words}" if words else ""}


def with_sd(mean: float, sd: float, digits: int) -> str:
    """A mean with its standard deviation, where there is one.

    >>> with_sd(0.50961, 0.0233, 4), with_sd(0.50961, math.nan, 4)
    ('0.5096 ± 0.0233', '0.5096')
    """
    return f"{mean:.{digits}f}" + ("" if math.isnan(sd) else f" ± {sd:.{digits}f}")


def p_value(p: float) -> str:
    """A p-value to three digits, unless it is tiny.

    >>> p_value(0.0625), p_value(1.0), p_value(0.00001)
    ('0.0625', '1', '< 0.0001')
    """
    return "< 0.0001" if p < 0.0001 else f"{p:.3g}"


def _published(cell: Cell, digits: int) -> str:
    if not cell.published:
        return ""
    p = f" (p {p_value(cell.published['p'])})" if "p" in cell.published else ""
    return (
        "published "
        f"{with_sd(cell.published['mean'], cell.published.get('sd', math.nan), digits)}{p}"
    )


def table_grid(table: Table, section: Section) -> Grid:
    """What people see of a table; the label of a group stands in its first row alone.

    Below a row stands the ensemble of its seeds, and below a block of rows their floor and ceiling.
    """
    factors = [factor for factor in (table.spec.groups, table.spec.rows) if factor]
    columns = [Column(factor_name(factor), "label", right=False) for factor in factors]
    columns += [Column(heading(table, c, section), "value", right=True) for c in table.columns]
    most = max((cell.summary.n for cell in table.cells.values() if cell.summary), default=0)
    rows = []
    for block in table.spec.blocks:
        for row in block:
            labels = [section.label(level) for level in table.spec.in_row(row).values()]
            shown = labels if row == block[0] or len(labels) == 1 else ["", labels[1]]
            values = [
                with_skill(_value(table, row, column, most), table.cells[row, column])
                for column in table.columns
            ]
            rows.append([*map(GridCell, shown), *values])
            rows += _below(factors, [ensemble_row(table, row)])
        rows += _below(factors, bound_rows(table, block))
    caption = table_caption(table, section)
    return Grid(table.spec.name, table.spec.title, caption, columns, rows)


def _below(factors: list[str], rows: list[list[GridCell]]) -> list[list[GridCell]]:
    """Rows that have a label alone, in as many columns as others."""
    return [[*[GridCell("")] * (len(factors) - 1), *row] for row in rows if row]


def _value(table: Table, row: Any, column: Any, most: int) -> GridCell:
    cell = table.cells[row, column]
    value, details, published = lines_of(cell, table.measure(column).digits, most)
    difference = difference_lines(cell, table.measure(column).digits)
    return GridCell(value, cell.best, {"p": details, **difference, "published": published})


def to_markdown(table: Table, section: Section) -> str:
    """For a file of its own."""
    return grid_markdown(table_grid(table, section))


def to_tex(table: Table, section: Section) -> str:
    """A table environment for booktabs.

    What stands below a value in other formats is a line of its own, in small type.
    """
    return grid_tex(table_grid(table, section))


def to_html(table: Table, section: Section) -> str:
    """The table alone, for a page."""
    return grid_html(table_grid(table, section))


def to_csv(table: Table, section: Section) -> str:
    """One line per cell with every number that the table shows or was computed from; what there is
    not is empty.
    """
    return csv_text(CSV_COLUMNS, _records(table, section))


def _records(table: Table, section: Section) -> Iterator[dict[str, Any]]:
    spec = table.spec
    of_table: dict[str, Any] = {
        "table": spec.name,
        "simulated": any(r.results.get("simulated_annotators") for r in table.records),
        "scale": section.scale,
    }
    if any(cell.test for cell in table.cells.values()):
        of_table |= {
            "reference": spec.reference,
            "test": spec.test,
            "alternative": spec.alternative,
        }
    for (row, column), cell in table.cells.items():
        place = dict(zip(("row", "group"), reversed(spec.in_row(row).values()), strict=False))
        of_cell = {"column": column, "metric": spec.cell(column)[0], "best": cell.best}
        yield {**of_table, **place, **of_cell, **_numbers(cell, table), **worth_numbers(cell)}


def _numbers(cell: Cell, table: Table) -> dict[str, Any]:
    """What was computed or published of a cell, by column of the CSV."""
    numbers: dict[str, Any] = cell.summary._asdict() if cell.summary else {}
    if cell.test:
        numbers |= {
            "p": cell.p,
            "p_seeds": cell.test.p,
            "p_holm": cell.holm_p,
            "minimum_p": cell.test.minimum_p,
            "pairs": cell.test.n,
            "effect_size": cell.effect_size,
            "difference_low": cell.interval[0],
            "difference_high": cell.interval[1],
        }
    if cell.difference:
        found, wanted = cell.difference, needed(cell.difference)
        numbers |= {
            "difference": found.mean,
            "random": "seeds, items, votes" if found.items else "seeds",
            "items": found.items or math.nan,
            "votes_per_item": found.votes_per_item,
            "seeds_needed": wanted.seeds,
            "items_needed": wanted.items,
            "votes_needed": wanted.votes,
        }
    if cell.agreement:
        numbers |= {"agree": cell.agreement[0], "agree_of": cell.agreement[1]}
    if cell.published:
        entry = table.spec.published_entry
        numbers |= {f"published_{name}": value for name, value in cell.published.items()}
        numbers["published_where"] = f"{entry['source']}, {entry['where']}"
    return numbers
