"""A small copy of a report to be kept in a repository: tables (md, csv), figures (png) and a
README.md that shows all of them.

It says how it came about, and nothing of the machine that it was made on. Figures that show items
of a dataset stay out: they are not ours to copy.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from callbacks.records.known_data import FILE as FINGERPRINT
from callbacks.records.training_record import FILE as TRAINING
from core.atomic_io import remove_partial_files
from core.errors import InputError
from core.folder_lock import LOCK, folder_lock
from experiment.run_checkpoints import best_checkpoint, last_checkpoint
from studies.analysis.claims.claims_listing import outcomes_in_words, summary_line
from studies.analysis.left_out import finished_line, undefined_lines
from studies.figures.figure_style import render
from studies.plan.study import Study
from studies.report.files import PAGE
from studies.report.owned_files import (
    Owned,
    Owner,
    check_files,
    owned_files,
    replace_files,
    same_files,
)
from studies.tables.captions import notices, table_caption
from studies.tables.listing import Listing, listing_csv, listing_markdown
from studies.tables.markdown import markdown_text
from studies.tables.table_formats import to_csv, to_markdown
from studies.typed_commands import is_default, typed_command

if TYPE_CHECKING:
    from studies.figures.rendered_figure import RenderedFigure
    from studies.report.report import Report

DPI = 150
README = "README.md"
MARK = (
    "<!-- Written by cli.py study report --copy; a copy that was changed by hand is not "
    "replaced. -->"
)
ADVICE = "name a new folder after --copy, or delete what is there"


def write_copy(report: "Report", out: Path) -> Path:
    """Write the copy to `out`, in place of an earlier one, and return the path of its README.md."""
    return prepare_copy(report, out)()


def prepare_copy(report: "Report", out: Path) -> Callable[[], Path]:
    """Make a copy's files, and find out whether they can take their places; returns what writes
    them.

    Nothing but the files that an earlier copy of this study lists, as it left them, is ever
    replaced or removed.
    """
    check_place(report.study, report.runs, out)
    files, owner = _files(report, out), _owner(report.study)
    check_files(out, files, _earlier(out, files, owner), owner)
    return partial(_write, out, files, owner)


def check_place(study: Study, runs: Path, out: Path) -> None:
    """The same as far as it can be known before anything is computed."""
    if os.path.lexists(out) and not out.is_dir():
        raise InputError(f"{out} is a file; name a folder after --copy.")
    place, owner = out.resolve(), _owner(study)
    of_a_run = any(
        (out / name).exists()
        for name in (TRAINING, FINGERPRINT, best_checkpoint(Path()), last_checkpoint(Path()))
    )
    is_report = place == (runs / f"{study.name}-report").resolve() or (out / PAGE).exists()
    if (
        what := "runs"
        if place == runs.resolve()
        else "a report"
        if is_report
        else "a run"
        if of_a_run
        else ""
    ):
        raise InputError(f"{out} is the folder of {what}; name a new folder after --copy.")
    owned, readme = owned_files(out, owner), out / README
    if owned is None and readme.is_file() and readme.read_text(errors="replace").startswith(MARK):
        return  # it may be as it would be written again
    check_files(out, [README], owned or {}, owner)


def _owner(study: Study) -> Owner:
    return Owner("copy", study.name, ADVICE)


def _earlier(out: Path, files: Mapping[str, bytes], owner: Owner) -> Owned:
    """The files of an earlier copy.

    Earlier versions kept no list of them: there, only what would be written again as it is can be
    known as ours.
    """
    owned = owned_files(out, owner)
    return same_files(out, files) if owned is None else owned


def _write(out: Path, files: Mapping[str, bytes], owner: Owner) -> Path:
    with folder_lock(out, "writes this copy"):
        try:
            remove_partial_files(out, out / "tables", out / "figures")
            replace_files(out, files, _earlier(out, files, owner), owner)
        finally:
            # which would be committed; whoever waits for it sees that it is gone, and takes a new
            # one
            (out / LOCK).unlink(missing_ok=True)
    return out / README


def _files(report: "Report", out: Path) -> dict[str, bytes]:
    """What each file of the copy holds, by its name; README.md comes last."""
    files: dict[str, str | bytes] = {}
    for table in report.tables:
        files[f"tables/{table.spec.name}.md"] = to_markdown(table, report.section)
        files[f"tables/{table.spec.name}.csv"] = to_csv(table, report.section)
    for listing in report.listings:
        files[f"tables/{listing.name}.md"] = listing_markdown(listing)
        files[f"tables/{listing.name}.csv"] = listing_csv(listing)
    for drawn in report.figures:
        if drawn.figure and not drawn.spec.shows_items:
            files[f"figures/{drawn.spec.name}.png"] = render(drawn.figure, "png", DPI)
    files[README] = _readme(report, out)
    return {
        name: without_folders(content).encode() if isinstance(content, str) else content
        for name, content in files.items()
    }


def without_folders(text: str) -> str:
    """Absolute paths become file names: where something lay is nobody's business.

    >>> without_folders("/home/anna/runs/a/best.ckpt is absent; see configs/digits.yaml and/or here.")
    'best.ckpt is absent; see configs/digits.yaml and/or here.'
    """  # noqa: E501
    return re.sub(r"(?<![\w.:/<])/(?:[\w.+-]+/)+([\w.+-]+)", r"\1", text)


def _readme(report: "Report", out: Path) -> str:
    study, section, collection = report.study, report.section, report.collection
    records = list(collection.finished.values())
    parts = [MARK, f"# {markdown_text(study.title or study.name)}"]
    parts += [f"**{markdown_text(text)}**" for text in notices(records, section.scale)]
    parts += map(markdown_text, section.comment.strip().split("\n\n") if section.comment else [])
    if report.claims_listing:
        words = [summary_line(report.claims), *outcomes_in_words(report.claims)]
        parts.append(" ".join([*map(markdown_text, words), "See [claims](#claims)."]))
    message = ". ".join([finished_line(collection), *undefined_lines(report)])
    parts.append(markdown_text(f"{message}. {_versions(report)}"))
    path, runs = (
        _as_given(study.path),
        "RUNS" if report.runs.is_absolute() and not is_default(report.runs) else report.runs,
    )
    commands = [
        typed_command("run", path, runs),
        typed_command("report", path, runs, "--copy", _as_given(out)),
    ]
    parts.append(
        "\n".join(["How it was produced:", "", *(f"    {command}" for command in commands)])
    )
    parts += [
        part for listing in (*report.datasets, *report.selections) for part in _listing(listing)
    ]
    for table in report.tables:
        body = to_markdown(table, section).split("\n\n", 2)[2].strip()
        message = markdown_text(" ".join(table_caption(table, section)))
        parts += [
            f"## {markdown_text(table.spec.title)}",
            body,
            f"{message} As CSV: [{table.spec.name}.csv](tables/{table.spec.name}.csv).",
        ]
    parts += [part for listing in report.changes for part in _listing(listing)]
    for drawn in report.figures:
        parts += _figure(drawn)
    if listing := report.claims_listing:
        body = listing_markdown(listing, heading=False)
        parts += ["## Claims", body.strip(), "As CSV: [claims.csv](tables/claims.csv)."]
    return "\n\n".join(parts) + "\n"


def _listing(listing: Listing) -> list[str]:
    body = listing_markdown(listing, heading=False).strip()
    return [
        f"## {markdown_text(listing.title)}",
        body,
        f"As CSV: [{listing.name}.csv](tables/{listing.name}.csv).",
    ]


def _figure(drawn: "RenderedFigure") -> list[str]:
    title = markdown_text(drawn.spec.title)
    parts = [f"## {title}"]
    if drawn.figure and drawn.spec.shows_items:
        parts.append(
            "Left out of this copy, because it shows items of the dataset; the report has it."
        )
    elif drawn.figure:
        parts.append(f"![{title}](figures/{drawn.spec.name}.png)")
    parts.append(markdown_text(" ".join(drawn.caption)))
    for listing in drawn.listings:
        if listing.inline:
            parts.append(listing_markdown(listing, heading=False).split("\n\n", 1)[1].strip())
        parts.append(
            f"{markdown_text(listing.title)}: [md](tables/{listing.name}.md), "
            f"[csv](tables/{listing.name}.csv)."
        )
    return parts


def _versions(report: "Report") -> str:
    result = {
        json.dumps(record.results.get("versions", {}))
        for record in report.collection.finished.values()
    }
    listed = [
        ", ".join(f"{name} {number}" for name, number in json.loads(text).items())
        for text in sorted(result)
    ]
    return f"Versions: {'; and in other runs: '.join(listed)}." if listed else ""


def _as_given(path: Path) -> str:
    """A path as it is typed in the project's folder; of one that lies elsewhere only its name."""
    path = path.resolve()
    return path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name
