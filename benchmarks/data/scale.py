"""Blocks of targets of 100,000,000 items, what needs all items at once, and predictions of
1,000,000 x 100 in little memory.

The votes of 100,000,000 items over 10 classes (20 each) lie in a file of 4 GB that is mapped to
memory: `VoteTable(np.load(path, mmap_mode="r"))` holds none of it. Each part is done in a process
of its own with one thread. Memory is the peak of what the process holds of its own (RssAnon, looked
at every 5 ms) beyond what it held before; pages of the mapped file belong to the system.

    python -m benchmarks.data.scale      about 3 minutes, 3 GB of memory, 4 GB of disk, on Linux

Targets: a block in the time and memory of the block, wherever it lies; predictions of 1,000,000 x
100 under 1 GB, given tensors of 0.8 GB included.
"""

import ctypes
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import torch

from benchmarks.measure import SPAWN, linux_counts_memory
from benchmarks.row import Row, main
from core.randomness import generator
from datamodules.order import BatchOrder
from datamodules.votes import delivery
from datamodules.votes.table import VoteTable

ITEMS, CLASSES, VOTES, BLOCK = 100_000_000, 10, 20, 1_000_000
ALL = 10_000_000  # items of what needs all of them
BY_BLOCKS = {
    "SoftLabels": delivery.SoftLabels(),
    "MajorityVote": delivery.MajorityVote(),
    "LabelSmoothing": delivery.LabelSmoothing(),
    "StochasticLabelSampling": delivery.StochasticLabelSampling(),
    "Multipass": delivery.Multipass(),
    "DeterministicControl": delivery.DeterministicControl(),
}


class Watch:
    """Seconds of the clock and of a core, and the peak of a process's own memory beyond what it
    had, of some work.
    """

    def __init__(self, work: Callable[[], object]):
        ctypes.CDLL(None).malloc_trim(0)  # or freed memory would be used again, unseen
        done, before = threading.Event(), own_bytes()
        self.peak = before

        def look() -> None:
            while not done.wait(0.005):
                self.peak = max(self.peak, own_bytes())

        looking = threading.Thread(target=look)
        looking.start()
        start, busy = time.perf_counter(), time.thread_time()
        self.result = work()
        self.seconds, self.busy = time.perf_counter() - start, time.thread_time() - busy
        done.set()
        looking.join()
        self.megabytes = (max(self.peak, own_bytes()) - before) / 1e6


def own_bytes(field: str = "RssAnon") -> int:
    """What Linux counts as this process's own memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def rows() -> Iterator[Row]:
    """Do each part in a process of its own."""
    if not linux_counts_memory():
        return
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        path = Path(name) / "counts.npy"
        write_counts(path, ITEMS)
        for part in (blocks, all_items, predictions):
            with ProcessPoolExecutor(1, SPAWN) as own_process:
                yield from own_process.submit(part, path).result()


def write_counts(path: Path, items: int) -> None:
    """20 votes for each item, by a few of 10,000 patterns, as a stream."""
    rng = np.random.default_rng(0)
    chances = rng.dirichlet(np.full(CLASSES, 0.3), 10_000)
    patterns = rng.multinomial(VOTES, chances).astype(np.int32)
    with open(path, "wb") as stream:
        about = {"descr": "<i4", "fortran_order": False, "shape": (items, CLASSES)}
        np.lib.format.write_array_header_1_0(stream, about)
        for start in range(0, items, BLOCK):
            rows = rng.integers(len(patterns), size=min(BLOCK, items - start))
            stream.write(patterns[rows].data)


def blocks(path: Path) -> list[Row]:
    """Blocks at the beginning, in the middle and at the end of the table."""
    torch.set_num_threads(1)
    table = Watch(lambda: VoteTable(np.load(path, mmap_mode="r")))
    votes: VoteTable = table.result  # pyright: ignore[reportAssignmentType]
    show("the table, opened and checked", table, len(votes))
    if len(votes) > BLOCK:
        show("votes counted, once", Watch(lambda: votes.votes_before(len(votes) - 1)), len(votes))
    result = []
    for name in BY_BLOCKS:
        first, _, last = (
            block(name, votes, start) for start in (0, len(votes) // 2, len(votes) - BLOCK)
        )
        what = f"{name}: a block of {BLOCK:,} at the end of {len(votes):,} items, first epoch"
        note = f"s of a core; {1e9 * last / BLOCK:.0f} ns an item"
        result.append(Row(what, "the same at their beginning", last, first, 0.5, note))
    return result


def block(name: str, votes: VoteTable, start: int) -> float:
    """The first epoch, which makes what later ones look up, and a later one; returns the seconds of
    a core that the first took.
    """
    bound, stop = BY_BLOCKS[name].bind(votes, seed=0), start + BLOCK
    watches = []
    for epoch, which in enumerate(("first epoch", "later epochs")):
        watches.append(Watch(lambda e=epoch: bound.targets(e, start, stop)))
        show(f"{name}, {which}, block at {start:,}", watches[-1], BLOCK)
    return watches[0].busy


def all_items(path: Path) -> list[Row]:
    """What is made of all items at once, however few of them a process trains on: printed, for
    there is nothing to compare it with.
    """
    torch.set_num_threads(1)
    counts = np.load(path, mmap_mode="r")
    items = min(ALL, len(counts))
    votes = VoteTable(counts[:items])
    order = BatchOrder(torch.arange(items), 256, seed=0, shuffle=True)
    show("shuffled order", Watch(lambda: next(iter(order))), items)
    shuffled = Watch(lambda: delivery.ShuffledSLS().bind(votes, 0))
    show("ShuffledSLS, its order", shuffled, items)
    bound = shuffled.result
    show("ShuffledSLS, first epoch", Watch(lambda: bound.targets(0)), items)  # pyright: ignore
    mixed, rows = delivery.Mixup().bind(votes, 0), torch.arange(256)
    inputs, wanted = torch.zeros(256, 2), mixed.targets(0, 0, 256)
    show("Mixup, shares of an epoch", Watch(lambda: mixed.blend(inputs, wanted, rows, 0)), items)
    for name in ("SoftLabels", "StochasticLabelSampling", "Multipass"):
        whole = BY_BLOCKS[name].bind(votes, 0)
        show(f"{name}, all items, first epoch", Watch(lambda w=whole: w.targets(0)), items)
        show(f"{name}, all items, later epochs", Watch(lambda w=whole: w.targets(1)), items)
    return []


def predictions(path: Path) -> list[Row]:
    """A file of predictions out of batches as `predict` gives them."""
    torch.set_num_threads(1)
    from callbacks.prediction_table import write_predictions

    items, classes, batch = 1_000_000, 100, 1000
    chances = generator(0, "predictions").dirichlet(np.ones(classes), batch)
    people = torch.from_numpy(chances).float().repeat(items // batch, 1)  # the dataset's own
    imported = own_bytes("VmRSS")
    given = [torch.from_numpy(chances).clone() for _ in range(items // batch)]
    held = own_bytes("VmRSS")
    index = list(torch.arange(items).split(batch))
    splits = {"test": np.arange(items)}
    watch = Watch(lambda: write_predictions(path.parent, given, people, index, splits))
    megabytes = (own_bytes("VmHWM") - imported) / 1e6
    note = f"{(held - imported) / 1e6:.0f} MB of it the predictions; {watch.busy:.0f} s of a core"
    what = f"predictions of {items:,} x {classes}, memory beside imports and data"
    return [Row(what, "at most 1,000 MB", megabytes, 1000.0, 1.0, note, "MB")]


def show(what: str, watch: Watch, items: int) -> None:
    """One line: in all, and for each item."""
    print(
        f"{what:58s}{watch.seconds:8.2f} s{watch.busy:8.2f} s of a core"
        f"{1e9 * watch.busy / items:10.1f} ns{watch.megabytes:10.1f} MB"
        f"{1e6 * watch.megabytes / items:8.1f} bytes per item",
        flush=True,
    )


if __name__ == "__main__":
    main(rows)
