"""What a study's file says, on top of the study that it extends, and so on."""

import os
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from core.errors import InputError
from core.plain_yaml import NotPlain, read_plain
from studies.plan.places import absence, find_file, with_configs_found


def read_study_file(path: Path) -> Any:
    """The content of all files together, as it is."""
    contents, known, by = [], {os.path.realpath(path)}, ""
    while True:
        try:
            contents.append(content := with_configs_found(read_plain(path), path))
        except (OSError, ValueError, yaml.YAMLError) as error:
            why = error if isinstance(error, NotPlain) else type(error).__name__
            raise InputError(
                f"{path}{by} cannot be read as a study ({why}); it must be a YAML file."
            ) from error
        if not isinstance(content, dict) or "extends" not in content:
            return reduce(merged, reversed(contents))
        named = str(content.pop("extends"))
        result = find_file(named, path.parent)
        if result is None:
            raise InputError(
                f"{named}, which {path} extends, cannot be read as a study: {absence(path.parent)}."
            )
        if os.path.realpath(result) in known:
            raise InputError(
                f"{path} extends {result}, which extends it in turn; one of them must stand alone."
            )
        known.add(os.path.realpath(result))
        path, by = Path(result), f", which {path} extends,"


def merged(base: Any, changes: Any) -> Any:
    """Entries within entries are merged, anything else is replaced.

    >>> merged({"grids": {"main": {"seed": [0, 1], "rate": [1]}}, "title": "All"},
    ...     {"grids": {"main": {"seed": [0]}}})
    {'grids': {'main': {'seed': [0], 'rate': [1]}}, 'title': 'All'}
    """
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return {**base, **{key: merged(base.get(key), value) for key, value in changes.items()}}
