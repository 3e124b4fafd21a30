"""A small copy of a report to be kept in a repository: tables (md, csv), figures (png) and a README.md that shows all of them.

It says how it came about, and nothing of the machine that it was made on. Figures that show items of a dataset stay out: they are not ours to copy.
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from errors import InputError
from kept_files import write_atomically
from studies.captions import notices, table_caption
from studies.claims import outcomes_in_words, summary_line
from studies.figure_style import render
from studies.listing import Listing, listing_csv, listing_markdown
from studies.report_section import KINDS
from studies.table_formats import to_csv, to_markdown

if TYPE_CHECKING:
    from studies.drawn import Drawn
    from studies.report import Report

DPI = 150
MARK = "<!-- Written by cli.py study report --copy; changes made here are lost. -->"


def write_copy(report: "Report", out: Path) -> Path:
    """Write the copy to `out`, in place of an earlier one, and return the path of its README.md."""
    check_place(out)
    files = {"README.md": _readme(report, out).encode()}
    for table in report.tables:
        files[f"tables/{table.spec.name}.md"] = to_markdown(table, report.section).encode()
        files[f"tables/{table.spec.name}.csv"] = to_csv(table, report.section).encode()
    for listing in report.listings:
        files[f"tables/{listing.name}.md"] = listing_markdown(listing).encode()
        files[f"tables/{listing.name}.csv"] = listing_csv(listing).encode()
    for drawn in report.figures:
        if drawn.figure and not _shows_items(drawn):
            files[f"figures/{drawn.spec.name}.png"] = render(drawn.figure, "png", DPI)
    for folder, suffixes in (("tables", (".md", ".csv")), ("figures", (".png",))):
        for path in sorted((out / folder).glob("*")):
            if path.suffix in suffixes and f"{folder}/{path.name}" not in files:
                path.unlink()  # of an earlier copy
    for name, content in files.items():
        write_atomically(out / name, without_folders(content.decode()) if not name.endswith(".png") else content)
    return out / "README.md"


def check_place(out: Path) -> None:
    """Nothing but an earlier copy is ever overwritten."""
    readme = out / "README.md"
    if out.is_file():
        raise InputError(f"{out} is a file; name a folder after --copy.")
    if readme.exists() and not readme.read_text().startswith(MARK):
        raise InputError(f"{readme} was not written by a report; name a new folder after --copy, or that of an earlier copy.")


def without_folders(text: str) -> str:
    """Absolute paths become file names: where something lay is nobody's business.

    >>> without_folders("/home/anna/runs/a/best.ckpt is not there; see configs/studies/digits.yaml and/or the README.")
    'best.ckpt is not there; see configs/studies/digits.yaml and/or the README.'
    """
    return re.sub(r"(?<![\w.:/<])/(?:[\w.+-]+/)+([\w.+-]+)", r"\1", text)


def _readme(report: "Report", out: Path) -> str:
    study, section, collection = report.study, report.section, report.collection
    records = list(collection.finished.values())
    parts = [MARK, f"# {study.title or study.name}", *(f"**{text}**" for text in notices(records, section.scale))]
    parts += [section.comment.strip()] if section.comment else []
    if report.claims_listing:
        parts.append(" ".join([summary_line(report.claims), *outcomes_in_words(report.claims), "See [claims](#claims)."]))
    parts.append(f"{len(records)} of {len(collection.planned)} runs are finished. {_versions(report)}")
    path = _as_given(study.path)
    commands = [f"python cli.py study run {path}", f"python cli.py study report {path} --copy {_as_given(out)}"]
    parts.append("\n".join(["How it was produced:", "", *(f"    {command}" for command in commands)]))
    parts += [part for listing in (*report.datasets, *report.selections) for part in _listing(listing)]
    for table in report.tables:
        body = to_markdown(table, section).split("\n\n", 2)[2].strip()
        said = " ".join(table_caption(table, section))
        parts += [f"## {table.spec.title}", body, f"{said} As CSV: [{table.spec.name}.csv](tables/{table.spec.name}.csv)."]
    parts += [part for listing in report.changes for part in _listing(listing)]
    for drawn in report.figures:
        parts += _figure(drawn)
    if listing := report.claims_listing:
        body = listing_markdown(listing, heading=False)
        parts += ["## Claims", body.strip(), "As CSV: [claims.csv](tables/claims.csv)."]
    return "\n\n".join(parts) + "\n"


def _listing(listing: Listing) -> list[str]:
    body = listing_markdown(listing, heading=False).strip()
    return [f"## {listing.title}", body, f"As CSV: [{listing.name}.csv](tables/{listing.name}.csv)."]


def _figure(drawn: "Drawn") -> list[str]:
    parts = [f"## {drawn.spec.title}"]
    if drawn.figure and _shows_items(drawn):
        parts.append("Left out of this copy, because it shows items of the dataset; the report has it.")
    elif drawn.figure:
        parts.append(f"![{drawn.spec.title}](figures/{drawn.spec.name}.png)")
    parts.append(" ".join(drawn.caption))
    for listing in drawn.listings:
        if listing.inline:
            parts.append(listing_markdown(listing, heading=False).split("\n\n", 1)[1].strip())
        parts.append(f"{listing.title}: [md](tables/{listing.name}.md), [csv](tables/{listing.name}.csv).")
    return parts


def _shows_items(drawn: "Drawn") -> bool:
    return drawn.spec.kind in KINDS and KINDS[drawn.spec.kind].shows_items


def _versions(report: "Report") -> str:
    found = {json.dumps(record.results.get("versions", {})) for record in report.collection.finished.values()}
    listed = [", ".join(f"{name} {number}" for name, number in json.loads(text).items()) for text in sorted(found)]
    return f"Versions: {'; and in other runs: '.join(listed)}." if listed else ""


def _as_given(path: Path) -> str:
    """A path as it is typed in the project's folder; of one that lies elsewhere only its name."""
    path = path.resolve()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name
