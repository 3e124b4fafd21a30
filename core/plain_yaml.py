"""YAML as people write it: lists, entries, numbers and words.

Everything else that the language can do is refused before anything is built of it: a tag can name a
type of Python, aliases within aliases make gigabytes out of a line, brackets within brackets
exhaust the stack, and of a key that is there twice the first is lost without a word.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from core.bounded_files import Unreadable, read_bounded

MOST_BYTES = 10_000_000  # of a file
DEEPEST = 40  # lists or entries within each other
LARGEST = 100_000  # values, with those that aliases stand for
# all control characters but those of lines and tabs
COMMANDS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


# the fast one, where PyYAML was built with it
SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainLoader(SafeLoader):
    """Builds nothing but plain values; a date stays the word that it is, as on the command line."""


PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in known if not tag.endswith(":timestamp")]
    for first, known in PlainLoader.yaml_implicit_resolvers.items()
}


class NotPlain(yaml.YAMLError):
    """What a YAML holds beyond plain lists, entries, numbers and words; a clause of a sentence."""


def check_plain(text: str) -> None:
    """Raises `NotPlain` for anything but plain YAML.

    It reads one event after the other, so that nothing it refuses can hurt it.

    >>> check_plain("rates: &all [0.1, 0.2]\\nagain: *all")
    >>> check_plain("seed: 0\\nseed: 1")
    Traceback (most recent call last):
    core.plain_yaml.NotPlain: it has seed twice in one place
    """
    sizes: dict[str, int] = {}  # of what has an anchor
    parts = [_Part(None, False)]  # those that are open, one within the other
    for event in yaml.parse(text, Loader=PlainLoader):
        if getattr(event, "tag", None) is not None:
            raise NotPlain(f"it has the tag {event.tag}, and tags are not read")
        if isinstance(event, yaml.CollectionStartEvent):
            parts[-1].take()
            parts.append(_Part(event.anchor, isinstance(event, yaml.MappingStartEvent)))
            if len(parts) > DEEPEST:
                raise NotPlain(f"it has more than {DEEPEST} lists or entries within each other")
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            closed = parts.pop()
            anchor, size = closed.anchor, closed.size + 1
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise NotPlain(
                    f"it has the alias {event.anchor} for nothing, or for what it is itself a "
                    "part of"
                )
            parts[-1].take()
            anchor, size = None, sizes[event.anchor]
        elif isinstance(event, yaml.ScalarEvent):
            if COMMANDS.search(event.value):
                raise NotPlain("it has a control character, which a terminal would obey")
            parts[-1].take(event.value)
            anchor, size = event.anchor, 1
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        parts[-1].size += size
        if parts[-1].size > LARGEST:
            raise NotPlain(f"it stands for more than {LARGEST:,} values")


class _Part:
    """A list, or entries, that is being read."""

    def __init__(self, anchor: str | None, has_keys: bool):
        self.anchor, self.has_keys, self.size = anchor, has_keys, 0
        self._keys: set[str] = set()
        self._taken = 0

    def take(self, key: str | None = None) -> None:
        """Every other value of entries is a key."""
        if self.has_keys and self._taken % 2 == 0 and key is not None:
            if key in self._keys:
                raise NotPlain(f"it has {key} twice in one place")
            self._keys.add(key)
        self._taken += 1


def load_plain(text: str) -> Any:
    """What plain YAML says.

    Raises a `yaml.YAMLError` for anything else, or a ValueError for a number that is none.

    >>> load_plain("a: [1, 2.5, word]")
    {'a': [1, 2.5, 'word']}
    """
    check_plain(text)
    return yaml.load(text, Loader=PlainLoader)


def read_plain(path: Path) -> Any:
    """What a file of plain YAML says; it must be a regular file of no more than MOST_BYTES."""
    try:
        text = read_bounded(path, MOST_BYTES)
    except Unreadable as error:
        raise NotPlain(str(error)) from error
    return load_plain(text)
