"""What a table of any kind is to its reader, a grid of texts, as Markdown, LaTeX and HTML; and
numbers as CSV, with every digit.
"""

import csv
import html
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from studies.tables.markdown import markdown_cell, markdown_row, markdown_text, raw_row

NOTHING = "\N{EN DASH}"
_TEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    NOTHING: "--",
    "≥": r"$\geq$",
    "Δ": r"$\Delta$",
    "<": r"$<$",
    ">": r"$>$",
}


@dataclass(frozen=True)
class Column:
    """A heading and what stands below it: labels name their row, values are measured, and of other
    columns long texts may be broken into lines.
    """

    heading: str
    kind: Literal["label", "value", "number", "word", "long"]
    right: bool  # aligned so

    @property
    def css_class(self) -> str:
        """The attribute by which a page styles the column."""
        name = {"label": "row", "value": ""}.get(self.kind, self.kind)
        return f' class="{name}"' if name else ""


@dataclass(frozen=True)
class GridCell:
    """A text, of several lines perhaps, and notes in small type below it by their kind."""

    text: str
    bold: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)  # "" where a cell has none of a kind
    minor: bool = False  # a label of a row that belongs to those above it


@dataclass(frozen=True)
class Grid:
    """A table as people read it."""

    name: str  # of its files
    title: str
    caption: Sequence[str]  # sentences
    columns: Sequence[Column]
    rows: Sequence[Sequence[GridCell]]
    css_class: str = ""


def grid_markdown(grid: Grid, heading: bool = True) -> str:
    """A table with its title, unless that is left out, and its caption above it."""
    lines = [f"## {markdown_text(grid.title)}", ""] if heading else []
    lines += [f"{markdown_text(sentence)}  " for sentence in grid.caption]
    lines += ["", markdown_row([column.heading for column in grid.columns])]
    lines += [raw_row(["---:" if column.right else "---" for column in grid.columns])]
    lines += [raw_row([_markdown(cell) for cell in row]) for row in grid.rows]
    return "\n".join(lines) + "\n"


def _markdown(cell: GridCell) -> str:
    text = markdown_cell(cell.text)
    notes = [markdown_text(note) for note in cell.notes.values() if note]
    return "<br>".join([f"**{text}**" if cell.bold else text, *notes])


def grid_tex(grid: Grid) -> str:
    """A table environment for booktabs.

    Notes are a line of their own below their row. Long texts share what a line of the page has
    left. Columns of labels need no heading.
    """
    width = 0.6 / max(sum(column.kind == "long" for column in grid.columns), 1)
    kinds = [
        rf"p{{{width:.2f}\linewidth}}" if c.kind == "long" else "r" if c.right else "l"
        for c in grid.columns
    ]
    headings = ["" if c.kind == "label" else tex_escape(c.heading) for c in grid.columns]
    caption = tex_escape(" ".join([f"{grid.title.rstrip('.')}.", *grid.caption]))
    body = [line for row in grid.rows for line in _tex_lines(row)]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{grid.name}}}",
            rf"\begin{{tabular}}{{{''.join(kinds)}}}",
            r"\toprule",
            " & ".join(headings) + r" \\",
            r"\midrule",
            *(" & ".join(cells) + r" \\" for cells in body),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _tex_lines(row: Sequence[GridCell]) -> list[list[str]]:
    """A row and, for each kind of note that any of its cells has, a row of those."""
    texts = [
        (r"\quad " if cell.minor else "") + tex_escape(cell.text).replace("\n", r" \newline ")
        for cell in row
    ]
    lines = [
        [rf"\textbf{{{text}}}" if c.bold else text for c, text in zip(row, texts, strict=True)]
    ]
    for kind in dict.fromkeys(kind for cell in row for kind in cell.notes):
        notes = [cell.notes.get(kind, "") for cell in row]
        if any(notes):
            lines.append([rf"{{\scriptsize {tex_escape(note)}}}" if note else "" for note in notes])
    return lines


def tex_escape(text: str) -> str:
    r"""A text that LaTeX shows as it is.

    >>> tex_escape("soft_nll ± 5 %")
    'soft\\_nll $\\pm$ 5 \\%'
    """
    return "".join(_TEX.get(character, character) for character in text)


def grid_html(grid: Grid) -> str:
    """The table alone: a page has its title and caption around it."""
    head = "".join(
        f'<th scope="col"{column.css_class}>{_html_heading(column)}</th>' for column in grid.columns
    )
    kind = f' class="{grid.css_class}"' if grid.css_class else ""
    lines = [f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>']
    for row in grid.rows:
        cells = "".join(
            f'<th scope="row" class="row{" minor" * cell.minor}">{_html(cell)}</th>'
            if column.kind == "label"
            else f"<td{column.css_class}>{_html(cell)}</td>"
            for column, cell in zip(grid.columns, row, strict=True)
        )
        lines.append(f"<tr>{cells}</tr>")
    return "\n".join([*lines, "</tbody></table></div>"])


def _html_heading(column: Column) -> str:
    text = html.escape(column.heading)
    if column.kind != "value":
        return text
    return text.replace(" ↓", "&nbsp;↓").replace(" ↑", "&nbsp;↑")


def _html(cell: GridCell) -> str:
    text = html.escape(cell.text).replace("\n", "<br>")
    notes = "".join(
        f'<span class="{kind}">{html.escape(note)}</span>'
        for kind, note in cell.notes.items()
        if note
    )
    return (f"<strong>{text}</strong>" if cell.bold else text) + notes


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    r"""Rows under these columns, with every digit; what there is not is empty.

    >>> csv_text(["a", "b"], [{"a": 0.1, "b": math.nan}, {"b": "x"}])
    'a,b\n0.1,\n,x\n'
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: "" if _is_nan(value) else value for name, value in row.items()})
    return stream.getvalue()


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
