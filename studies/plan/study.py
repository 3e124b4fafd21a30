"""A study: one YAML that names grids of runs, expanded to resolved configs.

Equal runs, in one study or two, are one run.
"""

import itertools
import json
import os
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import yaml

from core.errors import InputError, OptionError
from core.file_names import check_run_name
from core.plain_yaml import NotPlain, read_plain
from experiment.configuration import differences, resolve, with_changes
from experiment.identity import run_folder, run_name
from studies.plan.places import absence, check_configs, data_places, find_file, with_configs_found
from studies.plan.selection import Selection, SelectionReader
from studies.plan.study_checks import KEYS, NEEDED, check_study
from studies.schema.checks import Checks
from studies.schema.levels import Levels


@dataclass(frozen=True)
class Run:
    """One cell of a study: its resolved config, and the level of every factor by which it came
    about, for each grid it belongs to.
    """

    name: str
    config: dict[str, Any] = field(repr=False)
    factors: dict[str, dict[str, Any]]  # grid -> factor -> level

    def folder(self, runs: Path) -> Path:
        """Where it lies: by its name, or by the one that an earlier version gave it, where that is
        there.
        """
        return run_folder(runs, self.config, self.name)

    def merge_callbacks(self, config: dict[str, Any], source: Path) -> None:
        """Also take the probes that this run has in another grid, which are no part of its name:
        whichever list holds the other, in any order of grids.
        """
        mine, theirs = ((one["trainer"].get("callbacks") or []) for one in (self.config, config))
        if all(callback in mine for callback in theirs):
            return
        if all(callback in theirs for callback in mine):
            self.config["trainer"]["callbacks"] = theirs
        else:
            raise InputError(
                f"{source}: {self.name} is in several grids, with different callbacks in each; "
                "one of them must list the callbacks of all."
            )


@dataclass(frozen=True)
class Study:
    """What a study's YAML says.

    A grid maps factors to their levels. A factor is either an option (`data.delivery: [SoftLabels,
    Multipass]`) or a name of the author's own whose levels each set several options (`dataset:
    {digits: {data: Digits, ...}, ...}`). Factors under `paired` (the seed, as a rule) tie runs
    together: those that agree in them share split, initial weights and batch order, and are
    compared pairwise.

    `extends: basins.yaml` takes over another study and says only what differs: entries within
    entries are merged, anything else (a list, a number) is replaced. So one experiment at three
    scales has one list of grids, tables and claims. `studies.plan.places` says where paths lead.
    """

    name: str
    path: Path
    configs: list[str]
    grids: dict[str, dict[str, Any]]
    title: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    paired: list[str] = field(default_factory=lambda: ["seed_everything"])
    predict: bool = False  # also keep every run's predictions, item by item
    report: dict[str, Any] = field(default_factory=dict)
    # further grids, whose runs depend on results: see `studies.plan.second_stage`
    selections: dict[str, Selection] = field(default_factory=dict)
    _resolved: dict[tuple[str, ...], dict[str, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _placed: dict[str, dict[str, str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def load(cls, path: str | Path) -> "Study":
        path = Path(path)
        content = _read(path)
        if not isinstance(content, dict) or not NEEDED <= content.keys() <= KEYS:
            optional = ", ".join(sorted(KEYS - NEEDED | {"extends"}))
            raise InputError(
                f"{path} must have the entries name, configs and grids, and may have {optional}."
            )
        check_study(content, Checks(path))
        selections, levels = (
            content.pop("selections", None) or {},
            {name: _all_levels(grid) for name, grid in content["grids"].items()},
        )
        check_configs(content["configs"], path)
        reader = SelectionReader(
            Checks(path), levels, lambda factor, options: list(_levels(factor, options))
        )
        if not isinstance(selections, dict):
            reader.checks.wrong("selections", "must have entries, each with a name")
        return cls(
            path=path,
            selections={
                str(name): reader.read(str(name), entry) for name, entry in selections.items()
            },
            **content,
        )

    @property
    def grid_names(self) -> list[str]:
        return [*self.grids, *self.selections]

    def levels(self, grid: str) -> Levels:
        """The levels of every factor of a grid or selection, in the order of the YAML."""
        return (
            self.selections[grid].levels
            if grid in self.selections
            else _all_levels(self.grids[grid])
        )

    def runs(self) -> list[Run]:
        """Every distinct run of the grids, in the order of the YAML.

        Those of selections depend on these.
        """
        result: dict[str, Run] = {}
        for grid in self.grids:
            for name, config, levels in self._cells(grid, self.grids[grid]):
                run = result.setdefault(name, Run(name, config, {}))
                run.merge_callbacks(config, self.path)
                run.factors[grid] = levels
        return list(result.values())

    def rerun_cells(self, selection: Selection, winner: Run):
        """The runs that a winning cell is run again as: name, config, and levels of the selection's
        own factors.
        """
        levels = winner.factors[selection.grid]
        cell = {
            factor: {levels[factor]: _levels(factor, all_)[levels[factor]]}
            for factor, all_ in self.grids[selection.grid].items()
        }
        for name, config, factors in self._cells(selection.name, cell | selection.then):
            yield name, config, {factor: factors[factor] for factor in selection.levels}

    def _cells(self, grid: str, content: dict[str, Any]):
        """Expand one grid.

        Each level is parsed once, not once per cell; only factors that touch the same option are
        parsed together.
        """
        fixed = [option for path in self.configs for option in ("--config", path)] + _arguments(
            self.options
        )
        base = self._resolve(fixed, grid, {})
        factors = {name: _levels(name, levels) for name, levels in content.items()}
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


def _read(path: Path) -> Any:
    """What a study's file says, on top of the study that it extends, and so on."""
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
    """
    >>> merged({"grids": {"main": {"seed": [0, 1], "rate": [1]}}, "title": "All"},
    ...     {"grids": {"main": {"seed": [0]}}})
    {'grids': {'main': {'seed': [0], 'rate': [1]}}, 'title': 'All'}
    """
    if not isinstance(base, dict) or not isinstance(changes, dict):
        return changes
    return {**base, **{key: merged(base.get(key), value) for key, value in changes.items()}}


def _all_levels(grid: dict[str, Any]) -> Levels:
    return {factor: list(_levels(factor, levels)) for factor, levels in grid.items()}


def _levels(name: str, levels: Any) -> dict[Any, dict[str, Any]]:
    """Each level's label and the options that it sets."""
    if isinstance(levels, dict):
        return levels
    return {_label(value): {name: value} for value in levels}


def _label(value: Any) -> Any:
    """A level as it appears in tables: a class by its name and options, anything else as it is.

    >>> _label({"class_path": "StochasticLabelSampling", "init_args": {"resample_every": 5}})
    'StochasticLabelSampling(resample_every=5)'
    """
    if isinstance(value, dict) and "class_path" in value:
        options = ", ".join(f"{key}={option}" for key, option in value.get("init_args", {}).items())
        return f"{value['class_path']}({options})" if options else value["class_path"]
    return value


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
