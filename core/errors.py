"""The exception that a user's mistake raises, and how errors become sentences.

A message is one sentence that says what is wrong and what would be right.
"""

import difflib
import errno
import os
import re
from collections.abc import Iterable, Sequence
from inspect import isabstract
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a command that only explains itself imports nothing
    import numpy as np

LONGEST = 900  # characters of a message


class _OneLine(ValueError):
    """One line of readable length, without commands to a terminal.

    Messages quote what files hold, and files may hold anything.
    """

    def __init__(self, message: str):
        line = "".join(character if character.isprintable() else " " for character in message)
        if len(line) > LONGEST:
            line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 3 :]}"
        super().__init__(line)


class InputError(_OneLine):
    """A mistake in what the user gave (a file, a row, an option).

    `cli.py` prints it without a traceback.

    >>> raise InputError("data.batch_size is 0; it must be at least 1.")
    Traceback (most recent call last):
    core.errors.InputError: data.batch_size is 0; it must be at least 1.
    """


class OptionError(_OneLine):
    """A mistake in an option's name or type, found while parsing."""


def mistake_behind(error: BaseException | None) -> Exception | None:
    """The user's mistake that led to an error, if there is one.

    Libraries may have wrapped it in errors of their own. A full disk counts as a mistake, and comes
    first, because it explains the others.
    """
    chain: list[BaseException] = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or error.__context__
    mistakes = [link for link in chain if isinstance(link, InputError | OptionError)]
    return next(filter(None, (*map(full_disk, chain), *mistakes, *map(closed_disk, chain))), None)


FULL = {
    errno.ENOSPC: "no room is left on its disk; make some",
    errno.EDQUOT: "your share of its disk is used up; make room",
    errno.EFBIG: "files may not be that large here; raise the limit (ulimit -f)",
}


def full_disk(error: BaseException) -> InputError | None:
    """The sentence for a file that had no room.

    Libraries that are not written in Python say it in words alone, without a number.

    >>> full_disk(OSError(errno.ENOSPC, "", "runs/a/results.json"))
    InputError('runs/a/results.json could not be written, because no room is left on its disk; make
    some, and give the same command again.')
    """
    message = str(error)
    if isinstance(error, OSError):
        number = error.errno
    else:
        number = next((each for each in FULL if f"(os error {each})" in message), None)
    in_words = isinstance(error, Exception) and os.strerror(errno.ENOSPC) in message
    if number not in FULL and in_words:
        number = errno.ENOSPC
    if number not in FULL or isinstance(error, InputError | OptionError):
        return None
    return InputError(
        f"{_file_of(error)} could not be written, because {FULL[number]}, and give the same "
        "command again."
    )


def closed_disk(error: BaseException) -> InputError | None:
    """The sentence for a file that may not be opened."""
    if not isinstance(error, OSError) or error.filename is None:
        return None
    if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
        return None
    return InputError(
        f"{_file_of(error)} may not be opened or made here ({os.strerror(error.errno)}); change "
        "that, or name another place."
    )


def _file_of(error: BaseException) -> str:
    name = getattr(error, "filename", None)
    return os.fsdecode(name) if isinstance(name, str | bytes) else "a file"


def name_rows(rows: "Sequence[int] | np.ndarray", shown: int = 3) -> str:
    """Name the first few of many rows, so that an error about a large file stays one sentence.

    >>> name_rows([4])
    'row 4'
    >>> name_rows([4, 7, 9, 11, 12])
    'rows 4, 7, 9 and 2 more'
    """
    listed = ", ".join(str(int(row)) for row in rows[:shown])
    more = f" and {len(rows) - shown} more" if len(rows) > shown else ""
    return f"row{'s' if len(rows) > 1 else ''} {listed}{more}"


def name_some(names: Sequence[str], total: int | None = None, shown: int = 3) -> str:
    """The first few of `total` names, for the same reason.

    >>> name_some(["a", "b", "c", "d"], total=9)
    'a, b, c and 6 more'
    """
    total = len(names) if total is None else total
    return ", ".join(names[:shown]) + (f" and {total - shown} more" if total > shown else "")


def hint(value: Any, allowed: Iterable[Any]) -> str:
    """The allowed name that was probably meant, if any is near.

    >>> hint("colums", ["rows", "columns"]), hint("red", ["rows", "columns"])
    (' (did you mean columns?)', '')
    """
    near = difflib.get_close_matches(str(value)[:100], map(str, allowed), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


# What `parse_error` makes of an inner parser's report; the outer parser's report quotes it and adds
# a key in front.
_SENTENCE = re.compile(
    r"[\w.]+ is (?:not an option(?: \(did you mean [\w.]+\?\))?|.+, which is not .+)\."
)
_UNKNOWN = re.compile(
    r"Option '([\w.]+)' is not accepted|does not accept option '([\w.]+)'"
    r"|unrecognized arguments: --([\w.]+)"
)


def parse_error(message: str, choices: dict[str, type], known: Iterable[str] = ()) -> str:
    r"""One sentence out of an argument parser's report.

    `choices` gives the base class of options that name a class, and `known` the options that there
    are.

    >>> parse_error("Parser key \"trainer.max_epochs\":\n  Expected a <class 'int'>. Got value: three", {})
    'trainer.max_epochs is three, which is not int.'
    >>> parse_error("Parser key \"data\":\n  Errors:\n    - epsilon is not an option.\n", {})
    'data.epsilon is not an option.'
    >>> parse_error("Option 'trainer.max_epoch' is not accepted", {}, ["trainer.max_epochs"])
    'trainer.max_epoch is not an option (did you mean trainer.max_epochs?).'
    """  # noqa: E501
    keys = re.findall(r'Parser key "([^"]+)"', message)
    inner = _SENTENCE.search(message)
    if inner:
        sentence = inner.group()
        if keys and "which is not" not in sentence:
            sentence = sentence.replace("did you mean ", f"did you mean {keys[0]}.")
        return ".".join([*keys[:1], sentence])
    unknown = _UNKNOWN.search(message)
    if unknown:
        name = unknown[1] or unknown[2] or unknown[3]
        return f"{name} is not an option{hint(name, known)}."
    given = re.search(r"(?:import path string: |Given value: |Got value: )(.+)", message)
    types = list(dict.fromkeys(re.findall(r"Expected a <class '(?:[\w.]+\.)?(\w+)'>", message)))
    if not keys or not given:
        return " ".join(message.split()).rstrip(".:") + "."
    base = choices.get(keys[0].rsplit(".")[-1])
    allowed, value = " or ".join(types).replace("NoneType", "null"), given.group(1).strip()
    if base:
        names = sorted(_descendants(base))
        allowed = f"one of {', '.join(names)}{hint(value, names)}"
    return f"{keys[0]} is {value}, which is not {allowed or 'allowed'}."


def _descendants(base: type) -> set[str]:
    result = {
        child.__name__
        for child in base.__subclasses__()
        if not child.__name__.startswith("_") and not isabstract(child)
    }
    return result.union(*(_descendants(child) for child in base.__subclasses__()))
