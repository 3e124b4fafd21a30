"""What a study's YAML must look like before its grids are expanded: entries of the right kind, and
no more runs than anybody can mean.
"""

import math
import re
from typing import Any

from studies.schema.checks import Checks

NEEDED = {"name", "configs", "grids"}
KEYS = {"name", "title", "configs", "options", "grids", "selections", "paired", "predict", "report"}
# entries of the report that name files
FILES = (
    "datasets",
    "tables",
    "changes",
    "mode_shifts",
    "figures",
    "comparisons",
)
MOST_RUNS = 100_000  # of a study; a plan of so many takes half a minute


def check_study(content: dict[str, Any], checks: Checks) -> None:
    """Nothing for a study that can be expanded, and a sentence that names the key for any other.

    What options mean is found out later.
    """
    if not isinstance(content["name"], str) or not re.fullmatch(r"\w[\w.-]*", content["name"]):
        checks.wrong(
            "name",
            f"is {content['name']}; it names folders, so it must be letters, digits, _, . and -",
        )
    checks.file_name(content["name"], "name")
    for key in ("configs", "paired"):
        if not isinstance(content.get(key, []), list) or not all(
            isinstance(entry, str) for entry in content.get(key, [])
        ):
            checks.wrong(key, "must be a list of names")
    for key, kind, wanted in (
        ("title", str, "a text"),
        ("predict", bool, "true or false"),
        ("report", dict | None, "entries"),
    ):
        if key in content and not isinstance(content[key], kind):
            checks.wrong(key, f"must be {wanted}")
    check_names_of_files(content, checks)
    check_options(content.get("options", {}), "options", checks)
    grids = content["grids"]
    if not isinstance(grids, dict) or not grids or not all(isinstance(grid, str) for grid in grids):
        checks.wrong("grids", "must have entries, each with a name")
    for grid, factors in grids.items():
        check_factors(factors, f"grids.{grid}", checks)
    check_number(sum(runs_of(factors) for factors in grids.values()), "grids", checks)


def check_names_of_files(content: dict[str, Any], checks: Checks) -> None:
    """Of what the report will write.

    All else about these entries is checked when there is a report.
    """
    selections = content.get("selections")
    for name in selections if isinstance(selections, dict) else ():
        checks.file_name(name, "the name of a selection")
    for kind, entries in (content.get("report") or {}).items():
        for place, entry in enumerate(
            entries if kind in FILES and isinstance(entries, list) else []
        ):
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
    return math.prod(len(levels) for levels in factors.values())


def check_number(runs: int, key: str, checks: Checks) -> None:
    if runs > MOST_RUNS:
        checks.wrong(key, f"would be {runs:,} runs; a study may have {MOST_RUNS:,}")
