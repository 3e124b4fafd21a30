"""A vote table of 1,000,000 items x 100 classes x 20 votes through OwnVotes, under a limit of
memory that its embeddings do not fit into.

For 250,000, 500,000 and 1,000,000 items a file of 20 votes per item (parquet, a row per vote, with
annotators) and a .npy file of embeddings (1,024 floats per item) are written as streams. Then a
process of its own reads the votes, describes them, binds and delivers soft labels, SLS and
multipass, and trains an MLPHead for one epoch with validation.

The limit is RLIMIT_DATA, set when the process starts: it bounds what a process has of memory of its
own, written or not (3 GB here, the imports included), and an allocation beyond it fails. RLIMIT_AS
would count the map of the file as well, and the resident size counts pages of the file that the
system only keeps for as long as it has room. Of what is used, the peak of anonymous memory
(RssAnon) is given, looked at every 10 ms, less what it was after the imports: it must grow by the
same for each further item.

The peer is torch's DataLoader over a dataset of single rows of the same memory map, without workers
and with two, in the same random order. Both read a file that the system has already cached, and
both again after the file was dropped from the cache.

    python benchmarks/load.py        about 20 minutes on a busy machine, 3 GB, 5 GB of disk

The files lie below /tmp, or in the folder that is given. Further words: other numbers of items.

What tells whether the data of a run has changed (`datamodules.fingerprint`) is timed as well.

Target: the fingerprint in 50 ms or 1 % of the time of loading, whichever is more; each further item
costs equally much at all sizes, to 10 %, and all is below the limit; 20,000,000 votes read in under
a minute; batches at 5 times the rate of a DataLoader without workers where the file is cached, and
at twice its rate where it is not.

Measured on two idle cores at 1,000,000 items: votes read in 13 s and described in 19 s, an epoch in
20 s, a peak of 1,532 MB beyond the imports; batches 3.1 times the DataLoader where cached (NOT
reached), 17 times where not. Before freed memory went back to the system, on two cores that other
work kept busy, at 250,000, 500,000 and 1,000,000 items: votes read in 1.4, 3.4 and 9.6 s of a core
(20,000,000 in 10 s by the clock) and described in 3.1, 8.1 and 16 s of a core; peaks of 469, 933
and 1,781 MB beyond the imports, 1,855 and 1,697 bytes for each further item; an epoch in 5, 10 and
22 s of a core (by the clock 31, 33 and 514 s; 68 s for the last in a run before, and why it differs
is not known). Batches: 5.2, 3.1 and 4.8 times the DataLoader where cached (NOT reached at the last
two), 3.1, 3.6 and 17 times where not.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import Any

import numpy as np

CLASSES, VOTES, FEATURES, ANNOTATORS, BATCH = 100, 20, 1024, 5000, 1024
SIZES = (250_000, 500_000, 1_000_000)
LIMIT = 3 * 10**9  # bytes of RLIMIT_DATA
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    # these two: what is freed goes back to the system, where malloc would keep some of it and
    # RLIMIT_DATA would count it as used
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**20),
    # Arrow's own allocator reserves a gigabyte of addresses, which RLIMIT_DATA would count as used
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
OURS = "one gather per batch"
AT_ONCE = 50_000  # items that are written at a time
WARM, TIMED = 40, 30  # batches from a cached file
FEWEST = max(WARM, TIMED)


def main() -> None:
    from measure import linux_counts_memory

    if not linux_counts_memory():
        return
    sizes = [int(word) for word in sys.argv[2:]] or SIZES
    if min(sizes) < FEWEST * BATCH:
        sys.exit(
            f"{min(sizes):,} items are too few to time {FEWEST} batches of {BATCH}; name "
            f"{FEWEST * BATCH:,} or more."
        )
    folder = Path(tempfile.mkdtemp(prefix="load-", dir=sys.argv[1] if len(sys.argv) > 1 else None))
    try:
        result = [measure(folder, items) for items in sizes]
    finally:
        shutil.rmtree(folder)
    conclude(result)


def measure(folder: Path, items: int) -> dict[str, float]:
    start = perf_counter()
    write_votes(folder / "votes.parquet", items)
    write_embeddings(folder / "embeddings.npy", items)
    sizes = [(folder / name).stat().st_size / 1e9 for name in ("votes.parquet", "embeddings.npy")]
    print(
        f"{items:,} items: {sizes[0]:.2f} GB of votes and {sizes[1]:.2f} GB of embeddings "
        f"written in {perf_counter() - start:.0f} s",
        flush=True,
    )
    result = {
        **in_process("stages", folder),
        "rates": in_process("rates", folder / "embeddings.npy"),
    }
    base = result.pop("base")
    for name, (seconds, busy, peak) in result["stages"].items():
        print(
            f"    {name:34s}{seconds:8.2f} s ({busy:6.2f} s of a "
            f"core){(peak - base) / 1e6:12,.0f} MB{(peak - base) / items:10,.0f} bytes per item",
            flush=True,
        )
    for name, rate in result["rates"].items():
        print(f"    {name:44s}{rate:12,.0f} items/s", flush=True)
    peak = max(peak for *_, peak in result["stages"].values())
    return {
        "items": items,
        "peak": peak,
        "file": sizes[1] * 1e9,
        "read": result["stages"]["read"][0],
        "loaded": sum(result["stages"][name][1] for name in ("read", "check, split, moments")),
        "fingerprint": result["stages"]["fingerprint"][1],
        **result["rates"],
    }


def in_process(part: str, where: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, part, str(where)]
    return json.loads(
        subprocess.run(
            command, check=True, stdout=subprocess.PIPE, env={**os.environ, **SETTINGS}
        ).stdout
    )


def write_votes(path: Path, items: int) -> None:
    """A row per vote, in the order of the items: most votes of an item are for two classes, by
    annotators of whom some always say the same.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, annotator_probs = (
        pa.array([f"class-{number:02d}" for number in range(CLASSES)]),
        pa.array([f"person-{number}" for number in range(ANNOTATORS)]),
    )
    schema = pa.schema([("item", pa.int64()), ("annotator", pa.string()), ("label", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, items, AT_ONCE):
            rng = np.random.default_rng(start)
            rows = np.repeat(np.arange(start, min(start + AT_ONCE, items)), VOTES)
            likely = (rows * 7 + rng.integers(0, 2, len(rows)) * 3) % CLASSES
            label = np.where(
                rng.random(len(rows)) < 0.8, likely, rng.integers(0, CLASSES, len(rows))
            )
            who = (
                rows * 31 + np.tile(np.arange(VOTES), len(rows) // VOTES) * 11
            ) % ANNOTATORS  # twenty different people
            label = np.where(who < 5, who, label)
            writer.write_table(
                pa.table(
                    [
                        pa.array(rows),
                        annotator_probs.take(pa.array(who)),
                        names.take(pa.array(label)),
                    ],
                    schema=schema,
                )
            )


def write_embeddings(path: Path, items: int) -> None:
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f4", "fortran_order": False, "shape": (items, FEATURES)}
        )
        for start in range(0, items, AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, items))
            block = np.random.default_rng(start).standard_normal((len(rows), FEATURES), np.float32)
            block[np.arange(len(rows)), rows * 7 % CLASSES] += 3.0  # something to learn
            stream.write(block.data)


class Watch:
    """Seconds and the peak of anonymous memory of each stage."""

    def __init__(self):
        self.peak, self.stages = anonymous(), {}
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self.peak = max(self.peak, anonymous())
            sleep(0.01)

    def stage(self, name: str, work):
        self.peak, start, busy = anonymous(), perf_counter(), process_time()
        result = work()
        self.stages[name] = (perf_counter() - start, process_time() - busy, self.peak)
        return result


def anonymous() -> int:
    return 1024 * next(
        int(line.split()[1])
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("RssAnon")
    )


def stages(folder: Path) -> None:
    """All stages in this process, under the limit; prints what was found as JSON."""
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
    }
    options |= {
        "embeddings": "embeddings.npy",
        "batch_size": BATCH,
        "delivery": StochasticLabelSampling(),
    }
    watch, base = Watch(), anonymous()
    watch.stage(
        "describe", lambda: print("\n".join(describe(OwnVotes(**options))), file=sys.stderr)
    )
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
    quiet: dict[str, Any] = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = Trainer(
        max_epochs=1,
        accelerator="cpu",
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        **quiet,
    )
    watch.stage("train an epoch", lambda: trainer.fit(model, datamodule=data))
    print(
        f"validation soft NLL {float(trainer.callback_metrics['val/soft_nll']):.3f}",
        file=sys.stderr,
    )
    print(json.dumps({"base": base, "stages": watch.stages}))


def rates(path: Path) -> None:
    """Items per second of random batches, from a cached file and from one that was dropped from the
    cache; prints them as JSON.
    """
    import torch
    from torch.utils.data import DataLoader, Dataset

    from datamodules.loading import TensorLoader
    from datamodules.memmap_inputs import MemmapInputs, memmap_array
    from datamodules.order import BatchOrder

    torch.set_num_threads(1)

    class Rows(Dataset):
        def __init__(self):
            self.values = np.load(path, mmap_mode="r")

        def __len__(self) -> int:
            return len(self.values)

        def __getitem__(self, row: int):
            return torch.from_numpy(np.array(self.values[row])), row

    def gather(seed: int) -> TensorLoader:
        values = memmap_array(path)
        return TensorLoader(
            MemmapInputs(values, np.arange(len(values))),
            BatchOrder(torch.arange(len(values)), BATCH, seed, shuffle=True),
        )

    def single(workers: int, seed: int) -> DataLoader:
        return DataLoader(
            Rows(),
            batch_sampler=[batch.tolist() for batch in gather(seed).sampler][:FEWEST],
            num_workers=workers,
        )

    def feed(loader, batches: int) -> float:
        feeder, start, items = iter(loader), perf_counter(), 0
        for _ in range(batches):
            items += len(next(feeder)[1])
        return items / (perf_counter() - start)

    result = {}
    for state in ("from disk", "cached"):
        for name, loader in (
            (OURS, gather),
            ("DataLoader, 0 workers", lambda seed: single(0, seed)),
            ("DataLoader, 2 workers", lambda seed: single(2, seed)),
        ):
            if state == "from disk":
                drop(path)
            batches = loader(0)
            if state == "cached":
                feed(batches, WARM)
            result[f"{name}, {state}"] = feed(batches, TIMED if state == "cached" else 10)
            del batches  # and its map, which would keep the file cached
    print(json.dumps(result))


def drop(path: Path) -> None:
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def conclude(result: list[dict[str, float]]) -> None:
    from measure import verdict

    last = result[-1]
    steps = [
        (more["peak"] - less["peak"]) / (more["items"] - less["items"])
        for less, more in pairwise(result)
    ]
    if len(steps) > 1:
        each = " and ".join(f"{step:,.0f}" for step in steps)
        print(
            f"\nmemory of each further item: {each} bytes (target: equal to 10 %): "
            f"{verdict(max(steps) < 1.1 * min(steps))}"
        )
    print(
        f"embeddings of {last['file'] / 1e9:.1f} GB, limit {LIMIT / 1e9:.1f} GB, anonymous peak "
        f"{last['peak'] / 1e9:.2f} GB: {verdict(last['peak'] < LIMIT < last['file'])}"
    )
    print(
        f"{last['items'] * VOTES:,} votes read in {last['read']:.1f} s (target: a minute): "
        f"{verdict(last['read'] < 60)}"
    )
    allowed = max(0.05, 0.01 * last["loaded"])
    print(
        f"fingerprint in {1000 * last['fingerprint']:.0f} ms of a core, loading in "
        f"{last['loaded']:.1f} s (target: 50 ms, or 1 % of loading where that is more): "
        f"{verdict(last['fingerprint'] <= allowed)}"
    )
    for state, target in (("cached", 5), ("from disk", 2)):
        alone, helped = (
            last[f"{OURS}, {state}"] / last[f"DataLoader, {workers} workers, {state}"]
            for workers in (0, 2)
        )
        print(
            f"batches, {state}: {alone:.1f}x DataLoader without workers (target {target}x), "
            f"{helped:.1f}x with two: {verdict(alone >= target)}"
        )


if __name__ == "__main__":
    part = {"stages": stages, "rates": rates}.get("".join(sys.argv[1:2]))
    part(Path(sys.argv[2])) if part else main()
