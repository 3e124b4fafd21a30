"""A run is a value: its name, and so its directory, follows from its resolved config."""

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from errors import InputError
from studies.checkpoints import before, newest_whole, read_checkpoint, say, set_aside

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
LATER = {"monitor": "val/soft_nll", "compile": False}


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


# What a checkpoint must hold to be tested, and to be continued from
WEIGHTS = {"state_dict": dict, "pytorch-lightning_version": str}
TRAINING = {"epoch": int, "global_step": int, "loops": dict, "optimizer_states": list, "lr_schedulers": list}


def check_checkpoint(path: Path, to_continue: bool = False) -> None:
    """Find out before anything starts whether a checkpoint is there, whole and of the right kind; nothing in it can run code."""
    if not path.is_file():
        raise InputError(f"there is no checkpoint {path}; run fit with the same options first, or name one with --ckpt_path.")
    content = read_checkpoint(path)
    held = content if isinstance(content, dict) else {}
    absent = [name for name, kind in (WEIGHTS | (TRAINING if to_continue else {})).items() if not isinstance(held.get(name), kind)]
    if absent:
        what = "holds weights alone, which no training can continue from" if absent[0] in TRAINING else "is no checkpoint of a training"
        raise InputError(f"{path} {what}: it has no {absent[0]}; use one that fit wrote.")
    if not all(isinstance(name, str) and isinstance(value, torch.Tensor) for name, value in held["state_dict"].items()):
        raise InputError(f"{path} has other things than tensors in its state_dict; use a checkpoint that fit wrote.")
    if not isinstance(held.get("val_loss"), float | None):
        raise InputError(f"{path} has a val_loss that is no number; use a checkpoint that fit wrote.")


def best_checkpoint(run_dir: Path) -> Path:
    return run_dir / "checkpoints" / "best.ckpt"


def last_checkpoint(run_dir: Path) -> Path:
    return run_dir / "checkpoints" / "last.ckpt"


def checkpoint_to_continue(run_dir: Path) -> Path | None:
    """The newest checkpoint that a run can be continued from; None where it has to start from the beginning, which ends the same but takes longer.

    The best weights of the epochs so far lie in a file of their own: without them the rest of the run would end with another best.
    """
    best, last = best_checkpoint(run_dir), last_checkpoint(run_dir)
    found = newest_whole(last)
    if found is None:
        return None
    path, content = found
    if "val_loss" in content and not _is_whole(best):
        say(f"{best} cannot be read (absent, cut short or altered); starting from the beginning.")
        set_aside(last, before(last))
        return None
    return path


def _is_whole(path: Path) -> bool:
    try:
        read_checkpoint(path)
    except (FileNotFoundError, InputError):
        return False
    return True
