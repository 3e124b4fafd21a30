"""Mistakes in the options of probes, found before anything trains: a pack builds its probes only when it has trained."""

from collections.abc import Iterable
from pathlib import Path

from errors import InputError
from studies.build import build
from studies.packing import is_probe
from studies.study import Run


def check_probes(runs: Iterable[Run], source: Path) -> None:
    """Build every probe of a study once, which costs nothing and tells what it does not accept."""
    seen = set()
    for run in runs:
        for callback in run.config["trainer"].get("callbacks") or []:
            if repr(callback) in seen or not is_probe(callback):
                continue
            seen.add(repr(callback))
            try:
                build(callback)
            except InputError as error:
                raise InputError(f"{source}: {error}") from error
