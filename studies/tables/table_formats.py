"""A table of a report as Markdown, CSV, LaTeX and HTML.

The first three are for papers and programs, so CSV keeps every digit.
"""

import csv
import html
import io
import math
import re
from typing import Any

from studies.report.section import Section
from studies.tables.captions import table_caption
from studies.tables.markdown import markdown_cell, markdown_row, markdown_text, raw_row
from studies.tables.measures import factor_name
from studies.tables.tables import Cell, Table

CSV_COLUMNS: tuple[str, ...] = (
    *("table", "group", "row", "column", "metric", "mean", "sd", "n", "best"),
    *("reference", "test", "alternative", "p", "p_holm", "minimum_p", "pairs", "agree", "agree_of"),
    *("effect_size", "difference_low", "difference_high"),
    *("published_mean", "published_sd", "published_p", "published_where", "simulated", "scale"),
)
NOTHING = "\N{EN DASH}"
_TEX = {
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_TEX |= {
    "±": r"$\pm$",
    "↓": r"$\downarrow$",
    "↑": r"$\uparrow$",
    NOTHING: "--",
    "≥": r"$\geq$",
    "<": r"$<$",
    ">": r"$>$",
}


def heading(table: Table, column: Any, section: Section) -> str:
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
        details.append(f"p {p_value(cell.test.p)}")
    if not math.isnan(cell.holm_p):
        details.append(f"Holm {p_value(cell.holm_p)}")
    if cell.agreement:
        details.append("{}/{}".format(*cell.agreement))
    return (
        with_sd(cell.summary.mean, cell.summary.sd, digits),
        ", ".join(details),
        _published(cell, digits),
    )


def with_sd(mean: float, sd: float, digits: int) -> str:
    """
    >>> with_sd(0.50961, 0.0233, 4), with_sd(0.50961, math.nan, 4)
    ('0.5096 ± 0.0233', '0.5096')
    """
    return f"{mean:.{digits}f}" + ("" if math.isnan(sd) else f" ± {sd:.{digits}f}")


def p_value(p: float) -> str:
    """
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


def _corner(table: Table) -> list[str]:
    """The headings of the columns that name the rows."""
    return [factor_name(factor) for factor in (table.spec.groups, table.spec.rows) if factor]


def _grid(table: Table, section: Section):
    """Row by row: its labels, of which that of a group is empty after its first row, and its cells
    with their three lines.
    """
    first = {block[0] for block in table.spec.blocks}
    most = max((cell.summary.n for cell in table.cells.values() if cell.summary), default=0)
    for row in table.rows:
        cells = [table.cells[row, column] for column in table.columns]
        labels = [section.label(level) for level in table.spec.in_row(row).values()]
        yield (
            labels if row in first or len(labels) == 1 else ["", labels[1]],
            [
                (cell, lines_of(cell, table.measure(c).digits, most))
                for cell, c in zip(cells, table.columns, strict=True)
            ],
        )


def to_markdown(table: Table, section: Section) -> str:
    corner = _corner(table)
    headings = [*corner, *(heading(table, column, section) for column in table.columns)]
    messages = [f"{markdown_text(sentence)}  " for sentence in table_caption(table, section)]
    text = [f"## {markdown_text(table.spec.title)}", "", *messages, ""]
    text += [markdown_row(headings), raw_row(["---"] * len(corner) + ["---:"] * len(table.columns))]
    for labels, cells in _grid(table, section):
        shown = [
            "<br>".join(
                filter(None, (f"**{main}**" if cell.best else main, *map(markdown_text, rest)))
            )
            for cell, (main, *rest) in cells
        ]
        text.append(raw_row([*map(markdown_cell, labels), *shown]))
    return "\n".join(text) + "\n"


def to_csv(table: Table, section: Section) -> str:
    """One line per cell with every number that the table shows or was computed from; what there is
    not is empty.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    tested = any(cell.test for cell in table.cells.values())
    of_table: dict[str, Any] = {
        "table": table.spec.name,
        **(
            {
                "reference": table.spec.reference,
                "test": table.spec.test,
                "alternative": table.spec.alternative,
            }
            if tested
            else {}
        ),
        "simulated": any(r.results.get("simulated_annotators") for r in table.records),
        "scale": section.scale,
    }
    for (row, column), cell in table.cells.items():
        place = dict(zip(("row", "group"), reversed(table.spec.in_row(row).values()), strict=False))
        line: dict[str, Any] = {
            **of_table,
            **place,
            "column": column,
            "metric": table.spec.cell(column)[0],
            "best": cell.best,
        }
        if cell.summary:
            line |= cell.summary._asdict()
        if cell.test:
            line |= {
                "p": cell.test.p,
                "p_holm": cell.holm_p,
                "minimum_p": cell.test.minimum_p,
                "pairs": cell.test.n,
            }
            line |= {
                "effect_size": cell.effect_size,
                "difference_low": cell.interval[0],
                "difference_high": cell.interval[1],
            }
        if cell.agreement:
            line |= {"agree": cell.agreement[0], "agree_of": cell.agreement[1]}
        line |= {f"published_{name}": value for name, value in cell.published.items()}
        if cell.published:
            line["published_where"] = (
                f"{table.spec.published_entry['source']}, {table.spec.published_entry['where']}"
            )
        writer.writerow(
            {
                name: "" if isinstance(value, float) and math.isnan(value) else value
                for name, value in line.items()
            }
        )
    return stream.getvalue()


def tex_escape(text: str) -> str:
    r"""
    >>> tex_escape("soft_nll ± 5 %")
    'soft\\_nll $\\pm$ 5 \\%'
    """
    return "".join(_TEX.get(character, character) for character in text)


def to_tex(table: Table, section: Section) -> str:
    """A table environment for booktabs.

    What stands below a value in other formats is a line of its own, in small type.
    """
    corner = len(_corner(table))
    headings = [*[""] * corner, *(heading(table, column, section) for column in table.columns)]
    body = []
    for labels, cells in _grid(table, section):
        mains = [
            rf"\textbf{{{tex_escape(main)}}}" if cell.best else tex_escape(main)
            for cell, (main, _, _) in cells
        ]
        body.append([*map(tex_escape, labels), *mains])
        for number in (1, 2):
            extra = [lines[number] for _, lines in cells]
            if any(extra):
                body.append(
                    [
                        *[""] * corner,
                        *(rf"{{\scriptsize {tex_escape(text)}}}" if text else "" for text in extra),
                    ]
                )
    caption = tex_escape(
        " ".join([re.sub(r"\.*$", ".", table.spec.title), *table_caption(table, section)])
    )
    rows = [" & ".join(cells) + r" \\" for cells in body]
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            rf"\label{{tab:{table.spec.name}}}",
            rf"\begin{{tabular}}{{{'l' * corner}{'r' * len(table.columns)}}}",
            r"\toprule",
            " & ".join(tex_escape(text) for text in headings) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def to_html(table: Table, section: Section) -> str:
    words = [html.escape(heading(table, column, section)) for column in table.columns]
    words = [word.replace(" ↓", "&nbsp;↓").replace(" ↑", "&nbsp;↑") for word in words]
    head = "".join(f'<th scope="col">{word}</th>' for word in words)
    corner = "".join(
        f'<th scope="col" class="row">{html.escape(name)}</th>' for name in _corner(table)
    )
    text = [f'<div class="wide"><table><thead><tr>{corner}{head}</tr></thead><tbody>']
    for labels, cells in _grid(table, section):
        shown = ""
        for cell, (main, details, published) in cells:
            value = f"<strong>{html.escape(main)}</strong>" if cell.best else html.escape(main)
            small = "".join(
                f'<span class="{kind}">{html.escape(line)}</span>'
                for kind, line in (("p", details), ("published", published))
                if line
            )
            shown += f"<td>{value}{small}</td>"
        names = "".join(
            f'<th scope="row" class="row">{html.escape(label)}</th>' for label in labels
        )
        text.append(f"<tr>{names}{shown}</tr>")
    return "\n".join([*text, "</tbody></table></div>"])
