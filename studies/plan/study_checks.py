"""What a study's YAML must look like before its grids are expanded: entries of the right kind, and
no more runs than anybody can mean.
"""

import math
import re
from typing import Any

from studies.schema.calibrate_factor import split_off
from studies.schema.checks import Checks
from studies.schema.options import Kind

MOST_RUNS = 100_000  # of a study; a plan of so many takes half a minute


class StudyName(Kind):
    """A name that folders have."""

    words = "letters, digits, _, . and -"

    def read(self, value: Any, key: str, reading: Any) -> str:
        """As it is."""
        if not isinstance(value, str) or not re.fullmatch(r"\w[\w.-]*", value):
            reading.checks.wrong(
                key, f"is {value}; it names folders, so it must be letters, digits, _, . and -"
            )
        reading.checks.file_name(value, key)
        return value


class ReportEntries(Kind):
    """The report's section, which is checked against the runs when these are known."""

    words = "entries"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is."""
        if not isinstance(value, dict | None):
            reading.checks.wrong(key, "must be entries")
        return value


class RunOptions(Kind):
    """Options of runs, as on the command line."""

    words = "options by their names, such as `data.batch_size: 64`"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As they are; what they mean is found out when runs are made of them."""
        check_options(value, key, reading.checks)
        return value


class Grids(Kind):
    """Grids by their names, each with factors and their levels."""

    words = (
        "factors with levels, by grid: a list of values of an option, or named levels that each "
        "set options"
    )

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As they are."""
        checks = reading.checks
        if (
            not isinstance(value, dict)
            or not value
            or not all(isinstance(name, str) for name in value)
        ):
            checks.wrong(key, "must have entries, each with a name")
        for grid, factors in value.items():
            check_factors(factors, f"{key}.{grid}", checks)
        check_number(sum(runs_of(factors) for factors in value.values()), key, checks)
        return value


def check_names_of_files(content: dict[str, Any], checks: Checks) -> None:
    """Of what the report will write.

    All else about these entries is checked when its runs are known.
    """
    selections = content.get("selections")
    for name in selections if isinstance(selections, dict) else ():
        checks.file_name(name, "the name of a selection")
    report = content.get("report")
    for kind, entries in report.items() if isinstance(report, dict) else ():
        for place, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, dict):
                checks.file_name(entry.get("name", ""), f"report.{kind}[{place}].name")


def check_factors(factors: Any, key: str, checks: Checks) -> None:
    """That these are factors with levels: a list of values of an option, or named levels that each
    set options.
    """
    if not isinstance(factors, dict) or not factors:
        checks.wrong(key, "is empty; a grid needs factors with levels")
    for factor, levels in factors.items():
        place = f"{key}.{factor}"
        if not isinstance(levels, list | dict) or not levels:
            checks.wrong(
                place, "has no levels; they must be a list, or entries that each set some options"
            )
        if isinstance(levels, dict):
            for label, options in levels.items():
                check_options(options, f"{place}.{label}", checks)
            continue
        check_options(dict.fromkeys([factor]), key, checks)
        for level in levels:
            named = (
                isinstance(level, dict)
                and isinstance(level.get("class_path"), str)
                and isinstance(level.get("init_args", {}), dict)
            )
            if isinstance(level, list | dict) and not named:
                checks.wrong(
                    place,
                    "has a level that is neither a word, a number nor a class_path; give such "
                    "levels names of their own",
                )


def check_options(options: Any, key: str, checks: Checks) -> None:
    """That these are options of a run by their names."""
    if not isinstance(options, dict) or not all(
        isinstance(option, str) and re.fullmatch(r"[\w.]+\+?", option) for option in options
    ):
        checks.wrong(key, "must have options by their names, such as data.batch_size: 64")
    for option in options:
        if option.rsplit(".")[-1] in ("help", "print_config"):
            checks.wrong(
                f"{key}.{option}", "is no option of a run; it would print something and end"
            )


def runs_of(factors: dict[str, Any]) -> int:
    """How many combinations of levels there are; calibrators of a run are no runs."""
    return math.prod(len(levels) for levels in split_off(factors)[0].values())


def check_number(runs: int, key: str, checks: Checks) -> None:
    """That nobody has to wait for more runs than anybody can mean."""
    if runs > MOST_RUNS:
        checks.wrong(key, f"would be {runs:,} runs; a study may have {MOST_RUNS:,}")
