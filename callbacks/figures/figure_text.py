"""A user's words in a figure: class names, labels, titles and names of data, shown as they were
typed.
"""

import textwrap
from functools import cache

from matplotlib.font_manager import FontProperties, findfont, get_font

# characters that are shown of each; what is longer is cut in its middle, because names often differ
# at their ends
NAME, TITLE = 48, 160


def as_typed(text: object, longest: int = NAME, width: int | None = None) -> str:
    r"""Words for matplotlib that mean nothing but themselves: no formulas, no control characters,
    and of a length to read.

    matplotlib takes what stands between two dollars for a formula, and an invalid one costs the
    whole figure; so a dollar is always a dollar. With `width`, the text is broken into lines of so
    many characters.

    >>> print(as_typed("from $5 to $9"), as_typed("one\ttwo"), as_typed("abcdefghij", longest=7))
    from \$5 to \$9 one two abc…hij
    >>> print(as_typed("a longer title", width=8))
    a longer
    title
    """
    line = printable("".join(letter if letter.isprintable() else " " for letter in str(text)))
    if len(line) > longest:
        line = f"{line[: longest // 2]}…{line[-((longest - 1) // 2) :]}"
    if width is not None:
        line = textwrap.fill(line, width)
    return line.replace("$", r"\$")  # last of all: a line must not be broken between the two


def printable(text: str) -> str:
    """Letters that the figures' font does not have, as a white square.

    >>> printable("naïve 🙂")
    'naïve □'
    """
    return "".join(
        letter if ord(letter) in _known() or letter in "\n\t" else "□" for letter in text
    )


@cache
def _known() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties())).get_charmap())
