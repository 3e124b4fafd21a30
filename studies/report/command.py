"""`study report`: the report beside the runs, and a copy where one is asked for."""

from collections.abc import Callable
from pathlib import Path

from core.errors import InputError
from core.folder_lock import is_writable
from studies.analysis.left_out import finished_line, undefined_lines
from studies.plan.study import Study
from studies.report.copy import check_place, prepare_copy
from studies.report.files import check_report, write_files
from studies.report.report import build_report


def report_command(
    study: Study, runs: Path, copy: Path | None, say: Callable[[str], object]
) -> None:
    """Whatever cannot be written is refused before anything is computed, or as soon as it is known.

    What is left out is said at the end.

    Where runs are somebody else's and cannot be written, there is a copy alone, and nothing is
    held.
    """
    out = runs / f"{study.name}-report"
    if copy:
        check_place(study, runs, copy)
    writable = is_writable(out)
    if not writable and copy is None:
        raise InputError(
            f"{out} cannot be written; name a folder for a copy of the report with --copy."
        )
    if writable:
        check_report(study, out)
    report = build_report(study, runs, out if writable else None)
    write_copy = prepare_copy(report, copy) if copy else None
    say(
        f"report: {write_files(report, out)}"
        if writable
        else f"{out} cannot be written, so there is a copy alone"
    )
    if write_copy:
        say(f"copy: {write_copy()}")
    for line in [finished_line(report.collection)] * bool(
        report.collection.missing
    ) + undefined_lines(report):
        say(line)
