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

Batches of random rows of the map are held against numpy's own indexing by the sorted rows of a
batch, and against torch's DataLoader, which is given whole batches or single rows, without workers
and with two (a core each), in the same random order. All read a file that the system has already
cached, and all again after the file was dropped from the cache.

    python -m benchmarks load                      60,000 items, about a minute, 0.3 GB of disk
    python -m benchmarks.data.load FOLDER          the three sizes, about 20 minutes, 5 GB of disk

The files lie below FOLDER; further words are other numbers of items. What tells whether the data of
a run has changed (`datamodules.fingerprint`) is timed as well.

Wanted: the fingerprint in 50 ms or 1 % of the time of loading, whichever is more; each further item
costs equally much at all sizes, to 10 %, and all is below the limit; 20,000,000 votes read in under
a minute; batches never slower than the best of the peers.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.data.load_parts import BATCH, FEWEST, LIMIT, OURS, rates, stages
from benchmarks.measure import linux_counts_memory, verdict
from benchmarks.row import Row, main

CLASSES, VOTES, FEATURES, ANNOTATORS = 100, 20, 1024, 5000
ITEMS = 60_000  # of `rows`
SIZES = (250_000, 500_000, 1_000_000)
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    # these two: what is freed goes back to the system, where malloc would keep some of it and
    # RLIMIT_DATA would count it as used
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(2**20),
    # Arrow's own allocator reserves a gigabyte of addresses, which RLIMIT_DATA would count as used
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
AT_ONCE = 50_000  # items that are written at a time


def rows() -> Iterator[Row]:
    """Reading votes and making batches of one small size."""
    if not linux_counts_memory():
        return
    with tempfile.TemporaryDirectory(prefix="load-") as folder:
        result = measure(Path(folder), ITEMS)
    votes = f"{ITEMS * VOTES:,} votes of {ITEMS:,} items read"
    yield Row(votes, "3 µs of CPU a vote", result["read"], 3e-6 * ITEMS * VOTES, 1.0, unit="CPU s")
    allowed = max(0.05, 0.01 * result["loaded"])
    bound, fingerprint = "50 ms of CPU, or 1 % of loading", result["fingerprint"]
    yield Row("fingerprint of them", bound, fingerprint, allowed, 1.0, unit="CPU s")
    for state in ("cached", "from disk"):
        rates = {
            name.removesuffix(f", {state}"): rate
            for name, rate in result.items()
            if name.endswith(state)
        }
        ours = BATCH / rates.pop(OURS)
        for peer, rate in rates.items():
            limit = 1.0 if rate == max(rates.values()) else None
            yield Row(f"random batch of {BATCH}, mapped, {state}", peer, ours, BATCH / rate, limit)


def measure_sizes(arguments: list[str]) -> None:
    """Measure each size below the folder that is named, and conclude."""
    if not linux_counts_memory():
        return
    sizes = [int(word) for word in arguments[1:]] or SIZES
    if min(sizes) < FEWEST * BATCH:
        sys.exit(
            f"{min(sizes):,} items are too few to time {FEWEST} batches of {BATCH}; name "
            f"{FEWEST * BATCH:,} or more."
        )
    folder = Path(tempfile.mkdtemp(prefix="load-", dir=arguments[0]))
    try:
        result = [measure(folder, items) for items in sizes]
    finally:
        shutil.rmtree(folder)
    conclude(result)


def measure(folder: Path, items: int) -> dict[str, float]:
    """Write the files of one size, do all parts with them and print what each took."""
    start = perf_counter()
    write_votes(folder / "votes.parquet", items)
    write_embeddings(folder / "embeddings.npy", items)
    sizes = [(folder / name).stat().st_size / 1e9 for name in ("votes.parquet", "embeddings.npy")]
    print(
        f"{items:,} items: {sizes[0]:.2f} GB of votes and {sizes[1]:.2f} GB of embeddings "
        f"written in {perf_counter() - start:.0f} s",
        flush=True,
    )
    result = in_process("stages", folder)
    result["rates"] = in_process("rates", folder / "embeddings.npy")
    base = result.pop("base")
    for name, (seconds, busy, peak) in result["stages"].items():
        time = f"{seconds:8.2f} s ({busy:6.2f} s of a core)"
        memory = f"{(peak - base) / 1e6:12,.0f} MB{(peak - base) / items:10,.0f} bytes per item"
        print(f"    {name:34s}{time}{memory}", flush=True)
    for name, rate in result["rates"].items():
        print(f"    {name:44s}{rate:12,.0f} items/s", flush=True)
    peak = max(peak for *_, peak in result["stages"].values())
    return {
        "items": items,
        "peak": peak,
        "file": sizes[1] * 1e9,
        "read": result["stages"]["read"][1],
        "loaded": sum(result["stages"][name][1] for name in ("read", "check, split, moments")),
        "fingerprint": result["stages"]["fingerprint"][1],
        **result["rates"],
    }


def in_process(part: str, where: Path) -> dict[str, Any]:
    """Do `stages` or `rates` in a process of its own; returns what it prints."""
    command = [sys.executable, "-m", "benchmarks.data.load", part, str(where)]
    settings = {**os.environ, **SETTINGS}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=settings)
    return json.loads(done.stdout)


def write_votes(path: Path, items: int) -> None:
    """A row per vote, in the order of the items: most votes of an item are for two classes, by
    annotators of whom some always say the same.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array([f"class-{number:02d}" for number in range(CLASSES)])
    annotators = pa.array([f"person-{number}" for number in range(ANNOTATORS)])
    schema = pa.schema([("item", pa.int64()), ("annotator", pa.string()), ("label", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, items, AT_ONCE):
            rng = np.random.default_rng(start)
            rows = np.repeat(np.arange(start, min(start + AT_ONCE, items)), VOTES)
            likely = (rows * 7 + rng.integers(0, 2, len(rows)) * 3) % CLASSES
            is_likely = rng.random(len(rows)) < 0.8
            label = np.where(is_likely, likely, rng.integers(0, CLASSES, len(rows)))
            # twenty different people
            who = (rows * 31 + np.tile(np.arange(VOTES), len(rows) // VOTES) * 11) % ANNOTATORS
            label = np.where(who < 5, who, label)
            columns = [pa.array(rows), annotators.take(pa.array(who)), names.take(pa.array(label))]
            writer.write_table(pa.table(columns, schema=schema))


def write_embeddings(path: Path, items: int) -> None:
    """A row of normal numbers per item, one of which tells a class."""
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f4", "fortran_order": False, "shape": (items, FEATURES)}
        )
        for start in range(0, items, AT_ONCE):
            rows = np.arange(start, min(start + AT_ONCE, items))
            block = np.random.default_rng(start).standard_normal((len(rows), FEATURES), np.float32)
            block[np.arange(len(rows)), rows * 7 % CLASSES] += 3.0  # something to learn
            stream.write(block.data)


def conclude(result: list[dict[str, float]]) -> None:
    """Hold what was measured against the targets."""
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
        f"{last['items'] * VOTES:,} votes read in {last['read']:.1f} s of a core (target: a "
        f"minute): {verdict(last['read'] < 60)}"
    )
    allowed = max(0.05, 0.01 * last["loaded"])
    print(
        f"fingerprint in {1000 * last['fingerprint']:.0f} ms of a core, loading in "
        f"{last['loaded']:.1f} s (target: 50 ms, or 1 % of loading where that is more): "
        f"{verdict(last['fingerprint'] <= allowed)}"
    )
    for state in ("cached", "from disk"):
        ours = last[f"{OURS}, {state}"]
        peers = {name: last[name] for name in last if name.endswith(state) and OURS not in name}
        best = max(peers, key=peers.__getitem__)
        print(f"batches: {ours / peers[best]:.1f}x {best}: {verdict(ours >= peers[best])}")


if __name__ == "__main__":
    part = {"stages": stages, "rates": rates}.get("".join(sys.argv[1:2]))
    if part:
        part(Path(sys.argv[2]))
    elif sys.argv[1:] and not sys.argv[1].startswith("-"):
        measure_sizes(sys.argv[1:])
    else:
        main(rows)
