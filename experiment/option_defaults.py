"""What every option is by default, as committed in `experiment/defaults/`.

A run's name tells only the options that differ from it.

So an option that is added with a default leaves every name as it is. A default that *changes* gives
other results under the same options, so names must change with it: it raises `SCHEMA`, and the file
of the new number is written by

    python -m experiment.option_defaults

which refuses to change what the file of the present number says.
`tests/experiment/test_option_defaults.py` fails until that is done, also where the default is one
of torch, Lightning or timm. The files of earlier numbers stay: by them runs of earlier versions are
found (`experiment.identity.earlier_names`).
"""

import inspect
import json
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser

from core.errors import InputError

SCHEMA = 1
FILES = Path(__file__).parent / "defaults"
# The options of the trainer that change what is learned. All others (devices, loggers, progress
# bars, ...) only change how.
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
TRAINER, MODEL = "lightning.Trainer", "lightning_modules.AnnotatorClassifier"


@cache
def snapshot(schema: int = SCHEMA) -> dict[str, dict[str, Any]]:
    """The defaults of every known class, by its import path, as they were committed under this
    number.
    """
    return json.loads((FILES / f"schema_{schema}.json").read_text())


def defaults_of(class_path: str, options: Any) -> dict[str, Any]:
    """The defaults that names are told by: the committed ones, and today's of options and classes
    that came later.

    >>> defaults_of("datamodules.Mixup", ["alpha"])["alpha"]
    1.0
    """
    known = snapshot().get(class_path, {})
    if all(option in known for option in options):
        return known
    return {**live_defaults(class_path), **known}


@cache
def live_defaults(class_path: str) -> dict[str, Any]:
    """What a class's signature says today, and those of classes that it hands options on to."""
    module, _, name = class_path.rpartition(".")
    parser = ArgumentParser(exit_on_error=False)
    parser.add_class_arguments(getattr(import_module(module), name), "of", fail_untyped=False)
    result = parser.get_defaults().as_dict().get("of") or {}
    return {
        option: _plain(value)
        for option, value in result.items()
        if class_path != TRAINER or option in LEARNING
    }


def _plain(value: Any) -> Any:
    def name(other: Any) -> str:
        return getattr(other, "__qualname__", None) or str(other)

    return json.loads(json.dumps(value, default=name))


def known_classes() -> list[str]:
    """All classes that a config is expected to name, by their import paths: ours, and those of
    torch, Lightning and timm that learning depends on.
    """
    from lightning.pytorch import callbacks as lightning_callbacks
    from timm import optim as timm_optim
    from torch import optim
    from torch.optim import lr_scheduler

    import callbacks
    import datamodules
    import datamodules.embedders
    import lightning_modules
    import lightning_modules.networks

    result = [TRAINER]
    for module in (
        datamodules,
        datamodules.embedders,
        lightning_modules,
        lightning_modules.networks,
        callbacks,
        optim,
        lr_scheduler,
        lightning_callbacks,
        timm_optim,
    ):
        public = getattr(module, "__all__", None) or vars(module)
        classes = {name: getattr(module, name, None) for name in public if not name.startswith("_")}
        result += [
            f"{module.__name__}.{name}"
            for name, kind in classes.items()
            if inspect.isclass(kind) and not inspect.isabstract(kind)
        ]
    return sorted(set(result))


def live_snapshot() -> dict[str, dict[str, Any]]:
    """Today's defaults of every class that a config is expected to name."""
    return {path: live_defaults(path) for path in known_classes()}


def changed_defaults(
    committed: dict[str, dict[str, Any]], live: dict[str, dict[str, Any]]
) -> list[str]:
    """Options that are no longer what was committed, each in a sentence.

    One that is gone, or of a class that is gone, changes nothing.

    >>> live = {"a.B": {"x": 1, "y": 3, "z": 4}, "a.C": {"x": 0}}
    >>> changed_defaults({"a.B": {"x": 1, "y": 2}}, live)
    ['a.B: y is 3 by default and was 2']
    """
    return [
        f"{path}: {option} is {live[path][option]} by default and was {value}"
        for path, options in committed.items()
        for option, value in options.items()
        if option in live.get(path, {}) and live[path][option] != value
    ]


def main() -> None:
    """Write the file of the present number; what it says already stays as it is."""
    path, live = FILES / f"schema_{SCHEMA}.json", live_snapshot()
    committed = json.loads(path.read_text()) if path.exists() else {}
    changed = changed_defaults(committed, live)
    if changed:
        raise InputError(
            f"{changed[0]} ({len(changed)} in all); raise SCHEMA in "
            "experiment/option_defaults.py, so that names change with it."
        )
    merged = {
        name: {**live.get(name, {}), **committed.get(name, {})}
        for name in sorted(live.keys() | committed.keys())
    }
    path.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    try:
        main()
    except InputError as mistake:
        sys.exit(f"error: {mistake}")
