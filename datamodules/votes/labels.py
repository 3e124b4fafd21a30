"""Labels as people see them: what is printed of them, and which of them could be taken for each
other.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

LONGEST = 60  # characters that are printed of a name
LETTERS = "look-alike letters"
# Letters of other alphabets that look like Latin ones: a short list for a warning, not the Unicode
# consortium's.
_CYRILLIC = (
    "\u0410\u0412\u0415\u0405\u0406\u0408\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425"
    "\u0430\u0435\u0455\u0456\u0458\u043e\u0440\u0441\u0443\u0445\u0501\u051b\u051d\u04bb",
    "ABESIJKMHOPCTYXaesijopcyxdqwh",
)
_GREEK = (
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u03bd\u03b9",
    "ABEZHIKMNOPTYXovi",
)
_OTHERS = ("\u0131\u0251\u0261", "iag")
# What takes room and shows nothing, besides what Python calls a space: fillers of Hangul and
# Khitan, Braille without dots, a note without a head, and so on.
_BLANK = re.compile("[\u115f\u1160\u2800\u3164\uffa0\U00013441\U00013442\U00016fe4\U0001d159]")
# What takes no room: Unicode's default-ignorable characters, some of which are marks, as accents
# are, but show nothing.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_LATIN = {
    ord(like): letter
    for there, here in (_CYRILLIC, _GREEK, _OTHERS)
    for like, letter in zip(there, here, strict=True)
}


def printed(name: str, longest: int = LONGEST) -> str:
    r"""A name for a terminal: nothing in it is a command, and it is not longer than a line.

    >>> print(printed("red\x1b[2J"), printed("yes\u200b"), printed("abcdefghij", longest=7))
    red\x1b[2J yes\u200b abc…hij
    """
    if len(name) > 4 * longest:  # before every letter of millions is looked at
        name = f"{name[: 2 * longest]}{name[-2 * longest :]}"
    line = escaped(name)
    if len(line) <= longest:
        return line
    return f"{line[: longest // 2]}…{line[-((longest - 1) // 2) :]}"


def escaped(text: str) -> str:
    """The text with every letter that a terminal does not show, or obeys, as its number."""
    return "".join(
        letter if _shows(letter) else letter.encode("unicode_escape").decode() for letter in text
    )


def _shows(letter: str) -> bool:
    return letter.isprintable() and not _BLANK.match(letter) and not _IGNORABLE.match(letter)


class LookAlikes(NamedTuple):
    """Two labels that a person could take for one, and in what they differ."""

    first: str
    second: str
    differ_in: str

    def __str__(self) -> str:
        names = (self.first, self.second)
        first, second = (unicodedata.normalize("NFKC", name) for name in names)
        if self.differ_in == LETTERS or first == second:  # or both would look the same here, too
            names = tuple(name.encode("unicode_escape").decode() for name in names)
        return f"'{printed(names[0])}' and '{printed(names[1])}' ({self.differ_in})"


def look_alikes(names: Sequence[str]) -> list[LookAlikes]:
    """Pairs of names that a person could take for one.

    They differ only in blanks, in case, in characters of no width, or in letters that look alike
    (of other alphabets, or other forms of one letter).

    >>> for pair in look_alikes(["yes", "no", "yes ", "No", "n\\u043e"]):
    ...     print(pair)
    'yes' and 'yes ' (blanks)
    'no' and 'No' (case)
    'no' and 'n\\u043e' (look-alike letters)
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_as_seen(name), []).append(name)
    return [
        LookAlikes(first, other, _difference(first, other))
        for first, *others in groups.values()
        for other in others
    ]


def _as_seen(name: str) -> str:
    normal = unicodedata.normalize("NFKC", _with_width(name))
    return _without_blanks(normal.translate(_LATIN).casefold())


def _difference(one: str, other: str) -> str:
    """The least that makes both the same."""
    for words, change in (
        ("blanks", _without_blanks),
        ("case", str.casefold),
        ("characters without width", _with_width),
    ):
        if change(one) == change(other):
            return words
    plain = [_without_blanks(_with_width(name)).casefold() for name in (one, other)]
    return "blanks, case or characters without width" if plain[0] == plain[1] else LETTERS


def _without_blanks(name: str) -> str:
    return "".join(_BLANK.sub(" ", name).split())


def _with_width(name: str) -> str:
    """Without what takes no room: joiners, marks of direction, choices between forms of a
    character, commands to a terminal.
    """

    def has_width(letter: str) -> bool:
        return letter.isspace() or unicodedata.category(letter) not in ("Cf", "Cc")

    return "".join(filter(has_width, _IGNORABLE.sub("", name)))
