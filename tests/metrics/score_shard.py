"""One of two processes that score uneven shards together: `score_shard.py RANK FOLDER`."""

import sys
from functools import partial

import numpy as np
import pytest
import torch
import torch.distributed

import metrics
from core.errors import InputError

SHARDS = {0: [3, 4], 1: [1, 2, 1]}


def pair(items: int, seed: int, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return tuple(torch.from_numpy(rng.dirichlet(np.ones(classes), items)) for _ in range(2))


def shard(rank: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [pair(size, seed=100 * (rank + 1) + number) for number, size in enumerate(SHARDS[rank])]


def score_shard(rank: int, folder: str) -> None:
    """Scores one shard, in the middle and at the end."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    collection, kept = metrics.every_metric(""), metrics.AllItems()
    result = {}
    for number, batch in enumerate(shard(rank)):
        collection.update(*batch)
        kept.update(*batch)
        if number == 0:
            result["in the middle"] = collection.compute()
    result["at the end"] = collection.compute()
    result["items"] = torch.cat(kept.compute(), 1)
    result["refused"], result["diverged"] = refusals(rank), diverged_scores(rank)
    torch.save(result, f"{folder}/rank{rank}.pt")
    torch.distributed.destroy_process_group()


def refusals(rank: int) -> list[str]:
    """What this rank is told, in `compute`, where one rank alone has given a metric something else
    than distributions.
    """
    result = []
    collections = [
        partial(collection, "") for collection in (metrics.mean_metrics, metrics.every_metric)
    ]
    for kind in (metrics.SoftNLL, metrics.HardAccuracy, metrics.EqualMassECE, *collections):
        for wrong in (0, 1):
            metric = kind()
            for number, (probs, targets) in enumerate(shard(rank)):
                metric.update(
                    probs, (50 * targets).round() if rank == wrong and number == 1 else targets
                )
            with pytest.raises(InputError) as error:
                metric.compute()
            result.append(str(error.value))
    return result


def diverged_scores(rank: int) -> dict[str, torch.Tensor]:
    """What a validation comes to where one rank alone predicts NaN."""
    collection = metrics.mean_metrics("")
    for probs, targets in shard(rank):
        collection.update(probs / 0 * 0 if rank == 1 else probs, targets)
    return collection.compute()


if __name__ == "__main__":
    score_shard(int(sys.argv[1]), sys.argv[2])
