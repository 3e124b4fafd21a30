"""How the networks of a pack would be trained on a device, and whether it pays.

Networks with layers made for packs use these on a CPU. All others, and all on a GPU, are mapped by
`torch.func`. On a GPU that is the default: its time goes into starting kernels, of which a pack
needs as many as one run. On a CPU it pays as long as Python and torch take longer to start an
operation than the core takes to compute it. Measured on a core with one thread, 12 members, Adam,
against a plain loop of single runs: networks with 5 to 27 million operations a step 1.35 to 2.8
times as fast, with 76 to 160 million 0.9 to 0.95, with 390 million 0.7 (MLPs, LeNet, convolutions
with BatchNorm, narrow ResNet-18).
"""

import json
from functools import cache, partial
from typing import Any

from core.errors import InputError
from experiment.build import build, class_of
from lightning_modules.packed.packed_form import has_layers_for_packs
from lightning_modules.packed.vmap_trial import VmapTrial, try_vmap

PAYS = 5e7  # floating-point operations of a member's step, up to which mapping pays on a CPU
MEMORY = 8e9  # bytes that the members of a mapped pack may take
LARGEST = 72  # members of one pack: more would gain little and need much memory


def why_not_mapped(config: dict[str, Any]) -> str | None:
    """Why a run's network cannot be mapped; None where it can, or need not be."""
    if has_layers_for_packs(class_of(config["model"]["network"])):
        return None
    try:
        refused = _trial(config).refused
    except InputError as error:
        return f"whether {_name(config)} can be packed is not known: {error}"
    return f"torch.func.vmap cannot map {_name(config)}: {refused}" if refused else None


def why_it_does_not_pay(config: dict[str, Any], device: str) -> str | None:
    """Why a run that could be packed is faster alone on this device; None where it is not."""
    if device != "cpu" or has_layers_for_packs(class_of(config["model"]["network"])):
        return None
    flops = _trial(config).flops
    if flops <= PAYS:
        return None
    return (
        f"on a CPU {_name(config)} is faster alone: {flops / 1e6:,.0f} million operations a step, "
        f"and mapping pays up to {PAYS / 1e6:.0f}"
    )


def why_together(config: dict[str, Any], device: str) -> str:
    """What the members of a pack have in common, and how they are computed, in words."""
    if device == "cpu" and has_layers_for_packs(class_of(config["model"]["network"])):
        return "members of equal shape"
    return "members of equal shape, mapped by torch.func"


def largest_pack(config: dict[str, Any], device: str) -> int:
    """How many members a pack may have."""
    if device == "cpu" and has_layers_for_packs(class_of(config["model"]["network"])):
        return LARGEST
    return max(1, min(LARGEST, int(MEMORY // max(1, _trial(config).memory))))


def _name(config: dict[str, Any]) -> str:
    return config["model"]["network"]["class_path"].rsplit(".")[-1]


def _trial(config: dict[str, Any]) -> VmapTrial:
    data = config["data"]
    free = ("seed", "num_workers", *class_of(data).pack_axes)  # pyright: ignore[reportAttributeAccessIssue]
    shared = {key: value for key, value in data["init_args"].items() if key not in free}
    return _trial_of(
        json.dumps({"data": {**data, "init_args": shared}, "network": config["model"]["network"]})
    )


@cache
def _trial_of(text: str) -> VmapTrial:
    """Of a config as text, for the cache."""
    config = json.loads(text)
    data, network = build(config["data"]), config["network"]
    make = partial(
        class_of(network), data.input_shape, data.num_classes, **network.get("init_args", {})
    )
    return try_vmap(make, data.input_shape, data.num_classes, data.batch_size)
