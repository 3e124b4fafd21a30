"""Finished runs that can be compared with each other: the same items and the same network, grouped
by method and seed.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from core.errors import InputError
from experiment.build import class_of
from experiment.identity import PLACES
from experiment.run_checkpoints import best_checkpoint, check_checkpoint
from lightning_modules.networks import Network
from studies.plan.study import Run

# What the data's config may differ in without a change of items or inputs, besides how they are
# labelled in training (`VoteDataModule.pack_axes`)
FREE = {"batch_size", *PLACES}

Methods = dict[Any, dict[int, Run]]  # level of the factor -> seed -> run


def by_method(study_runs: list[Run], runs: Path, factor: str) -> Methods:
    """Runs by their level of a factor and their seed, in the order given, after a check that they
    can be compared.
    """
    if not study_runs:
        raise InputError("there are no runs to compare; name at least two seeds of one method.")
    methods: Methods = {}
    for run in study_runs:
        _check_alike(study_runs[0], run)
        _check_trained(run, runs)
        seeds, seed = methods.setdefault(_level(run, factor), {}), run.config["seed_everything"]
        if seed in seeds:
            raise InputError(
                f"{seeds[seed].name} and {run.name} have the same {factor} and seed; compare runs "
                "that differ in nothing but these two."
            )
        seeds[seed] = run
    for level, seeds in methods.items():
        if len(seeds) < 2:
            raise InputError(
                f"{factor} = {level} has one seed only ({min(seeds)}); what differs between seeds "
                "takes at least two."
            )
    return methods


def load_weights(run: Run, runs: Path, network: Network) -> dict[str, Tensor]:
    """The weights of a run's best checkpoint, loaded into a network of its config as well."""
    return read_weights(best_checkpoint(run.folder(runs)), network)


def read_weights(path: Path, network: Network) -> dict[str, Tensor]:
    """The weights of a checkpoint, loaded into a network as well.

    Nothing in a checkpoint can run code.
    """
    check_checkpoint(path)
    saved = torch.load(path, map_location="cpu", weights_only=True)
    state = {
        name.removeprefix("network."): value
        for name, value in saved.get("state_dict", {}).items()
        if name.startswith("network.")
    }
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(
            f"{path} does not hold the weights of its config's {type(network).__name__}; train "
            "this run again."
        ) from error
    bad = next((name for name, value in state.items() if not value.isfinite().all()), None)
    if bad is not None:
        raise InputError(
            f"{path}: {bad} holds values that are not finite numbers; this training diverged, so "
            "leave this run out."
        )
    return state


def _level(run: Run, factor: str) -> Any:
    levels = {name: level for grid in run.factors.values() for name, level in grid.items()}
    if factor not in levels:
        raise InputError(
            f"{run.name} has no level of {factor}; its factors are {', '.join(levels) or 'none'}."
        )
    return levels[factor]


def _check_alike(first: Run, other: Run) -> None:
    if first.config["model"]["network"] != other.config["model"]["network"]:
        raise InputError(
            f"{first.name} and {other.name} are of different networks; only runs of one network "
            "can be compared."
        )
    if items_of(first) != items_of(other):
        raise InputError(
            f"{first.name} and {other.name} are of different data; only runs on the same items "
            "can be compared."
        )


def items_of(run: Run) -> dict[str, Any]:
    """What decides a run's items and inputs, whatever part of them it trains on and how."""
    data = run.config["data"]
    free = {*FREE, *class_of(data).pack_axes}  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "class_path": data["class_path"],
        **{name: value for name, value in data.get("init_args", {}).items() if name not in free},
    }


def _check_trained(run: Run, runs: Path) -> None:
    path = best_checkpoint(run.folder(runs))
    if not path.is_file():
        raise InputError(
            f"{run.name} has no checkpoint {path}; finish that run first, or leave it out."
        )
    check_checkpoint(path)
