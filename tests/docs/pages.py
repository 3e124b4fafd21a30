"""The fenced blocks of a page of the docs."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """What one fence holds: its language, its title (the file that it stands for) and its text."""

    language: str
    title: str
    text: str


def blocks(text: str) -> list[Block]:
    return [Block(*(part or "" for part in found.groups())) for found in FENCE.finditer(text)]


def sections(text: str) -> dict[str, str]:
    """The text below each heading of the second level, by heading."""
    _, *parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def commands(text: str) -> list[list[str]]:
    """The words after `cli.py` of every command in a bash block."""
    lines = [
        line.split("#")[0].split()
        for block in blocks(text)
        if block.language == "bash"
        for line in block.text.splitlines()
    ]
    return [line[2:] for line in lines if line[:2] == [".venv/bin/python", "cli.py"]]
