"""What a job will cost, about: its arithmetic and memory traffic at rates that an ordinary CPU core
reaches. An estimate, not a measurement.
"""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any

import torch

from core.errors import InputError
from experiment.build import build_classifier, build_data
from lightning_modules.threads import forward_flops
from studies.plan.packing import Job, without_epochs

FLOPS = 2e10  # a core's matmuls and convolutions in float32
BYTES = 1e10  # a core's memory traffic
START = 10.0  # seconds to import everything and read the data
LIGHTNING = 3e-3  # seconds per step that a run through Lightning costs beyond its arithmetic
BFLOAT16 = "1.1 to 1.9"  # for ResNet-18 on nearly idle cores; on a busy machine it was 2.0 to 2.3
STEP = 1e-3  # the same for a packed step


def seconds(job: Job, threads: int) -> float | None:
    """Expected duration of a job; None where its data is not at hand."""
    first = job.runs[0].config
    try:
        items, batch, flops, parameters = _size(json.dumps(shared_part(first)))
    except InputError:
        return None
    members = len({without_epochs(run.config) or run.name for run in job.runs}) if job.packed else 1
    epochs = max(run.config["trainer"]["max_epochs"] or 1000 for run in job.runs)
    steps = training_batches(first, items) * epochs
    arithmetic = 3 * flops * members * batch * steps / (FLOPS * threads)
    # weights, gradients and moments, read and written
    traffic = 10 * 4 * parameters * members * steps / (BYTES * threads)
    return START + max(arithmetic, traffic) + steps * (STEP if job.packed else LIGHTNING)


def where_bfloat16_pays(jobs: Iterable[Job]) -> str:
    """A sentence for runs that would train faster in bfloat16 here, by what this CPU computes and
    what benchmarks/precision.py measured; empty where there are none.

    Nothing is measured for it, and nothing chosen: precision is part of what a run is.
    """
    if torch.cuda.is_available() or not computes_bfloat16():
        return ""
    gains = [
        run
        for job in jobs
        for run in job.runs
        if not job.packed
        and run.config["model"]["network"]["class_path"].endswith(".ResNet18")
        and run.config["trainer"].get("precision") in (None, "32-true", "32", 32)
    ]
    if not gains:
        return ""
    return (
        f" {len(gains)} of them train ResNet18, and this CPU computes in bfloat16: "
        f"trainer.precision=bf16-mixed made their steps {BFLOAT16} times faster where it was "
        "measured (benchmarks/precision.py). It makes them other runs."
    )


def computes_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 itself; others imitate it, which is slower."""
    known = getattr(torch.cpu, "get_capabilities", dict)()  # torch 2.9 does not tell
    return any(known.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))


def training_batches(config: dict[str, Any], items: int) -> int:
    """Steps of an epoch over so many items, as many as the trainer is allowed."""
    whole = -(-items // config["data"]["init_args"]["batch_size"])
    limit = config["trainer"].get("limit_train_batches")
    if limit is None:
        return whole
    return min(whole, limit) if isinstance(limit, int) else int(whole * limit)


def in_words(duration: float) -> str:
    """A duration in seconds, minutes or hours.

    >>> in_words(45), in_words(600), in_words(9000)
    ('45 s', '10 min', '2.5 h')
    """
    if duration < 90:
        return f"{duration:.0f} s"
    return f"{duration / 60:.0f} min" if duration < 5400 else f"{duration / 3600:.1f} h"


def shared_part(config: dict[str, Any]) -> dict[str, Any]:
    """What runs of equal cost have in common, but for their length."""
    free, arguments = ("seed", "delivery", "votes_per_item"), config["data"]["init_args"]
    shared = {name: value for name, value in arguments.items() if name not in free}
    return {
        "data": {**config["data"], "init_args": shared},
        "model": {**config["model"], "seed": 0},
    }


@cache
def _size(text: str) -> tuple[int, int, float, int]:
    """Training items, batch size, floating-point operations of one forward pass, and parameters; of
    a config as text, for the cache.
    """
    config = json.loads(text)
    data = build_data(config)
    assert data.corpus is not None
    network = build_classifier(config, data).network
    flops = forward_flops(network, data.input_shape)
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return len(data.corpus.splits["train"]), data.batch_size, flops, parameters
