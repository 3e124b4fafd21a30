"""`python cli.py study COMMAND STUDY.yaml`: the words and the study's file are checked first, and
only what is right has to wait for imports.
"""

from pathlib import Path

from core.errors import InputError
from core.file_names import check_folder
from studies.command_options import parse_options
from studies.plan.study import Study
from studies.report.section import check_keys
from studies.schema.checks import Checks


def study_command(arguments: list[str]) -> None:
    """Do what stands after `cli.py study`."""
    options = parse_options(arguments)
    study, runs = Study.load(options.study), Path(options.runs)
    check_keys(study.report, Checks(study.path))
    if options.processes is not None and options.processes < 1:
        raise InputError(f"--processes is {options.processes}; it must be 1 or more.")
    check_folder(runs, "--runs")
    if options.copy and options.command != "report":
        raise InputError(f"--copy is {options.copy}; it is for report, not for {options.command}.")
    if options.calibrate and options.command != "plan":
        raise InputError(f"--calibrate is for plan, not for {options.command}.")
    from studies.commands import do

    do(study, runs, options)
