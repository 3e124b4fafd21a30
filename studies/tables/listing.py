"""A plain table, one row per thing, as Markdown, CSV, LaTeX and HTML.

CSV has every column and every digit; people see the columns that are shown.
"""

import math
from dataclasses import dataclass
from typing import Any

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

LONG = 24  # characters from which a column is text that may be broken into lines


@dataclass(frozen=True)
class Listing:
    """Rows of values by column. A text may have several lines."""

    name: str  # of its files
    title: str
    caption: list[str]
    shown: dict[str, str]  # columns that people see, with their headings
    rows: list[dict[str, Any]]
    hidden: tuple[str, ...] = ()  # columns that the CSV leaves out, because others say the same
    inline: bool = True  # False: too long for a page, so only a file

    def cells(self, row: dict[str, Any]) -> list[str]:
        """The texts that people see of a row."""
        return [in_words(row[column]) for column in self.shown]

    def is_long(self, column: str) -> bool:
        """Whether a column's texts may be broken into lines."""
        return max((len(in_words(row[column])) for row in self.rows), default=0) > LONG

    def is_number(self, column: str) -> bool:
        """Whether a column holds nothing but numbers."""
        return all(isinstance(row[column], int | float) for row in self.rows)

    def grid(self) -> Grid:
        """What people see of it."""
        columns = []
        for name, heading in self.shown.items():
            number = self.is_number(name)
            kind = "long" if self.is_long(name) else "number" if number else "word"
            columns.append(Column(heading, kind, right=number))
        rows = [[GridCell(text) for text in self.cells(row)] for row in self.rows]
        return Grid(self.name, self.title, self.caption, columns, rows, css_class="listing")


def in_words(value: Any) -> str:
    """A value as people read it.

    >>> in_words(0.12345), in_words(7), in_words(float("nan")), in_words("SLS")
    ('0.1235', '7', '–', 'SLS')
    """
    if isinstance(value, float):
        return NOTHING if math.isnan(value) else f"{value:.4f}"
    return str(value)


def listing_markdown(listing: Listing, heading: bool = True) -> str:
    """For a file of its own, or without its title for a place that has one."""
    return grid_markdown(listing.grid(), heading)


def listing_csv(listing: Listing) -> str:
    """All columns, shown or not, but those that others stand for."""
    first = listing.rows[0] if listing.rows else listing.shown
    columns = [name for name in first if name not in listing.hidden]
    return csv_text(
        columns, ({name: row.get(name, "") for name in columns} for row in listing.rows)
    )


def listing_tex(listing: Listing) -> str:
    """A table environment for booktabs."""
    return grid_tex(listing.grid())


def listing_html(listing: Listing) -> str:
    """The table alone, for a page."""
    return grid_html(listing.grid())
