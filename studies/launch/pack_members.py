"""The members of a pack, built from the configs of its runs."""

from pathlib import Path
from typing import Any

from lightning.pytorch.callbacks import EarlyStopping as LightningEarlyStopping

from callbacks.epochs.epoch_probe import EpochProbe
from core.errors import InputError
from datamodules import Mixup, VoteDataModule
from experiment.build import build, build_classifier, build_data, class_of, training_labels
from lightning_modules.epoch_follower import EpochFollower
from lightning_modules.packed.pack_member import EarlyStopping, Member
from studies.plan.packing import without_epochs
from studies.plan.study import Run


def build_members(runs: list[Run], folder: Path) -> tuple[list[Member], list[list[Run]]]:
    """A member for each run, or for several that are prefixes of the longest of them, which comes
    first; members of one seed share their data.
    """
    together: dict[str, list[Run]] = {}
    for run in runs:
        together.setdefault(without_epochs(run.config) or run.name, []).append(run)
    shared: dict[str, Any] = {}
    members, owners = [], []
    for owned in sorted(together.values(), key=_place):
        owned = sorted(owned, key=lambda run: -run.config["trainer"]["max_epochs"])
        longest = owned[0]
        arguments = longest.config["data"]["init_args"]
        pack_axes = class_of(longest.config["data"]).pack_axes  # pyright: ignore[reportAttributeAccessIssue]
        # members that are validated by few votes share data with those of as many votes alone
        own = ("votes_per_item",) if arguments.get("sparse_validation") else ()
        key = repr({n: v for n, v in arguments.items() if n not in pack_axes or n in own})
        if key not in shared:
            shared[key] = build_data(longest.config)
        data = shared[key]
        bound = data.bind(**{name: build(arguments.get(name)) for name in pack_axes})
        stops = tuple(run.config["trainer"]["max_epochs"] for run in reversed(owned))
        members.append(
            Member(
                build_classifier(longest.config, data),
                data,
                bound,
                stops[-1],
                early_stopping(longest.config),
                stops,
                followers=followers_of(longest.config, data, longest.folder(folder)),
            )
        )
        owners.append(owned)
    return members, owners


def _place(owned: list[Run]) -> tuple[int, int, bool]:
    """Seed by seed, and within one seed those with data or inputs of their own apart, so that the
    others stand together.
    """
    config = owned[0].config
    arguments = config["data"]["init_args"]
    few = arguments["votes_per_item"] or 0 if arguments.get("sparse_validation") else 0
    return config["seed_everything"], few, class_of(arguments["delivery"]) is Mixup


def early_stopping(config: dict[str, Any]) -> EarlyStopping | None:
    """The rule that Lightning's callback of that name follows, where a run has it."""
    for callback in config["trainer"].get("callbacks") or []:
        if class_of(callback) is LightningEarlyStopping:
            return EarlyStopping(
                *(callback["init_args"][option] for option in ("patience", "min_delta", "monitor"))
            )
    return None


def followers_of(
    config: dict[str, Any], data: VoteDataModule, folder: Path
) -> dict[str, EpochFollower]:
    """What follows a run's epochs, by the key that its state has."""
    labels = training_labels(config, data)
    result: dict[str, EpochFollower] = {}
    for callback in config["trainer"].get("callbacks") or []:
        if issubclass(class_of(callback), EpochProbe):
            probe: EpochProbe = build(callback)
            if probe.state_key in result:
                raise InputError(
                    f"trainer.callbacks has two of {callback['class_path']}, and a checkpoint "
                    "could not tell them apart; leave one of them out."
                )
            result[probe.state_key] = probe.follow(data, labels, folder)
    return result
