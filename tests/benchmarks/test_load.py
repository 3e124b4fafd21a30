"""What benchmarks/data/load.py does with 1,000,000 items, at smaller sizes: memory grows by as much
for each further item, and by less than its embedding.
"""

import shutil
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.data import load

SIZES = (60_000, 120_000, 180_000)


@pytest.mark.long
def test_votes_are_read_described_delivered_and_trained_on_in_memory_that_is_flat_for_each_item(
    tmp_path: Path,
):
    trained, highest = [], 0
    for items in SIZES:
        folder = tmp_path / str(items)
        folder.mkdir()
        load.write_votes(folder / "votes.parquet", items)
        load.write_embeddings(folder / "embeddings.npy", items)
        result = load.in_process("stages", folder)  # under a limit of memory
        beyond = {name: peak - result["base"] for name, (*_, peak) in result["stages"].items()}
        assert {"read", "describe", "targets Multipass", "train an epoch"} <= set(beyond)
        trained.append(beyond["train an epoch"])
        highest = max(beyond.values())
        shutil.rmtree(folder)
    first, second = ((more - less) / (SIZES[1] - SIZES[0]) for less, more in pairwise(trained))
    assert second == pytest.approx(first, rel=0.3)
    # the embeddings were not read into memory
    assert highest < 0.75 * SIZES[-1] * 4 * load.FEATURES
