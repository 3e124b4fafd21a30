"""report.html: one page with everything in it, so that it can be mailed, archived and opened
without a network.
"""

import html
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import yaml

from experiment.configuration import leaves
from studies.analysis.claims.claims_listing import summary_line
from studies.analysis.collect import Collection
from studies.analysis.left_out import undefined_lines
from studies.html_page import caption, details, document, picture
from studies.tables.captions import notices, table_caption
from studies.tables.listing import Listing, listing_html
from studies.tables.table_formats import to_html

if TYPE_CHECKING:
    from studies.figures.rendered_figure import RenderedFigure
    from studies.report.report import Report


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
            details(
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
        parts.append(caption([*table_caption(table, report.section), files]) + "</section>")
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
        parts += ["<h2>Notes</h2>", details(summary, "\n".join(noted))]
    parts += [
        "<h2>What produced this</h2>",
        _versions(collection),
        details(
            f"The study: {study.path}",
            study.path.read_text() if study.path.is_file() else "(the file is no longer there)",
            is_open=True,
        ),
        details("Resolved options that all runs have in common", _dump(common_options(collection))),
    ]
    return document(study.title or study.name, parts)


def _figure(drawn: "RenderedFigure") -> list[str]:
    parts = [f"<section><h2>{html.escape(drawn.spec.title)}</h2><figure>"]
    if drawn.figure:
        parts.append(picture(drawn.svg, drawn.spec.title, drawn.figure.get_figwidth()))
    parts.append(f"<figcaption>{caption(drawn.caption)}</figcaption></figure>")
    for listing in drawn.listings:
        summary = f"<summary>{html.escape(listing.title)}</summary>"
        parts.append(f"<details{' open' * listing.inline}>{summary}{_listing(listing)}</details>")
    return [*parts, "</section>"]


def _listing_section(listing: Listing) -> str:
    return f"<section><h2>{html.escape(listing.title)}</h2>{_listing(listing)}</section>"


def _listing(listing: Listing) -> str:
    return listing_html(listing) + caption(
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


def _dump(options: dict[str, Any]) -> str:
    return yaml.safe_dump(options, sort_keys=True, width=110, default_flow_style=None)
