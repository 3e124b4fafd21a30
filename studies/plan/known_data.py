"""Finished runs of a study are of one and the same data, and of the data that lies here: checked
before more are run, and before a report is made.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from callbacks.records.known_data import check_at_hand, read_fingerprint
from datamodules import VoteDataModule
from datamodules.fingerprint import Fingerprint, fingerprint_at_hand, fingerprint_of_labels
from experiment.build import build, class_of, training_labels
from studies.plan.comparable_runs import FREE


def check_data(finished: Iterable[tuple[dict[str, Any], Path]]) -> None:
    """Refuse a finished run, given by its config and folder, whose votes or items are not those of
    the others, or not those of the files at hand.

    Each dataset is read once, and only where its files could have been changed
    (`VoteDataModule.files`): published ones are checked whenever they are read. Nothing is
    downloaded or embedded for it.
    """
    known: dict[str, tuple[VoteDataModule, Fingerprint]] = {}
    for config, folder in finished:
        noted = read_fingerprint(folder)
        if noted is None:
            continue
        key = same_data(config)
        if key not in known:
            data = build(config["data"])
            now = fingerprint_at_hand(data) if data.files() else _content(noted["data"])
            known[key] = data, now
        data, now = known[key]
        check_at_hand(folder, now | _labels(config, data), noted)


def _labels(config: dict[str, Any], data: VoteDataModule) -> Fingerprint:
    """What a run is trained on, where that is not what it is judged by and the files at hand were
    read.
    """
    if data.corpus is None:
        return {}
    labels = training_labels(config, data)
    return {} if labels is data.corpus.votes else fingerprint_of_labels(labels)


def same_data(config: dict[str, Any]) -> str:
    """Equal for runs that must have the same votes and items."""
    kind: Any = class_of(config["data"])
    free = {*FREE, *kind.pack_axes} - (set() if kind.same_items else {"seed"})
    arguments = config["data"].get("init_args", {})
    fixed = {name: value for name, value in arguments.items() if name not in free}
    return repr([config["data"]["class_path"], fixed])


def _content(noted: Fingerprint) -> Fingerprint:
    """What does not depend on a run's seed."""
    return {part: noted[part] for part in ("votes", "classes", "items") if part in noted}
