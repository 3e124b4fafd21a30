"""What `norm: batch` costs a pack: an epoch of the packs of benchmarks/packed.py with BatchNorm,
against the same without it, in turns, one thread.

    python -m benchmarks packed_norm        about 40 seconds
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from benchmarks.packed import LENETS, ROUNDS, heads, pack_epochs
from benchmarks.row import Row, main

LIMIT = 1.3  # times as long, at most


def rows() -> Iterator[Row]:
    """An epoch of all members of each case, by CPU time; the fastest of several counts."""
    torch.set_num_threads(1)
    for case in (heads(8, 1_000), heads(32, 1_984), LENETS):
        network: Any = partial(case.network, norm="batch")
        sides = [pack_epochs(side) for side in (replace(case, network=network), case)]
        for side in sides:
            next(side)  # warms up
        taken = [[next(side).cpu for side in sides] for _ in range(ROUNDS)]
        normed, plain = map(min, zip(*taken, strict=True))
        note = f"CPU time; {normed / plain:.2f} times as long"
        peer = f"without it, times {LIMIT}"
        yield Row(f"{case.name}, with BatchNorm", peer, normed, plain * LIMIT, 1.0, note)


if __name__ == "__main__":
    main(rows)
