"""The cells of a grid: every combination of levels as a resolved config.

Each level is parsed once, not once per cell, so that ten thousand runs are planned in seconds.
"""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.errors import InputError, OptionError
from core.file_names import check_run_name
from experiment.configuration import differences, resolve, with_changes
from experiment.identity import run_name
from studies.plan.places import data_places
from studies.schema.levels import labelled_levels

Cell = tuple[str, dict[str, Any], dict[str, Any]]  # name, config, and level by factor


@dataclass(frozen=True)
class Cells:
    """Expands the grids of one study; what was parsed once is kept."""

    path: Path
    configs: list[str]
    options: dict[str, Any]
    _resolved: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)
    _placed: dict[str, dict[str, str]] = field(default_factory=dict)

    def expand(self, grid: str, content: dict[str, Any]) -> Iterator[Cell]:
        """Expand one grid, or factors like those of one.

        Each level is parsed once, not once per cell; only factors that touch the same option are
        parsed together.
        """
        fixed = [option for path in self.configs for option in ("--config", path)] + _arguments(
            self.options
        )
        base = self._resolve(fixed, grid, {})
        factors = {name: labelled_levels(name, levels) for name, levels in content.items()}
        alone = {
            (name, label): change
            for name, levels in factors.items()
            for label, change in self._level_changes(name, levels, fixed, base, grid).items()
        }
        touched = {
            name: {path for label in levels for path in alone[name, label]}
            for name, levels in factors.items()
        }
        blocks = _joined(list(factors), touched)
        changes = {
            block: self._block_changes(block, factors, fixed, base, alone, grid) for block in blocks
        }
        for choice in itertools.product(*(changes[block] for block in blocks)):
            levels = {
                name: label
                for block, labels in zip(blocks, choice, strict=True)
                for name, label in zip(block, labels, strict=True)
            }
            merged: dict[tuple[str, ...], Any] = {}
            for block, labels in zip(blocks, choice, strict=True):
                merged |= changes[block][labels]
            config = with_changes(base, merged)
            config["data"].get("init_args", {}).update(self._data_places(config["data"]))
            named = run_name(config)
            check_run_name(named)
            yield named, config, {name: levels[name] for name in factors}

    def _data_places(self, data: dict[str, Any]) -> dict[str, str]:
        """Looked for once for equal data, not once per cell."""
        key = repr(
            (
                data["class_path"],
                {
                    name: value
                    for name, value in data.get("init_args", {}).items()
                    if isinstance(value, str)
                },
            )
        )
        if key not in self._placed:
            self._placed[key] = data_places(data, self.path.parent)
        return self._placed[key]

    def _level_changes(self, name, levels, fixed, base, grid) -> dict[Any, dict]:
        """What each level of a factor changes.

        Of a long list of numbers (seeds) two are parsed; the others go where those two went.
        """

        def parsed(label):
            return differences(
                base, self._resolve(fixed + _arguments(levels[label]), grid, {name: label})
            )

        labels = list(levels)
        numbers = [label for label in labels if type(label) is int]
        if len(numbers) == len(labels) > 2:
            ends = {label: parsed(label) for label in (min(labels), max(labels))}
            paths = {path for change in ends.values() for path in change}
            if all(value == label for label, change in ends.items() for value in change.values()):
                return {label: {path: label for path in paths} for label in labels}
        return {label: parsed(label) for label in labels}

    def _block_changes(self, block, factors, fixed, base, alone, grid) -> dict[tuple, dict]:
        if len(block) == 1:
            (name,) = block
            return {(label,): alone[name, label] for label in factors[name]}
        combined = {}
        for labels in itertools.product(*(factors[name] for name in block)):
            chosen = [
                option
                for name, label in zip(block, labels, strict=True)
                for option in _arguments(factors[name][label])
            ]
            combined[labels] = differences(
                base, self._resolve(fixed + chosen, grid, dict(zip(block, labels, strict=True)))
            )
        return combined

    def _resolve(self, options: list[str], grid: str, levels: dict[str, Any]) -> dict[str, Any]:
        key = tuple(options)
        try:
            if key not in self._resolved:
                self._resolved[key] = resolve(options)
            return self._resolved[key]
        except OptionError as error:
            where = (
                f", {', '.join(f'{name} = {label}' for name, label in levels.items())}"
                if levels
                else ""
            )
            raise InputError(f"{self.path}, grid {grid}{where}: {error}") from error


def _arguments(options: dict[str, Any]) -> list[str]:
    """Options as the command line takes them."""
    return [
        word
        for name, value in options.items()
        for word in (f"--{name}", value if isinstance(value, str) else json.dumps(value))
    ]


def _joined(names: list[str], touched: dict[str, set]) -> list[tuple[str, ...]]:
    """Group factors that touch a common option; the others stay alone."""
    blocks: list[tuple[list[str], set]] = []
    for name in names:
        paths = set(touched[name])
        members = [name]
        for block in [b for b in blocks if b[1] & paths]:
            blocks.remove(block)
            members, paths = block[0] + members, paths | block[1]
        blocks.append((members, paths))
    return [tuple(members) for members, _ in blocks]
