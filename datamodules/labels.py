"""Labels as people see them: what is printed of them, and which of them could be taken for each other."""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

LONGEST = 60  # characters that are printed of a name
LETTERS = "look-alike letters"
# Letters of other alphabets that look like Latin ones: a short list for a warning, not the Unicode consortium's.
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
_LATIN = {ord(like): letter for there, here in (_CYRILLIC, _GREEK, _OTHERS) for like, letter in zip(there, here, strict=True)}


def printed(name: str, longest: int = LONGEST) -> str:
    r"""A name for a terminal: nothing in it is a command, and it is not longer than a line.

    >>> print(printed("red\x1b[2J"), printed("yes\u200b"), printed("abcdefghij", longest=7))
    red\x1b[2J yes\u200b abc…hij
    """
    if len(name) > 4 * longest:  # before every letter of millions is looked at
        name = f"{name[: 2 * longest]}{name[-2 * longest :]}"
    line = escaped(name)
    return line if len(line) <= longest else f"{line[: longest // 2]}…{line[-((longest - 1) // 2) :]}"


def escaped(text: str) -> str:
    """Letters that no terminal shows, or that it obeys, by their numbers."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


class LookAlikes(NamedTuple):
    """Two labels that a person could take for one, and in what they differ."""

    first: str
    second: str
    differ_in: str

    def __str__(self) -> str:
        names = (self.first, self.second)
        if self.differ_in == LETTERS:  # or both would look the same here, too
            names = tuple(name.encode("unicode_escape").decode() for name in names)
        return f"'{printed(names[0])}' and '{printed(names[1])}' ({self.differ_in})"


def look_alikes(names: Sequence[str]) -> list[LookAlikes]:
    """Names that differ only in blanks, in case, in characters of no width, or in letters that look alike (other alphabets, other forms of one letter).

    >>> for pair in look_alikes(["yes", "no", "yes ", "No", "n\\u043e"]):
    ...     print(pair)
    'yes' and 'yes ' (blanks)
    'no' and 'No' (case)
    'no' and 'n\\u043e' (look-alike letters)
    """
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(_as_seen(name), []).append(name)
    return [LookAlikes(first, other, _difference(first, other)) for first, *others in groups.values() for other in others]


def _as_seen(name: str) -> str:
    return _without_blanks(_with_width(unicodedata.normalize("NFKC", name)).translate(_LATIN).casefold())


def _difference(one: str, other: str) -> str:
    """The least that makes both the same."""
    for words, change in (("blanks", _without_blanks), ("case", str.casefold), ("characters without width", _with_width)):
        if change(one) == change(other):
            return words
    plain = [_without_blanks(_with_width(name)).casefold() for name in (one, other)]
    return "blanks, case or characters without width" if plain[0] == plain[1] else LETTERS


def _without_blanks(name: str) -> str:
    return "".join(name.split())


def _with_width(name: str) -> str:
    """Without what takes no room: joiners, marks of direction, and choices between forms of a character."""
    return "".join(letter for letter in name if unicodedata.category(letter) != "Cf" and not "\ufe00" <= letter <= "\ufe0f")
