"""Finished runs of a study are of one and the same data, and of the data that lies here: checked before more are run, and before a report is made."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from callbacks.known_data import check_at_hand, read_fingerprint
from datamodules.fingerprint import Fingerprint, fingerprint_at_hand
from studies.build import build, class_of
from studies.comparable_runs import FREE


def check_data(finished: Iterable[tuple[dict[str, Any], Path]]) -> None:
    """Refuse a finished run, given by its config and folder, whose votes or items are not those of the others, or not those of the files at hand.

    Each dataset is read once, and only where its files could have been changed (`VoteDataModule.files`): published ones are checked whenever they are read.
    Nothing is downloaded or embedded for it.
    """
    known: dict[str, Fingerprint] = {}
    for config, folder in finished:
        noted = read_fingerprint(folder)
        if noted is None:
            continue
        key = _same_data(config)
        if key not in known:
            data = build(config["data"])
            known[key] = fingerprint_at_hand(data) if data.files() else _content(noted["data"])
        check_at_hand(folder, known[key])


def _same_data(config: dict[str, Any]) -> str:
    """Equal for runs that must have the same votes and items."""
    kind: Any = class_of(config["data"])
    free = {*FREE, *kind.binding} - (set() if kind.same_items else {"seed"})
    return repr(
        [config["data"]["class_path"], {name: value for name, value in config["data"].get("init_args", {}).items() if name not in free}]
    )


def _content(noted: Fingerprint) -> Fingerprint:
    """Votes and items, which do not depend on a run's seed."""
    return {part: noted[part] for part in ("votes", "items") if part in noted}
