"""What a job will cost, about: its arithmetic and memory traffic at rates that an ordinary CPU core reaches. An estimate, not a measurement."""

import json
from functools import cache
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from errors import InputError
from studies.build import build_classifier, build_data
from studies.packing import Job, without_epochs

FLOPS = 2e10  # a core's matmuls and convolutions in float32
BYTES = 1e10  # a core's memory traffic
START = 10.0  # seconds to import everything and read the data
LIGHTNING = 3e-3  # seconds per step that a run through Lightning costs beyond its arithmetic
STEP = 1e-3  # the same for a packed step


def seconds(job: Job, threads: int) -> float | None:
    """Expected duration of a job; None where its data is not at hand."""
    first = job.runs[0].config
    try:
        items, batch, flops, parameters = _size(json.dumps(_common(first)))
    except InputError:
        return None
    members = len({without_epochs(run.config) or run.name for run in job.runs}) if job.packed else 1
    epochs = max(run.config["trainer"]["max_epochs"] or 1000 for run in job.runs)
    limit = first["trainer"].get("limit_train_batches")
    batches = -(-items // batch)
    batches = min(batches, limit) if type(limit) is int else batches if limit is None else max(1, int(batches * limit))
    steps = batches * epochs
    arithmetic = 3 * flops * members * batch * steps / (FLOPS * threads)
    traffic = 10 * 4 * parameters * members * steps / (BYTES * threads)  # weights, gradients and moments, read and written
    return START + max(arithmetic, traffic) + steps * (STEP if job.packed else LIGHTNING)


def in_words(duration: float) -> str:
    """
    >>> in_words(45), in_words(600), in_words(9000)
    ('45 s', '10 min', '2.5 h')
    """
    if duration < 90:
        return f"{duration:.0f} s"
    return f"{duration / 60:.0f} min" if duration < 5400 else f"{duration / 3600:.1f} h"


def _common(config: dict[str, Any]) -> dict[str, Any]:
    arguments = {key: value for key, value in config["data"]["init_args"].items() if key not in ("seed", "delivery", "votes_per_item")}
    return {"data": {**config["data"], "init_args": arguments}, "model": {**config["model"], "seed": 0}}


@cache
def _size(text: str) -> tuple[int, int, float, int]:
    """Training items, batch size, floating-point operations of one forward pass, and parameters; of a config as text, for the cache."""
    config = json.loads(text)
    data = build_data(config)
    assert data.corpus is not None
    network = build_classifier(config, data).network.eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(torch.zeros(1, *data.input_shape))
    return len(data.corpus.splits["train"]), data.batch_size, counter.get_total_flops(), sum(p.numel() for p in network.parameters())
