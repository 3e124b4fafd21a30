"""The parts of benchmarks/data/load.py that are measured, each in a process of its own."""

import json
import os
import sys
import threading
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

BATCH = 1024
LIMIT = 3 * 10**9  # bytes of RLIMIT_DATA
OURS, SORTED = "one gather per batch", "numpy indexing by sorted rows"
WHOLE, ROWS = "DataLoader of whole batches", "DataLoader of single rows"
ROUNDS = 2
WARM, TIMED = 40, 30  # batches from a cached file
FEWEST = max(WARM, TIMED)


class Watch:
    """Seconds and the peak of anonymous memory of each stage."""

    def __init__(self):
        self.peak, self.stages = anonymous(), {}
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous())
            sleep(0.01)

    def stage(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a stage's work, and note what it took."""
        self.peak, start, busy = anonymous(), perf_counter(), process_time()
        result = work()
        self.stages[name] = (perf_counter() - start, process_time() - busy, self.peak)
        return result


def anonymous() -> int:
    """Bytes of memory that this process has of its own, maps of files not counted."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def stages(folder: Path) -> None:
    """Do all stages in this process, under the limit; prints what they took as JSON."""
    import resource  # only Linux and macOS have it

    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))
    import torch
    from lightning import Trainer

    from datamodules import Multipass, OwnVotes, SoftLabels, StochasticLabelSampling
    from datamodules.custom.describe import describe
    from datamodules.fingerprint import fingerprint
    from lightning_modules import AnnotatorClassifier
    from lightning_modules.networks import MLPHead

    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    options: dict[str, Any] = {
        "root": str(folder),
        "votes": "votes.parquet",
        "item": "item",
        "label": "label",
        "annotator": "annotator",
        "embeddings": "embeddings.npy",
        "batch_size": BATCH,
        "delivery": StochasticLabelSampling(),
    }
    watch, base = Watch(), anonymous()

    def show_description() -> None:
        print("\n".join(describe(OwnVotes(**options))), file=sys.stderr)

    watch.stage("describe", show_description)
    data = OwnVotes(**options)
    watch.stage("read", lambda: data.num_classes)
    watch.stage("check, split, moments", data.setup)
    watch.stage("fingerprint", lambda: fingerprint(data, data.training_votes()))
    for delivery in (SoftLabels(), StochasticLabelSampling(), Multipass()):
        name = type(delivery).__name__
        bound = watch.stage(f"bind {name}", lambda delivery=delivery: data.bind(delivery, None))
        watch.stage(f"targets {name}", lambda bound=bound: bound.targets(1))
        del bound
    model = AnnotatorClassifier(data.input_shape, data.num_classes, MLPHead)
    trainer = Trainer(
        max_epochs=1,
        accelerator="cpu",
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    watch.stage("train an epoch", lambda: trainer.fit(model, datamodule=data))
    score = float(trainer.callback_metrics["val/soft_nll"])
    print(f"validation soft NLL {score:.3f}", file=sys.stderr)
    print(json.dumps({"base": base, "stages": watch.stages}))


def rates(path: Path) -> None:
    """Items per second of random batches, from a cached file and from one that was dropped from the
    cache, the best of two rounds; prints them as JSON.
    """
    import torch
    from torch.utils.data import DataLoader, Dataset

    from datamodules.loading import TensorLoader
    from datamodules.memmap_inputs import MemmapInputs, memmap_array
    from datamodules.order import BatchOrder

    torch.set_num_threads(1)

    class Rows(Dataset):
        """Single rows, or whole batches of them where a list is asked for."""

        def __init__(self):
            self.values = np.load(path, mmap_mode="r")

        def __getitem__(self, rows: Any):
            return torch.from_numpy(np.array(self.values[rows])), rows

    def gather(seed: int) -> TensorLoader:
        values = memmap_array(path)
        inputs = MemmapInputs(values, np.arange(len(values)))
        order = BatchOrder(torch.arange(len(values)), BATCH, seed, shuffle=True)
        return TensorLoader(inputs, order)

    def batches(seed: int) -> list[list[int]]:
        return [batch.tolist() for batch in gather(seed).sampler][:FEWEST]

    def in_order(seed: int):
        values = np.asarray(np.load(path, mmap_mode="r"))
        for rows in map(np.sort, batches(seed)):
            yield torch.from_numpy(values[rows]), rows

    def single(workers: int, seed: int) -> DataLoader:
        return DataLoader(Rows(), batch_sampler=batches(seed), num_workers=workers)

    def whole(workers: int, seed: int) -> DataLoader:
        return DataLoader(Rows(), batch_size=None, sampler=batches(seed), num_workers=workers)

    def feed(loader, number: int) -> float:
        feeder, start, items = iter(loader), perf_counter(), 0
        for _ in range(number):
            items += len(next(feeder)[1])
        return items / (perf_counter() - start)

    ways: dict[str, Callable[[int], Any]] = {OURS: gather, SORTED: in_order}
    for workers in (0, 2):
        ways[f"{WHOLE}, {workers} workers"] = lambda seed, workers=workers: whole(workers, seed)
        ways[f"{ROWS}, {workers} workers"] = lambda seed, workers=workers: single(workers, seed)
    result = {}
    for state, seed in product(("from disk", "cached"), range(ROUNDS)):
        for name, loader in ways.items():
            if state == "from disk":
                drop(path)
            else:
                feed(loader(seed), WARM)
            rate = feed(loader(seed), TIMED if state == "cached" else 10)
            result[f"{name}, {state}"] = max(rate, result.get(f"{name}, {state}", 0.0))
    print(json.dumps(result))


def drop(path: Path) -> None:
    """Have the system forget what it has cached of a file."""
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
