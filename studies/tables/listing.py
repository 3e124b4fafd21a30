"""A plain table, one row per thing, as Markdown, CSV, LaTeX and HTML.

CSV has every column and every digit; people see the columns that are shown.
"""

import csv
import html
import io
import math
from dataclasses import dataclass
from typing import Any

from studies.tables.markdown import markdown_row, markdown_text, raw_row
from studies.tables.table_formats import NOTHING, tex_escape

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
        return [in_words(row[column]) for column in self.shown]

    def is_long(self, column: str) -> bool:
        return max((len(in_words(row[column])) for row in self.rows), default=0) > LONG

    def is_number(self, column: str) -> bool:
        return all(isinstance(row[column], int | float) for row in self.rows)


def in_words(value: Any) -> str:
    """
    >>> in_words(0.12345), in_words(7), in_words(float("nan")), in_words("SLS")
    ('0.1235', '7', '–', 'SLS')
    """
    if isinstance(value, float):
        return NOTHING if math.isnan(value) else f"{value:.4f}"
    return str(value)


def listing_markdown(listing: Listing, heading: bool = True) -> str:
    text = [f"## {markdown_text(listing.title)}", ""] * heading + [
        *(f"{markdown_text(sentence)}  " for sentence in listing.caption),
        "",
    ]
    text += [markdown_row(list(listing.shown.values()))]
    text += [raw_row(["---:" if listing.is_number(column) else "---" for column in listing.shown])]
    text += [markdown_row(listing.cells(row)) for row in listing.rows]
    return "\n".join(text) + "\n"


def listing_csv(listing: Listing) -> str:
    stream = io.StringIO()
    columns = [
        column
        for column in (listing.rows[0] if listing.rows else listing.shown)
        if column not in listing.hidden
    ]
    writer = csv.DictWriter(stream, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in listing.rows:
        writer.writerow(
            {
                name: "" if isinstance(value, float) and math.isnan(value) else value
                for name, value in row.items()
            }
        )
    return stream.getvalue()


def listing_tex(listing: Listing) -> str:
    """A table environment for booktabs; long texts share what a line of the page has left."""
    long = [column for column in listing.shown if listing.is_long(column)]
    width = 0.6 / max(len(long), 1)
    kinds = [
        rf"p{{{width:.2f}\linewidth}}" if c in long else "r" if listing.is_number(c) else "l"
        for c in listing.shown
    ]
    caption = tex_escape(" ".join([f"{listing.title}.", *listing.caption]))
    rows = [
        " & ".join(tex_escape(cell).replace("\n", r" \newline ") for cell in listing.cells(row))
        + r" \\"
        for row in listing.rows
    ]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{listing.name}}}",
            rf"\begin{{tabular}}{{{''.join(kinds)}}}",
            r"\toprule",
            " & ".join(tex_escape(text) for text in listing.shown.values()) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def listing_html(listing: Listing) -> str:
    kinds = [
        "long" if listing.is_long(column) else "number" if listing.is_number(column) else "word"
        for column in listing.shown
    ]
    head = "".join(
        f'<th scope="col" class="{kind}">{html.escape(text)}</th>'
        for kind, text in zip(kinds, listing.shown.values(), strict=True)
    )
    text = [f'<div class="wide"><table class="listing"><thead><tr>{head}</tr></thead><tbody>']
    for row in listing.rows:
        cells = zip(kinds, listing.cells(row), strict=True)
        shown = "".join(
            f'<td class="{kind}">{html.escape(cell).replace(chr(10), "<br>")}</td>'
            for kind, cell in cells
        )
        text.append(f"<tr>{shown}</tr>")
    return "\n".join([*text, "</tbody></table></div>"])
