"""Words in Markdown that mean nothing but themselves: labels, titles and names come from anybody's
files.
"""

import re

# What a renderer would take for a mark, for a tag or for a character's name; an underscore only at
# the edge of a word, and a sign for "less" only before a name.
_MARKS = re.compile(r"[\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])")
_TAG, _ENTITY = re.compile(r"<(?=[A-Za-z/!?])"), re.compile(r"&(?=#?\w+;)")


def markdown_text(text: str) -> str:
    r"""A text in one line that any renderer shows as it is.

    >>> markdown_text("<img src=x onerror=alert(1)> & `code`, p < 0.05, soft_nll")
    '&lt;img src=x onerror=alert(1)> & \\`code\\`, p < 0.05, soft_nll'
    """
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return _TAG.sub("&lt;", _ENTITY.sub("&amp;", _MARKS.sub(r"\\\g<0>", line)))


def markdown_row(cells: list[str]) -> str:
    r"""A line of a table; the lines of a cell's text stand below each other.

    >>> markdown_row(["a|b", "one\ntwo"])
    '| a\\|b | one<br>two |'
    """
    return raw_row([markdown_cell(cell) for cell in cells])


def markdown_cell(text: str) -> str:
    """The lines of a text below each other, in a cell of a table."""
    return "<br>".join(markdown_text(line) for line in text.split("\n"))


def raw_row(cells: list[str]) -> str:
    """A line of cells that are Markdown already."""
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
