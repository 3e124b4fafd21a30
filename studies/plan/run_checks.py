"""Mistakes in the options of a study's runs that would only appear when they are trained, found
before anything trains.
"""

from collections.abc import Iterable
from pathlib import Path

from core.errors import InputError
from experiment.build import build, is_probe
from experiment.training_end import leaves_items_out
from studies.plan.study import Run


def check_results(runs: Iterable[Run], source: Path) -> None:
    """Refuse options by which no run would ever have a result."""
    for run in runs:
        if why := leaves_items_out(run.config["trainer"], ("test", "predict")):
            raise InputError(
                f"{source}: {why}, so that {run.name} would have no result; leave that option out."
            )


def check_probes(runs: Iterable[Run], source: Path) -> None:
    """Build every probe of a study once, which costs nothing and tells what it does not accept: a
    pack builds them only when it has trained.
    """
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
