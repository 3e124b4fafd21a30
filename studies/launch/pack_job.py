"""One pack of a study: build its members, train them as one, and leave each as an ordinary run."""

import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from callbacks.data_cartography import DataCartography
from callbacks.epoch_scores import EpochScores
from callbacks.figures.drawing import draw_pictures
from callbacks.history import write_history
from callbacks.prediction_table import write_predictions
from callbacks.records.known_data import know_data
from callbacks.records.training_record import TrainingRecord, write_training
from callbacks.results import describe_run, read_results, results_of_test, write_before_drawing
from callbacks.training_dynamics import TrainingDynamics
from core.interruption import Interrupted
from datamodules import Mixup, VoteDataModule
from datamodules.fingerprint import Fingerprint, fingerprint, fingerprint_of_labels
from experiment.build import (
    build,
    build_classifier,
    build_data,
    class_of,
    is_probe,
    training_labels,
)
from experiment.checkpoints import before, newest_whole, write_checkpoint
from experiment.configuration import write_config
from experiment.identity import all_options
from experiment.run_checkpoints import best_checkpoint
from experiment.steps_left import probes_of
from lightning_modules.classifier import AnnotatorClassifier
from lightning_modules.packed.pack_member import EarlyStopping, Member
from lightning_modules.packed.packed_classifier import PackedClassifier
from metrics import every_metric
from studies.plan.packing import without_epochs
from studies.plan.study import Run

SAVE_EVERY = 5.0  # seconds between saved states of a pack


def run_pack(
    runs: list[Run], folder: Path, state: Path, predict: bool, progress: Callable[[float], None]
) -> dict[str, str]:
    """Train a pack and write every run; returns the failures by run name.

    `state` is where an interrupted pack is continued from.
    """
    members, owners = build_members(runs, folder)
    _know_data(members, owners, folder)
    pack = PackedClassifier(members)
    saved_state = newest_whole(state)
    if saved_state:
        pack.load_state_dict(saved_state[1])
    saved = time.monotonic()

    def after_epoch(pack: PackedClassifier) -> None:
        nonlocal saved
        progress(
            sum(len(m.history) if not m.finished else m.max_epochs for m in members)
            / sum(m.max_epochs for m in members)
        )
        if time.monotonic() - saved > SAVE_EVERY:
            write_checkpoint(state, pack.state_dict(), keep=True)
            saved = time.monotonic()

    try:
        pack.fit(after_epoch)
        failures = _write_runs(members, owners, folder, predict)
    except Interrupted as stop:
        epochs = max(member.max_epochs for member in members)
        raise Interrupted(
            f"{stop} at epoch {pack.epoch} of {epochs}; the same command continues.", stop.code
        ) from stop
    for rest in (before(state), state):
        rest.unlink(missing_ok=True)
    return failures


def _write_runs(
    members: list[Member], owners: list[list[Run]], folder: Path, predict: bool
) -> dict[str, str]:
    """Leave every trained member as runs; returns the failures by run name."""
    failures = {}
    for member, owned in zip(members, owners, strict=True):
        for run in owned:
            if (
                member.failed and run.config["trainer"]["max_epochs"] not in member.at_stop
            ):  # a shorter run may have ended before
                failures[run.name] = member.failed
                write_config(run.config, run.folder(folder))
                write_history(run.folder(folder), member.history)
                write_training(run.folder(folder), _record(member, run))
            elif (
                read_results(run.folder(folder)) is None
            ):  # what an earlier process finished is left as it is
                for probe in cartographies(run.config) if run is not owned[0] else []:
                    probe.copy_record(
                        member.data,
                        owned[0].folder(folder),
                        run.folder(folder),
                        run.config["trainer"]["max_epochs"],
                    )
                write_member(member, run, run.folder(folder), predict)
    return failures


def _know_data(members: list[Member], owners: list[list[Run]], folder: Path) -> None:
    """Note, of every run, what it is trained on; or refuse, where it was begun on something
    else.
    """
    known: dict[int, Fingerprint] = {}
    for member, owned in zip(members, owners, strict=True):
        base = known.setdefault(id(member.data), fingerprint(member.data))
        for run in owned:
            labels = training_labels(run.config, member.data)
            now = (
                base if labels is member.data.corpus.votes else base | fingerprint_of_labels(labels)
            )
            know_data(run.folder(folder), member.data, all_options(run.config), write=True, now=now)


def _record(member: Member, run: Run) -> TrainingRecord:
    """How a run's training ended, which may be a prefix of its member's."""
    planned = run.config["trainer"]["max_epochs"]
    failed = member.failed if planned not in member.at_stop else None
    epochs = min(len(member.history), planned)
    steps = epochs * -(-len(member.data.rows("train")) // member.data.batch_size)
    ended = "diverged" if failed else "epochs" if epochs == planned else "early_stopping"
    return TrainingRecord(ended, epochs, planned, steps, reason=failed or "")


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
        key = repr({name: value for name, value in arguments.items() if name not in pack_axes})
        if key not in shared:
            shared[key] = build_data(longest.config)
        data = shared[key]
        bound = data.bind(**{name: build(arguments.get(name)) for name in pack_axes})
        labels = training_labels(longest.config, data)
        stops = tuple(run.config["trainer"]["max_epochs"] for run in reversed(owned))
        classifier = build_classifier(longest.config, data)
        strata = followed_strata(longest.config, data)
        members.append(
            Member(
                classifier,
                data,
                bound,
                stops[-1],
                early_stopping(longest.config),
                stops,
                strata=strata,
                scored=scored_splits(longest.config),
                watched={
                    probe.split: probe.follow(data, labels, longest.folder(folder))
                    for probe in cartographies(longest.config)
                },
            )
        )
        owners.append(owned)
    return members, owners


def _place(owned: list[Run]) -> tuple[int, bool]:
    """Seed by seed, and within one seed those with inputs of their own last, so that the others
    stand together.
    """
    config = owned[0].config
    return config["seed_everything"], class_of(config["data"]["init_args"]["delivery"]) is Mixup


def early_stopping(config: dict[str, Any]) -> EarlyStopping | None:
    for callback in config["trainer"].get("callbacks") or []:
        if not is_probe(callback):
            return EarlyStopping(
                *(callback["init_args"][option] for option in ("patience", "min_delta", "monitor"))
            )
    return None


def followed_strata(config: dict[str, Any], data: VoteDataModule) -> dict[str, Tensor]:
    """The strata of validation items that TrainingDynamics, where a run has it, follows from epoch
    to epoch.
    """
    for callback in config["trainer"].get("callbacks") or []:
        if issubclass(class_of(callback), TrainingDynamics):
            return {
                f"val/{name}": mask[data.rows("val")]
                for name, mask in build(callback).strata(data).items()
            }
    return {}


def scored_splits(config: dict[str, Any]) -> tuple[str, ...]:
    """The splits besides validation that EpochScores, where a run has it, follows."""
    result = [
        build(callback)
        for callback in config["trainer"].get("callbacks") or []
        if issubclass(class_of(callback), EpochScores)
    ]
    return result[0].splits if result else ()


def cartographies(config: dict[str, Any]) -> list[DataCartography]:
    """Those of a run, which follow its predictions from epoch to epoch."""
    return [
        build(callback)
        for callback in config["trainer"].get("callbacks") or []
        if issubclass(class_of(callback), DataCartography)
    ]


def write_member(member: Member, run: Run, folder: Path, predict: bool) -> None:
    """Checkpoint, config, history, results and, last of all, pictures: as if the run had been
    alone.
    """
    epochs = run.config["trainer"]["max_epochs"]
    best_epoch, state = member.at_stop.get(epochs, (member.best_epoch, member.best_state))
    checkpoint = best_checkpoint(folder)
    val_loss = member.history[best_epoch]["val/loss"]
    content = {
        "state_dict": state,
        "epoch": best_epoch,
        "val_loss": val_loss,
        "pytorch-lightning_version": version("lightning"),
    }
    write_config(run.config, folder)
    write_checkpoint(checkpoint, content, keep=False)
    write_history(folder, member.history[:epochs])
    network, data = member.classifier.network, member.data
    network.load_state_dict({name.removeprefix("network."): value for name, value in state.items()})
    arguments = run.config["data"]["init_args"]
    delivery, votes_per_item, targets = (
        build(arguments.get(option)) for option in ("delivery", "votes_per_item", "targets")
    )
    record = _record(member, run)
    write_training(folder, record)
    about = describe_run(data, delivery, votes_per_item, network, folder, checkpoint, targets)
    metrics = every_metric("")
    probs, annotator_probs, _ = predictions(member.classifier, data, data.corpus.splits["test"])
    for batch in zip(
        probs.split(data.batch_size), annotator_probs.split(data.batch_size), strict=True
    ):
        metrics.update(*batch)  # in the batches of a solo run, for the same sums to the last bit
    if predict:
        write_predictions(
            folder,
            *predictions(member.classifier, data, np.arange(len(data.corpus.votes))),
            data.corpus.splits,
        )
    numbers, notes, pictures = (
        {"val_loss": val_loss, **{name: float(value) for name, value in metrics.compute().items()}},
        [],
        {},
    )
    for callback in run.config["trainer"].get("callbacks") or []:
        if is_probe(callback):
            result = build(callback).run(member.classifier, data, folder)
            result.write_tables(folder)
            numbers |= result.metrics
            notes += result.notes
            pictures |= result.figures
    results = results_of_test(about, record, len(probs), probes_of(run.config), numbers, notes)
    write_before_drawing(folder / "results.json", results, lambda: draw_pictures(pictures, folder))


@torch.no_grad()
def predictions(
    classifier: AnnotatorClassifier, data: Any, rows: np.ndarray
) -> tuple[Tensor, Tensor, Tensor]:
    """Predicted and annotator distributions of these items, computed batch by batch as a solo run
    would.
    """
    classifier.eval()
    batches = [
        (classifier(inputs).double().softmax(-1), index)
        for inputs, index in data.loader(rows, training=False)
    ]
    index = torch.cat([index for _, index in batches])
    return torch.cat([probs for probs, _ in batches]), data.annotator_probs[index], index
