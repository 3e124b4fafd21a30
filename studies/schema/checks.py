"""Refusals of what a study's YAML says: one sentence that names the file and the key, and what
would be right.
"""

import math
from pathlib import Path
from typing import Any, NoReturn

from core.errors import InputError, hint
from core.file_names import length_error


class Checks:
    """Of one file.

    >>> Checks(Path("study.yaml")).one_of("point", ["points", "lines"], "report.figures[0].kind")
    Traceback (most recent call last):
    core.errors.InputError: study.yaml: report.figures[0].kind is point; it must be one of points,
    lines (did you mean points?).
    """

    def __init__(self, path: Path):
        self.path = path

    def mapping(self, value: Any, key: str, allowed: set[str]) -> dict[str, Any]:
        """Entries by names, all of which are allowed ones."""
        if not isinstance(value, dict):
            self.wrong(key, f"must have entries, of {', '.join(sorted(allowed))}")
        for name in value:
            if str(name) not in allowed:
                self.wrong(
                    f"{key}.{name}",
                    f"is not an option; allowed are {', '.join(sorted(allowed))}"
                    f"{hint(name, allowed)}",
                )
        return value

    def entries(self, value: Any, key: str) -> list[tuple[str, Any]]:
        """A list's entries, each with the key that names it."""
        if not isinstance(value or [], list):
            self.wrong(key, "must be a list of entries")
        return [(f"{key}[{place}]", entry) for place, entry in enumerate(value or [])]

    def present(self, entry: dict[str, Any], needed: set[str] | frozenset[str], key: str) -> None:
        """Every name that is needed."""
        absent = sorted(needed - entry.keys())
        if absent:
            self.wrong(f"{key}.{absent[0]}", "is missing")

    def one_of(self, value: Any, allowed: Any, key: str, kind: str = "") -> None:
        """One of the values that are allowed, which are of a kind."""
        if isinstance(value, list | dict) or value not in allowed:
            choices = ", ".join(
                str(choice) for choice in (sorted(allowed) if isinstance(allowed, set) else allowed)
            )
            self.wrong(
                key,
                f"is {value}; it must be {kind + ': ' if kind else 'one of '}{choices}"
                f"{hint(value, allowed)}",
            )

    def number(self, value: Any, key: str, least: float, most: float, whole: bool = False) -> None:
        """A number between both; `most` itself is not allowed."""
        fits = (
            isinstance(value, int if whole else int | float)
            and not isinstance(value, bool)
            and least <= value < most
        )
        if not fits:
            limits = [f"of at least {least:g}"] if math.isfinite(least) else []
            limits += [f"below {most:g}"] if math.isfinite(most) else []
            kind = "whole number" if whole else "number"
            self.wrong(
                key,
                f"is {value}; it must be a {kind} {' and '.join(limits)}".rstrip(),
            )

    def unique(self, names: list[str], key: str) -> None:
        """No name twice."""
        if len(set(names)) < len(names):
            self.wrong(
                key,
                f"uses the name {max(names, key=names.count)} twice; every name must be its own",
            )

    def file_name(self, name: Any, key: str) -> None:
        """A name that a file system takes."""
        if error := length_error(name):
            self.wrong(key, error)

    def wrong(self, key: str, what: str) -> NoReturn:
        """Refuse the value of a key."""
        raise InputError(f"{self.path}: {key} {what}.")
