"""What it costs that scores check their inputs, as a share of a `test` of CIFAR-10H with the
cheapest network.

SimpleFFN is trained for one epoch and tested several times by the command line's own function, in
one process: its start and imports, which take many times as long, do not count. The checks are all
that scores do with their inputs before they compute with them, timed inside the same `test`.
Seconds are those of the CPU, of one thread; the dearest checks are held against the cheapest
`test`.

    PLURALITY_DATA=data python -m benchmarks checks        about half a minute

Without PLURALITY_DATA, random images and votes of the same size take CIFAR-10H's place. Wanted:
under 2 % of a `test`.
"""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import torch

from benchmarks.row import Row, main
from cli import main as command
from datamodules import CIFAR10H
from datamodules.votes.table import VoteTable
from metrics import all_items, calibration, functional, scores

TESTS, LIMIT = 3, 0.02
CHECKS = {
    scores: ("as_tables", "check", "check_rows", "check_evidence"),
    all_items: ("as_tables", "check_one", "check_rows"),
    functional: ("distributions",),
    calibration: ("distributions",),
}
OPTIONS = (
    "--config",
    "configs/cifar10h.yaml",
    "--model.network",
    "SimpleFFN",
    "--trainer.max_epochs",
    "1",
    "--trainer.accelerator",
    "cpu",
)
spent: defaultdict[str, float] = defaultdict(float)  # CPU seconds of a test and of its checks


def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, with its CPU seconds added to those of its name."""

    def run(*args: Any, **kwargs: Any) -> Any:
        start = process_time()
        try:
            return work(*args, **kwargs)
        finally:
            spent[name] += process_time() - start

    return run


def random_data(self: CIFAR10H) -> tuple[torch.Tensor, VoteTable]:
    """Images and votes of CIFAR-10H's size."""
    rng = np.random.default_rng(0)
    votes = rng.multinomial(51, rng.dirichlet(np.full(10, 0.2), 10_000))
    return torch.from_numpy(rng.integers(256, size=(10_000, 3, 32, 32), dtype=np.uint8)), VoteTable(
        votes
    )


def rows() -> Iterator[Row]:
    """Time the checks inside several tests."""
    for module, name in ((module, name) for module, names in CHECKS.items() for name in names):
        setattr(module, name, timed("checks", getattr(module, name)))
    root, data, result = os.environ.get("PLURALITY_DATA"), "CIFAR-10H", []
    if root is None:
        data = "random data of the size of CIFAR-10H"
        CIFAR10H.read, CIFAR10H.prepare_data = random_data, lambda self: None
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        options = [*OPTIONS, "--data.root", root or folder, "--trainer.default_root_dir", folder]
        command(["fit", *options])
        for _ in range(1 + TESTS):
            spent.clear()
            timed("test", command)(["test", *options])
            result.append(dict(spent))
    checks = max(each["checks"] for each in result[1:])  # the first warms up
    test = min(each["test"] for each in result[1:])
    what, share = f"checks of scores in a test of {data}, SimpleFFN", f"{checks / test:.2%}"
    yield Row(what, "2 % of the whole test", checks, LIMIT * test, 1.0, share, "CPU s")


if __name__ == "__main__":
    main(rows)
