"""A busy machine: augmented batches and steps of a ResNet-18 beside as many busy loops as there are
cores, against the same on the machine as it is.

What the load takes is its share of the cores: beside n loops on n cores a work of t threads is left
n of n + t turns. Both are measured in a process as `cli.py` starts it: torch may use all cores,
batches are prepared by one thread, and threads that wait sleep. (Where they spin, as is torch's
default, 32 steps of the ResNet-18 did not end in a minute on two cores with a load of 15; so they
take 8 s.)

    python -m benchmarks.busy        about half a minute
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F

from benchmarks.row import Row, main
from datamodules.loading import TensorLoader
from datamodules.order import BatchOrder
from datamodules.preparation import CropFlip
from lightning_modules.networks import ResNet18

ITEMS, BATCH, REPEATS, ROUNDS = 2_000, 128, 20, 2
CORES = os.cpu_count() or 1


def epoch() -> Callable[[], object]:
    """Augment an epoch of 32 x 32 images."""
    stored = np.random.default_rng(0).integers(256, size=(ITEMS, 3, 32, 32), dtype=np.uint8)
    half = (0.5, 0.5, 0.5)
    crops = CropFlip(torch.from_numpy(stored), half, half, scale=255, seed=0)
    loader = TensorLoader(crops, BatchOrder(torch.arange(ITEMS), BATCH, seed=0, shuffle=True))
    return lambda: list(loader)


def step() -> Callable[[], object]:
    """Train a narrow ResNet-18 for a step."""
    network = ResNet18((3, 32, 32), 10, width=8).to(memory_format=torch.channels_last)
    inputs = torch.randn(32, 3, 32, 32).to(memory_format=torch.channels_last)
    optimizer, targets = torch.optim.SGD(network.parameters(), lr=0.01), torch.randint(10, (32,))

    def train() -> None:
        optimizer.zero_grad()
        F.cross_entropy(network(inputs), targets).backward()
        optimizer.step()

    return train


WORK = {"an epoch of augmented batches": epoch, "a step of ResNet-18 of width 8": step}
THREADS = {epoch: 1, step: CORES}


def seconds(work: Callable[[], object]) -> float:
    """The mean of several calls: what others take of the time counts."""
    start = time.perf_counter()
    for _ in range(REPEATS):
        work()
    return (time.perf_counter() - start) / REPEATS


def measure() -> dict[str, tuple[float, float]]:
    """Each work's seconds beside busy loops and without, in turns; the least of each."""
    torch.set_num_threads(CORES)
    works = {name: make() for name, make in WORK.items()}
    fastest = {name: [float("inf")] * 2 for name in works}
    for _ in range(ROUNDS):
        for side, loops in ((0, CORES), (1, 0)):
            command = [sys.executable, "-c", "while True: pass"]
            others = [subprocess.Popen(command) for _ in range(loops)]
            time.sleep(0.2)
            for name, work in works.items():
                work()
                fastest[name][side] = min(fastest[name][side], seconds(work))
            for other in others:
                other.kill()
                other.wait()
    return {name: (busy, alone) for name, (busy, alone) in fastest.items()}


def rows() -> Iterator[Row]:
    """Measured in a process with the settings of `cli.py`: they are read when torch is loaded."""
    settings = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(CORES)}
    command = [sys.executable, "-m", "benchmarks.busy", "measure"]
    done = subprocess.run(command, env=settings, check=True, stdout=subprocess.PIPE)
    for name, (busy, alone) in json.loads(done.stdout).items():
        share = (CORES + THREADS[WORK[name]]) / CORES
        what = f"{name} beside {CORES} busy loops"
        note = f"{busy / alone:.2f} times as long as without"
        yield Row(
            what,
            f"its share of {CORES} cores: without, times {share:.2g}",
            busy,
            alone * share,
            0.8,
            note,
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["measure"]:
        print(json.dumps(measure()))
    else:
        main(rows)
