"""A report as files: whole, one writer at a time, and in place of an earlier report's files
alone.
"""

import html
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from core.atomic_io import SUFFIX, remove_partial_files
from core.folder_lock import folder_lock
from studies.plan.study import Study
from studies.report.owned_files import Owned, Owner, check_files, owned_files, replace_files
from studies.report.page import page
from studies.report.tensorboard_log import log_report
from studies.tables.listing import listing_csv, listing_markdown, listing_tex
from studies.tables.table_formats import to_csv, to_markdown, to_tex

if TYPE_CHECKING:
    from studies.report.report import Report

PAGE, LOG = "report.html", "tensorboard"


def write_files(report: "Report", out: Path) -> Path:
    """Write a report in place of an earlier one, and return the path of its page, which holds
    everything and comes last.
    """
    files, owner = _files(report), _owner(report.study)
    with folder_lock(out, "writes this report"):
        owned = owned_files(out, owner)
        owned = _of_an_earlier_version(report, out, files) if owned is None else owned
        check_files(out, files, owned, owner)
        remove_partial_files(out, *{(out / name).parent for name in files})
        with TemporaryDirectory(dir=out, prefix=f".{LOG}.", suffix=SUFFIX) as fresh:
            log = {f"{LOG}/{name}": path for name, path in log_report(report, Path(fresh)).items()}
            replace_files(out, {**log, **files}, owned, owner)
    return out / PAGE


def check_report(study: Study, out: Path) -> None:
    """Find out before anything is computed whether an earlier report can be replaced."""
    check_files(out, (), owned_files(out, _owner(study)) or {}, _owner(study))


def _owner(study: Study) -> Owner:
    return Owner("report", study.name, "move it away, so that the report can be written")


def _files(report: "Report") -> dict[str, bytes]:
    files = {}
    for table in report.tables:
        for suffix, content in (("md", to_markdown), ("csv", to_csv), ("tex", to_tex)):
            files[f"tables/{table.spec.name}.{suffix}"] = content(table, report.section).encode()
    for listing in report.listings:
        for suffix, content in (
            ("md", listing_markdown),
            ("csv", listing_csv),
            ("tex", listing_tex),
        ):
            files[f"tables/{listing.name}.{suffix}"] = content(listing).encode()
    for drawn in report.figures:
        if drawn.figure:
            files[f"figures/{drawn.spec.name}.svg"] = drawn.svg
            files[f"figures/{drawn.spec.name}.png"] = drawn.png
    return {**files, PAGE: page(report).encode()}


def _of_an_earlier_version(report: "Report", out: Path, files: dict[str, bytes]) -> Owned:
    """Earlier versions kept no list of their files.

    Where the page is that of this study's report, what has the names of its files is its own.
    """
    path = out / PAGE
    mark = f"<p>Study <code>{html.escape(report.study.name)}</code>: "
    if path.is_symlink() or not path.is_file() or mark not in path.read_text(errors="replace"):
        return {}
    runs = {run.name for run in report.collection.planned}
    logs = [
        log
        for log in (out / LOG).rglob("events.out.tfevents.*")
        if log.parent == out / LOG or log.parent.name in runs
    ]
    return dict.fromkeys([*files, *(log.relative_to(out).as_posix() for log in logs)])
