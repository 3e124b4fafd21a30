"""One pack of a study: build its members, train them as one, and leave each as an ordinary run."""

import time
from collections.abc import Callable
from pathlib import Path

import torch

from callbacks.history import write_history
from callbacks.records.known_data import know_data
from callbacks.records.training_record import write_training
from callbacks.results import read_results
from core.interruption import Interrupted
from datamodules.fingerprint import Fingerprint, fingerprint, fingerprint_of_labels
from experiment.build import training_labels
from experiment.checkpoints import before, newest_whole, write_checkpoint
from experiment.configuration import write_config
from experiment.identity import all_options
from lightning_modules.packed.pack_device import device_here, device_in_words
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier
from studies.launch.pack_members import build_members
from studies.launch.pack_results import training_record, write_member
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
    device = device_here(runs[0].config["trainer"])
    print(f"{len(members)} member(s) train on {device_in_words(device)}")
    pack = PackedClassifier(members, device)
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
        failures = _write_runs(members, owners, folder, predict, device)
    except Interrupted as stop:
        epochs = max(member.max_epochs for member in members)
        raise Interrupted(
            f"{stop} at epoch {pack.epoch} of {epochs}; the same command continues.", stop.code
        ) from stop
    for rest in (before(state), state):
        rest.unlink(missing_ok=True)
    return failures


def _write_runs(
    members: list[Member],
    owners: list[list[Run]],
    folder: Path,
    predict: bool,
    device: torch.device,
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
                write_training(run.folder(folder), training_record(member, run))
            elif (
                read_results(run.folder(folder)) is None
            ):  # what an earlier process finished is left as it is
                for follower in member.followers.values() if run is not owned[0] else []:
                    follower.copy_record(run.folder(folder), run.config["trainer"]["max_epochs"])
                write_member(member, run, run.folder(folder), predict, device)
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
