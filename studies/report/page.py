"""report.html: one page with everything in it, so that it can be mailed, archived and opened
without a network.
"""

import base64
import html
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import yaml

from experiment.configuration import leaves
from studies.analysis.claims.claims_listing import summary_line
from studies.analysis.collect import Collection
from studies.analysis.left_out import undefined_lines
from studies.tables.captions import notices, table_caption
from studies.tables.listing import Listing, listing_html
from studies.tables.table_formats import to_html

if TYPE_CHECKING:
    from studies.figures.rendered_figure import RenderedFigure
    from studies.report.report import Report

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 66rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.notice { border-left: 5px solid #D55E00; background: #fdf1e9; padding: .4rem .8rem;
  margin: .5rem 0; font-weight: 600; }
.caption { color: #444; font-size: .87rem; margin: .3rem 0 1rem; } .caption b { color: #A84300; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; border-top: 2px solid #222; border-bottom: 2px solid #222;
  font-variant-numeric: tabular-nums; font-size: .93rem; }
th, td { padding: .35rem .5rem; text-align: right; vertical-align: top; white-space: nowrap; }
thead th { border-bottom: 1px solid #222; white-space: normal; vertical-align: bottom; }
th.row { text-align: left; font-weight: 600; }
th:first-child { padding-left: 0; } th.minor { font-weight: normal; }
th.minor:first-child { padding-left: 1rem; }
tbody tr + tr > * { border-top: 1px solid #e4e4e4; }
.listing th, .listing td, .listing th:first-child { text-align: left; font-weight: normal;
  padding-left: 0; }
.listing thead th:nth-child(n) { font-weight: 600; }
.listing .number { text-align: right; }
.listing .long { white-space: normal; min-width: 11rem; font-size: .87rem; }
td span { display: block; font-size: .75rem; color: #555; } td .published { color: #005A8C; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; } a { color: #005A8C; }
pre { background: #f6f6f6; padding: .7rem; overflow-x: auto; font-size: .8rem; line-height: 1.4; }
summary { cursor: pointer; margin: .4rem 0; }
"""


def page(report: "Report") -> str:
    """The whole page."""
    study, collection = report.study, report.collection
    title = html.escape(study.title or study.name)
    finished, missing = len(collection.finished), collection.missing
    records = list(collection.finished.values())
    parts = [
        f"<h1>{title}</h1>",
        *(
            f'<p class="notice">{html.escape(text)}</p>'
            for text in notices(records, report.section.scale)
        ),
    ]
    parts.append(
        f"<p>Study <code>{html.escape(study.name)}</code>: {finished} of "
        f"{len(collection.planned)} runs finished, {len(missing)} missing.</p>"
    )
    if missing:
        parts.append(
            _details(
                f"Missing runs ({len(missing)})",
                "\n".join(f"{name}: {cause}" for name, cause in missing.items()),
            )
        )
    parts += [f"<p>{html.escape(line)}.</p>" for line in undefined_lines(report)]
    if report.section.comment:
        parts.append(f"<p>{html.escape(report.section.comment)}</p>")
    parts += map(_listing_section, (*report.datasets, *report.selections))
    for table in report.tables:
        parts.append(
            f"<section><h2>{html.escape(table.spec.title)}</h2>{to_html(table, report.section)}"
        )
        files = f"Files: tables/{table.spec.name}.md, .csv and .tex."
        parts.append(_caption([*table_caption(table, report.section), files]) + "</section>")
    parts += map(_listing_section, report.changes)
    for drawn in report.figures:
        parts += _figure(drawn)
    if claims := report.claims_listing:
        summary = f"<p><strong>{html.escape(summary_line(report.claims))}</strong></p>"
        parts.append(
            f"<section><h2>{html.escape(claims.title)}</h2>{summary}{_listing(claims)}</section>"
        )
    if noted := notes_of_runs(collection):
        summary = (
            f"Notes of runs ({len(noted)}): what could not be measured or drawn, and what "
            "else a reader must know"
        )
        parts += ["<h2>Notes</h2>", _details(summary, "\n".join(noted))]
    parts += [
        "<h2>What produced this</h2>",
        _versions(collection),
        _details(
            f"The study: {study.path}",
            study.path.read_text() if study.path.is_file() else "(the file is no longer there)",
            is_open=True,
        ),
        _details(
            "Resolved options that all runs have in common", _dump(common_options(collection))
        ),
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width"><title>{title}</title><style>{STYLE}</style>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def _figure(drawn: "RenderedFigure") -> list[str]:
    parts = [f"<section><h2>{html.escape(drawn.spec.title)}</h2><figure>"]
    if drawn.figure:
        data = base64.b64encode(drawn.svg).decode()
        width = round(drawn.figure.get_figwidth() * 115)
        parts.append(
            f'<img alt="{html.escape(drawn.spec.title)}" width="{width}" '
            f'src="data:image/svg+xml;base64,{data}">'
        )
    parts.append(f"<figcaption>{_caption(drawn.caption)}</figcaption></figure>")
    for listing in drawn.listings:
        summary = f"<summary>{html.escape(listing.title)}</summary>"
        parts.append(f"<details{' open' * listing.inline}>{summary}{_listing(listing)}</details>")
    return [*parts, "</section>"]


def _listing_section(listing: Listing) -> str:
    return f"<section><h2>{html.escape(listing.title)}</h2>{_listing(listing)}</section>"


def _listing(listing: Listing) -> str:
    return listing_html(listing) + _caption(
        [*listing.caption, f"Files: tables/{listing.name}.md, .csv and .tex."]
    )


def notes_of_runs(collection: Collection) -> list[str]:
    """What the results of the finished runs say beside their numbers: each sentence once, with how
    many runs say it.
    """
    kept = (record.results.get("notes") for record in collection.finished.values())
    result = Counter(
        note for notes in kept if isinstance(notes, list) for note in notes if isinstance(note, str)
    )
    return [f"{runs} run{'s' * (runs > 1)}: {note}" for note, runs in result.items()]


def common_options(collection: Collection) -> dict[str, Any]:
    """The resolved options that are the same in every planned run, by their dotted names."""
    first, *others = (leaves(run.config) for run in collection.planned)
    shared = {path: json.dumps(value, default=str) for path, value in first.items()}
    for other in others:
        shared = {
            path: text
            for path, text in shared.items()
            if path in other
            # most values of one study are one object
            and (other[path] is first[path] or json.dumps(other[path], default=str) == text)
        }
    return {".".join(path): json.loads(text) for path, text in shared.items()}


def _versions(collection: Collection) -> str:
    """One line where all runs agree, and plain words where they do not."""
    result = Counter(
        json.dumps(record.results.get("versions", {})) for record in collection.finished.values()
    )
    if not result:
        return "<p>No run is finished, so there are no versions to name.</p>"
    lines = [
        ", ".join(f"{name} {number}" for name, number in json.loads(text).items()) or "not recorded"
        for text in result
    ]
    if len(lines) == 1:
        return f"<p>Versions, the same in all runs: {html.escape(lines[0])}.</p>"
    listed = "".join(
        f"<li>{runs} run{'s' * (runs > 1)}: {html.escape(line)}</li>"
        for line, runs in zip(lines, result.values(), strict=True)
    )
    return f'<p class="notice">Versions DIFFER between runs:</p><ul>{listed}</ul>'


def _caption(sentences: list[str]) -> str:
    marked = (
        f"<b>{html.escape(s)}</b>" if s.startswith(("SIMULATED", "REDUCED")) else html.escape(s)
        for s in sentences
    )
    return f'<p class="caption">{" ".join(marked)}</p>'


def _details(summary: str, text: str, is_open: bool = False) -> str:
    return (
        f"<details{' open' * is_open}><summary>{html.escape(summary)}</summary>"
        f"<pre>{html.escape(text)}</pre></details>"
    )


def _dump(options: dict[str, Any]) -> str:
    return yaml.safe_dump(options, sort_keys=True, width=110, default_flow_style=None)
