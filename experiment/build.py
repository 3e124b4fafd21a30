"""Objects from resolved configs, for packs: what LightningCLI would build, without its cost per
run.
"""

from functools import partial
from importlib import import_module
from typing import Any

import torch

from callbacks.probe import Probe
from datamodules import VoteDataModule, VoteTable
from lightning_modules import AnnotatorClassifier


def build(entry: Any) -> Any:
    """Instantiate a `class_path` with its `init_args`, and those within them.

    >>> build({"class_path": "datamodules.Mixup",
    ...     "init_args": {"base": {"class_path": "datamodules.SoftLabels"}, "alpha": 0.5}})
    Mixup(base=SoftLabels(), alpha=0.5)
    """
    if not isinstance(entry, dict) or "class_path" not in entry:
        return entry
    return class_of(entry)(
        **{name: build(value) for name, value in entry.get("init_args", {}).items()}
    )


def class_of(entry: dict[str, Any]) -> type:
    """The class that a `class_path` names."""
    module, _, name = entry["class_path"].rpartition(".")
    return getattr(import_module(module), name)


def is_probe(callback: dict[str, Any]) -> bool:
    """Whether a callback measures what training leaves behind, so that `results.json` lists it."""
    return issubclass(class_of(callback), Probe)


def build_data(config: dict[str, Any]) -> VoteDataModule:
    """A run's datamodule, set up."""
    data = build(config["data"])
    if "model" in config:
        inputs, classes = data.input_shape, data.num_classes
        with torch.device("meta"):  # whether the network takes such inputs, before any are embedded
            _part(config["model"], "network")(inputs, classes)
    data.prepare_data()
    data.setup()
    return data


def training_labels(config: dict[str, Any], data: VoteDataModule) -> VoteTable:
    """What a run labels all items with, from data that it may share with runs of other labels."""
    arguments = config["data"].get("init_args", {})
    return data.training_votes(
        **{
            name: arguments.get(name)
            for name in data.pack_axes
            if name not in ("delivery", "votes_per_item")
        }
    )


def build_classifier(config: dict[str, Any], data: VoteDataModule) -> AnnotatorClassifier:
    """A run's classifier as it begins, for data that is set up."""
    model = config["model"]
    parts: dict[str, Any] = {
        name: _part(model, name)
        for name in ("network", "optimizer", "scheduler")
        if model.get(name)
    }
    options = {"monitor": model["monitor"], "channels_last": model.get("channels_last", False)}
    options["ordinal"] = data.ordinal
    return AnnotatorClassifier(
        data.input_shape, data.num_classes, seed=model["seed"], **options, **parts
    )


def _part(model: dict[str, Any], name: str) -> Any:
    return partial(class_of(model[name]), **model[name].get("init_args", {}))
