"""Files of options, before the parser sees them.

It reads not only those of --config but any value that names a file where entries are expected.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from core.bounded_files import is_endless
from core.errors import OptionError
from core.plain_yaml import NotPlain, read_plain


def check_config(path: Path) -> None:
    """Nothing for a file of plain YAML whose values name no device, no pipe and no other YAML than
    such; a sentence for anything else.
    """
    for value in _texts(_read(path)):
        for folder in (path.parent, Path()):
            try:
                check_value(value, folder)
            except OptionError as error:
                raise OptionError(f"{path}: {error}") from error


def check_value(value: str, folder: Path = Path()) -> None:
    """The same of one option, whose value may be a word as well as the name of a file."""
    path = folder / value
    if is_endless(path):
        raise OptionError(f"{value} is a device or a pipe; options are read from files alone.")
    if path.suffix in (".yaml", ".yml", ".json") and path.is_file():
        _read(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = read_plain(path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        why = error if isinstance(error, NotPlain) else type(error).__name__
        raise OptionError(
            f"{path} cannot be read as a config ({why}); it must be a YAML file of options."
        ) from error
    if not isinstance(content, dict):
        raise OptionError(
            f"{path} holds no options; a config has entries such as data, model and trainer."
        )
    return content


def _texts(content: Any) -> Iterator[str]:
    """All texts that are values, however deep; plain YAML is never deeper than the stack."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            yield from _texts(part)
