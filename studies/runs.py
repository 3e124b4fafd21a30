"""A run is a value: its name, and so its directory, follows from its resolved config."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from errors import InputError

# The options of the trainer that change what is learned. All others (devices, loggers, progress bars, ...) only change how.
LEARNING = (
    "max_epochs",
    "min_epochs",
    "max_steps",
    "min_steps",
    "precision",
    "limit_train_batches",
    "limit_val_batches",
    "overfit_batches",
    "check_val_every_n_epoch",
    "val_check_interval",
    "accumulate_grad_batches",
    "gradient_clip_val",
    "gradient_clip_algorithm",
)
# Where files lie and who reads them does not change a run either.
PLACES = ("root", "cache", "num_workers")
# Options that came later than runs which are worth keeping: left at their defaults they are not named, so that those runs keep theirs.
LATER = {"monitor": "val/soft_nll"}


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """The part of a resolved config that decides a run's result.

    Callbacks of this project only look at a model, so they are left out; any other (early stopping, say) may change it.
    """
    trainer = config.get("trainer", {})
    callbacks = trainer.get("callbacks") or []
    data = config["data"]
    return {
        "seed": config.get("seed_everything"),
        "data": {**data, "init_args": {k: v for k, v in data.get("init_args", {}).items() if k not in PLACES}},
        "model": {name: value for name, value in config["model"].items() if LATER.get(name, ...) != value},
        "trainer": {name: trainer.get(name) for name in LEARNING},
        "callbacks": [c for c in callbacks if not str(c.get("class_path", "")).startswith("callbacks.")],
    }


def run_name(config: dict[str, Any]) -> str:
    """Readable first, unique last: dataset, delivery, seed and a digest of everything that matters.

    >>> config = {"seed_everything": 0, "model": {}, "data": {"class_path": "datamodules.Digits"}}
    >>> run_name(config)
    'digits-softlabels-seed0-...'
    >>> run_name(config) == run_name({**config, "trainer": {"devices": 8}})
    True
    """
    digest = hashlib.sha256(json.dumps(identity(config), sort_keys=True, default=str).encode()).hexdigest()[:10]
    arguments = config["data"].get("init_args", {})
    delivery = (arguments.get("delivery") or {}).get("class_path", "SoftLabels")
    votes = f"-k{arguments['votes_per_item']}" if arguments.get("votes_per_item") else ""
    words = [config["data"]["class_path"].rsplit(".")[-1], delivery.rsplit(".")[-1]]
    return f"{'-'.join(words).lower()}{votes}-seed{config.get('seed_everything')}-{digest}"


def check_checkpoint(path: Path) -> None:
    """Find out before anything starts whether a checkpoint is there and whole; nothing in it can run code."""
    if not path.is_file():
        raise InputError(f"there is no checkpoint {path}; run fit with the same options first, or name one with --ckpt_path.")
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch, zipfile and pickle each raise their own
        raise InputError(f"{path} is not a checkpoint that can be read; it was cut short, altered, or is another kind of file.") from error


def best_checkpoint(run_dir: Path) -> Path:
    return run_dir / "checkpoints" / "best.ckpt"


def last_checkpoint(run_dir: Path) -> Path:
    return run_dir / "checkpoints" / "last.ckpt"
