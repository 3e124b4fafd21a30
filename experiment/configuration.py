"""Resolved configs without running anything: what the command line would make of some options, as
plain data.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from core.atomic_io import write_atomically
from experiment.plurality_cli import PluralityCLI, make_cli
from experiment.run_callbacks import add_calibrators

REMOVED: Any = object()  # null may be a value


class _ParserOnly(PluralityCLI):
    """The command line's parser, stopped before anything is seeded, built or run."""

    def _set_seed(self) -> None:
        pass

    def before_instantiate_classes(self) -> None:
        pass

    def instantiate_classes(self) -> None:
        pass

    def _run_subcommand(self, subcommand: str) -> None:
        pass


@cache
def _parser():
    return make_cli(_ParserOnly, ["fit", "--data", "Digits", "--model.network", "SimpleFFN"]).parser


def resolve(options: list[str]) -> dict[str, Any]:
    """All options of a run with their defaults filled in, exactly as `cli.py fit` would see them.

    >>> config = resolve(["--config", "configs/digits.yaml", "--data.delivery", "Multipass"])
    >>> config["data"]["init_args"]["delivery"]
    {'class_path': 'datamodules.Multipass'}
    """
    config = _parser().parse_args(["fit", *options]).fit.as_dict()
    config.pop("config", None)
    config["trainer"]["callbacks"] = add_calibrators(
        config["trainer"]["callbacks"], config.pop("calibrate")
    )
    return config


def write_config(config: dict[str, Any], folder: Path) -> Path:
    """Keep a run's resolved config beside its results, in a form that the command line takes."""
    path = folder / "config.yaml"
    left_out = ("ckpt_path", "weights_only")
    kept = {key: value for key, value in config.items() if key not in left_out}
    plain = json.loads(json.dumps(kept))
    for linked in (plain["model"], plain["data"].get("init_args", {})):
        linked.pop("seed", None)
    write_atomically(path, yaml.safe_dump(plain, sort_keys=False))
    return path


def leaves(config: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Every value of a nested config by its path.

    A class and its options are one value, so that they change together.
    """
    plain = isinstance(config, dict) and "class_path" not in config
    if plain or path in (("data",), ("data", "init_args")):
        return {
            leaf: value
            for key, part in config.items()
            for leaf, value in leaves(part, (*path, key)).items()
        }
    return {path: config}


def differences(base: dict[str, Any], changed: dict[str, Any]) -> dict[tuple[str, ...], Any]:
    """What has to be set in `base`, and removed from it, to make it `changed`."""
    before, after = leaves(base), leaves(changed)
    removed = {path: REMOVED for path in before if path not in after}
    return removed | {
        path: value for path, value in after.items() if before.get(path, REMOVED) != value
    }


def with_changes(base: dict[str, Any], changes: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """A copy of a resolved config with some values set, and some removed."""
    config = _copy(base)
    for path, value in changes.items():
        part = config
        for key in path[:-1]:
            part = part.setdefault(key, {})
        if value is REMOVED:
            part.pop(path[-1], None)
        else:
            part[path[-1]] = value
    return config


def _copy(plain: Any) -> Any:
    """A copy of plain data; `deepcopy` takes four times as long for what may hold itself."""
    if isinstance(plain, dict):
        return {key: _copy(value) for key, value in plain.items()}
    return [_copy(value) for value in plain] if isinstance(plain, list) else plain
