"""Options of a study's YAML, each described once, as a field of a dataclass: what its values are,
what it is for, and its default.

    class Box(FigureSpec):
        whiskers: float = option(Number(0, 10), "length, in quartile distances", default=1.5)

`read_entry` reads and checks an entry by these fields, and `studies.schema.reference` makes the
reference page of them.
"""

import math
import re
from collections.abc import Set
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from studies.schema.checks import Checks

ABSENT: Any = object()  # nothing was said; null may be a level


@dataclass
class Reading:
    """Who checks, and what has been read of an entry so far, by field."""

    checks: Checks
    values: dict[str, Any] = field(default_factory=dict)


class Kind:
    """What the values of an option are: `words` say it, `read` checks a value and may change it."""

    words = "anything"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """The value that the field takes; a mistake is refused."""
        return value

    def default(self, reading: Any) -> Any:
        """What the field takes where nothing is said and it depends on other options."""
        return ABSENT


def option(kind: Kind, what: str, default: Any = MISSING, name: str = "") -> Any:
    """A field that the YAML may set.

    Args:
        kind: What its values are.
        what: What it is for, in a few words, for the reference.
        default: Its value where nothing is said. An option without one must be given.
        name: What the YAML calls it, where that is no name for a field.
    """
    about = {"kind": kind, "what": what, "name": name}
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=about)
    return field(default=default, metadata=about)


def options_of(described: type) -> dict[str, Field]:
    """The options of a dataclass, by what the YAML calls them."""
    return {f.metadata["name"] or f.name: f for f in fields(described) if "kind" in f.metadata}


def is_needed(described: Field) -> bool:
    """Whether it must be given."""
    return described.default is MISSING and described.default_factory is MISSING


def read_entry(
    described: type,
    entry: Any,
    key: str,
    reading: Any,
    of: str = "",
    others: Set[str] = frozenset(),
) -> dict[str, Any]:
    """The fields of a dataclass as an entry of the YAML sets them, in their order.

    Args:
        of: What the entry is, for the sentence on one that is missing or does not belong.
        others: Options of other things of that sort, which do not belong here.
    """
    checks, options = reading.checks, options_of(described)
    checks.mapping(entry, key, {*options, *others})
    if odd := sorted(str(name) for name in entry if name not in options):
        checks.wrong(f"{key}.{odd[0]}", f"does not belong in {of}")
    absent = sorted(name for name in options if is_needed(options[name]) and name not in entry)
    if absent:
        checks.wrong(f"{key}.{absent[0]}", "is missing" + (f" from {of}" if of else ""))
    for name, described_as in options.items():
        kind: Kind = described_as.metadata["kind"]
        value = (
            kind.read(entry[name], f"{key}.{name}" if key else name, reading)
            if name in entry
            else kind.default(reading)
        )
        if value is not ABSENT:
            reading.values[described_as.name] = value
    return reading.values


class Text(Kind):
    """Words, of which nothing depends."""

    words = "a text"

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is; null is no text."""
        if isinstance(value, list | dict):
            reading.checks.wrong(key, "must be a text")
        return "" if value is None else str(value)


class Title(Text):
    """What stands above a part of a report: its name, unless something else is said."""

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is, if it says anything."""
        return super().read(value, key, reading) or self.default(reading)

    def default(self, reading: Any) -> Any:
        """The name."""
        return reading.values["name"]


class FileName(Kind):
    """A name that files have."""

    words = "letters, digits, _ and -"

    def read(self, value: Any, key: str, reading: Any) -> str:
        """As a text."""
        if not re.fullmatch(r"[\w-]+", str(value)):
            reading.checks.wrong(
                key, f"is {value}; it names files, so it must be letters, digits, _ and -"
            )
        reading.checks.file_name(value, key)
        return str(value)


class Flag(Kind):
    """Yes or no."""

    words = "true or false"

    def read(self, value: Any, key: str, reading: Any) -> bool:
        """As it is."""
        if not isinstance(value, bool):
            reading.checks.wrong(key, "must be true or false")
        return value


class Names(Kind):
    """A list of words."""

    words = "a list of names"

    def read(self, value: Any, key: str, reading: Any) -> list[str]:
        """As it is."""
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            reading.checks.wrong(key, "must be a list of names")
        return value


class Choice(Kind):
    """One of a few words."""

    def __init__(self, *choices: str):
        self.choices, self.words = choices, ", ".join(f"`{choice}`" for choice in choices)

    def read(self, value: Any, key: str, reading: Any) -> str:
        """As it is."""
        reading.checks.one_of(value, self.choices, key)
        return value


class Number(Kind):
    """A number from `least` on and below `most`."""

    def __init__(self, least: float = -math.inf, most: float = math.inf, whole: bool = False):
        self.least, self.most, self.whole = least, most, whole
        limits = [f"of at least {least:g}"] if math.isfinite(least) else []
        limits += [f"below {most:g}"] if math.isfinite(most) else []
        self.words = f"a {'whole ' * whole}number {' and '.join(limits)}".rstrip()

    def read(self, value: Any, key: str, reading: Any) -> Any:
        """As it is."""
        reading.checks.number(value, key, self.least, self.most, self.whole)
        return value
