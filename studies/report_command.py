"""`study report`: the report beside the runs, and a copy where one is asked for."""

from collections.abc import Callable
from pathlib import Path

from errors import InputError
from folder_lock import is_writable
from studies.report import build_report
from studies.report_copy import check_copy, check_place, write_copy
from studies.report_files import check_report, write_files
from studies.study import Study


def report_command(study: Study, runs: Path, copy: Path | None, say: Callable[[str], object]) -> None:
    """Whatever cannot be written is refused before anything is computed, or as soon as it is known.

    Where runs are somebody else's and cannot be written, there is a copy alone, and nothing is held.
    """
    out = runs / f"{study.name}-report"
    if copy:
        check_place(copy)
    if not is_writable(out):
        if copy is None:
            raise InputError(f"{out} cannot be written; name a folder for a copy of the report with --copy.")
        say(f"{out} cannot be written, so there is a copy alone")
        say(f"copy: {write_copy(build_report(study, runs), copy)}")
        return
    check_report(out)
    report = build_report(study, runs, out)
    if copy:
        check_copy(report, copy)
    say(f"report: {write_files(report, out)}")
    if copy:
        say(f"copy: {write_copy(report, copy)}")
