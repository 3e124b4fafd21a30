"""A run is a value: its name, and so its directory, follows from the options that differ from their
defaults.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from experiment.build import class_of
from experiment.option_defaults import LEARNING, MODEL, SCHEMA, TRAINER, defaults_of, snapshot

# Where files lie, who reads them and which scores join does not change a run; the seed is that of
# the whole run, which is told apart.
PLACES = ("root", "cache", "num_workers", "ordinal", "seed")


def all_options(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a resolved config that decides a run's result.

    Callbacks say themselves, by `changes_training`, whether they belong to it; one that says
    nothing may change what is learned, and does.
    """
    trainer, data = config.get("trainer", {}), config["data"]
    arguments = data.get("init_args", {})
    own = {name: value for name, value in arguments.items() if name not in PLACES}
    return {
        "seed": config.get("seed_everything"),
        "data": {**data, "init_args": own},
        "model": {name: value for name, value in config["model"].items() if name != "seed"},
        "trainer": {name: trainer[name] for name in LEARNING if name in trainer},
        "callbacks": [
            callback for callback in trainer.get("callbacks") or [] if changes_training(callback)
        ],
    }


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """`all_options` without those that are what they are by default: what a run is named by."""
    options = all_options(config)
    return {
        "seed": options["seed"],
        "data": _entry(options["data"]),
        "model": _entry({"class_path": MODEL, "init_args": options["model"]})["init_args"],
        "trainer": _entry({"class_path": TRAINER, "init_args": options["trainer"]})["init_args"],
        "callbacks": [_entry(callback) for callback in options["callbacks"]],
    }


def changes_training(callback: dict[str, Any]) -> bool:
    """Whether a callback may change what is learned, and so belongs to a run's name."""
    return getattr(class_of(callback), "changes_training", True)


def _entry(entry: dict[str, Any]) -> dict[str, Any]:
    """A class by its path, with those of its options that differ from their defaults."""
    arguments = entry.get("init_args") or {}
    defaults = defaults_of(entry["class_path"], arguments)
    # most are as they are
    other = {
        name: value
        for name, value in arguments.items()
        if name not in defaults or defaults[name] != value
    }
    result = {name: _value(value) for name, value in other.items()}
    return {
        **entry,
        "init_args": {
            name: value
            for name, value in result.items()
            if name not in defaults or _value(defaults[name]) != value
        },
    }


def _value(value: Any) -> Any:
    """A value as JSON has it, with one form for equal numbers and for equal classes."""
    if isinstance(value, dict):
        if "class_path" in value:
            return _entry(value)
        return {str(key): _value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_value(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def run_name(config: dict[str, Any]) -> str:
    """Readable first, unique last: dataset, delivery, seed and a digest of everything that matters.

    >>> config = {"seed_everything": 0, "model": {}, "data": {"class_path": "datamodules.Digits"}}
    >>> run_name(config)
    'digits-softlabels-seed0-...'
    >>> run_name(config) == run_name({**config, "trainer": {"devices": 8}})
    True
    """
    return _readable(config, _digest({"schema": SCHEMA, **identity(config)}))


def run_folder(runs: Path, config: dict[str, Any], name: str | None = None) -> Path:
    """Where a run lies, or will lie: by its name, or by the name that it had in an earlier version,
    if only that is there.
    """
    folder = runs / (name or run_name(config))
    if folder.is_dir():
        return folder
    earlier = (runs / name for name in earlier_names(config))
    return next((path for path in earlier if path.is_dir()), folder)


def earlier_names(config: dict[str, Any]) -> list[str]:
    """The names of the same run in earlier versions, the latest first."""
    return [_readable(config, _digest(identity_of(config))) for identity_of in EARLIER]


def _identity_0(config: dict[str, Any]) -> dict[str, Any]:
    """By the rule of schema 0, which named every option that there was, whatever its value, and
    knew callbacks of this project by their path.
    """
    trainer, data = config.get("trainer", {}), _known_0(config["data"])
    later = {"monitor": "val/soft_nll", "compile": False}
    model = {
        name: _known_0(value)
        for name, value in config["model"].items()
        if name in snapshot(0)[MODEL] and later.get(name, ...) != value
    }
    callbacks = [_known_0(callback) for callback in trainer.get("callbacks") or []]
    places, arguments = ("root", "cache", "num_workers"), data.get("init_args", {})
    own = {name: value for name, value in arguments.items() if name not in places}
    return {
        "seed": config.get("seed_everything"),
        "data": {**data, "init_args": own},
        "model": model,
        "trainer": {name: trainer.get(name) for name in LEARNING},
        "callbacks": [
            callback
            for callback in callbacks
            if not str(callback.get("class_path", "")).startswith("callbacks.")
        ],
    }


def _known_0(value: Any) -> Any:
    """Without options that came after schema 0."""
    if not isinstance(value, dict) or "class_path" not in value or "init_args" not in value:
        return value
    known = snapshot(0).get(value["class_path"])
    arguments = {
        name: _known_0(part)
        for name, part in value["init_args"].items()
        if known is None or name in known
    }
    # a class that had no options then was named without any
    if value["init_args"] and not arguments:
        return {name: part for name, part in value.items() if name != "init_args"}
    return {**value, "init_args": arguments}


EARLIER: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (_identity_0,)


def _digest(result: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True, default=str).encode()).hexdigest()[:10]


def _readable(config: dict[str, Any], digest: str) -> str:
    arguments = config["data"].get("init_args", {})
    delivery = (arguments.get("delivery") or {}).get("class_path", "SoftLabels")
    votes = f"-k{arguments['votes_per_item']}" if arguments.get("votes_per_item") else ""
    words = [
        arguments.get("name") or config["data"]["class_path"].rsplit(".")[-1],
        delivery.rsplit(".")[-1],
    ]
    return f"{'-'.join(words).lower()}{votes}-seed{config.get('seed_everything')}-{digest}"
