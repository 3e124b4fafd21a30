"""Which runs train together, and on which device: members of equal shape form packs, all others run
one by one; each says why.
"""

import hashlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from lightning.pytorch import cli
from lightning.pytorch.callbacks import EarlyStopping
from torch.optim.lr_scheduler import ReduceLROnPlateau

from experiment.build import class_of
from lightning_modules import CosineToEnd
from lightning_modules.packed.pack_device import device_of
from studies.plan.pack_form import (
    largest_pack,
    why_it_does_not_pay,
    why_not_mapped,
    why_together,
)
from studies.plan.study import Run

OPTIMIZERS = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)
SCHEDULERS = (CosineToEnd, ReduceLROnPlateau, cli.ReduceLROnPlateau)
LOSSES = {"val/loss", "val/soft_nll", "val/hard_nll"}  # that early stopping may follow
RULE = {  # options of EarlyStopping that a pack does not know: the same holds for them
    "mode": (None, "min"),
    "stopping_threshold": (None,),
    "divergence_threshold": (None,),
}
PLAIN = {  # options of the trainer that a pack does not know: they must be left at their defaults
    "accelerator": (None, "auto", "cpu", "gpu", "cuda"),
    "strategy": (None, "auto"),
    "devices": (None, "auto", 1, "1"),
    "num_nodes": (None, 1),
    "max_time": (None,),
    "precision": (None, "32-true", "32"),
    "gradient_clip_val": (None,),
    "accumulate_grad_batches": (None, 1),
    "limit_train_batches": (None, 1.0),
    "limit_val_batches": (None, 1.0),
    "overfit_batches": (None, 0.0),
    "check_val_every_n_epoch": (None, 1),
    "val_check_interval": (None, 1.0),
    "max_steps": (None, -1),
    "min_epochs": (None,),
    "min_steps": (None,),
}


@dataclass(frozen=True)
class Job:
    """What one process does: train a pack, or one run."""

    runs: list[Run]
    packed: bool
    why: str
    threads: int | None = None  # that it began with; None for as many as there is room for
    device: str = "cpu"  # or cuda

    @property
    def name(self) -> str:
        """The same for the same runs, so that an interrupted pack finds its own state."""
        digest = hashlib.sha256("\n".join(run.name for run in self.runs).encode()).hexdigest()[:10]
        return f"pack-{digest}" if self.packed else self.runs[0].name

    @property
    def takes_one_gpu(self) -> bool:
        """Whether it trains on one GPU, whichever is free: a run that names its devices has
        those.
        """
        plain = PLAIN["devices"]
        return self.device == "cuda" and self.runs[0].config["trainer"].get("devices") in plain


def why_alone(config: dict[str, Any], device: str = "cpu") -> str | None:
    """Why a run is not packed on this device; None where it is."""
    return why_unpackable(config) or why_it_does_not_pay(config, device)


def why_unpackable(config: dict[str, Any]) -> str | None:
    """Why a run cannot be packed on any device; None where it can."""
    model, trainer = config["model"], config["trainer"]
    optimizer, scheduler = (model.get(part) for part in ("optimizer", "scheduler"))
    if class_of(optimizer) not in OPTIMIZERS or any(
        optimizer["init_args"].get(option) for option in ("amsgrad", "dampening")
    ):
        return f"{_name(optimizer)} with these options has no packed form"
    if scheduler and class_of(scheduler) not in SCHEDULERS:
        return f"{_name(scheduler)} has no packed form"
    if model.get("compile"):
        return "model.compile is set"
    callbacks = trainer.get("callbacks") or []
    for callback in callbacks:
        if reason := _why_not_served(callback):
            return reason
    if sum(class_of(callback) is EarlyStopping for callback in callbacks) > 1:
        return "more than one EarlyStopping is set"
    for option, plain in PLAIN.items():
        if trainer.get(option) not in plain:
            return f"trainer.{option} is set"
    return why_not_mapped(config)


def _why_not_served(callback: dict[str, Any]) -> str | None:
    """Why members of a pack would not get what a run alone gets from a callback; None where they
    would.
    """
    kind, name = class_of(callback), _name(callback)
    if kind is EarlyStopping:
        options = callback["init_args"]
        if options.get("monitor") not in LOSSES:
            return f"the callback {name} may look into training"
        changed = [key for key, plain in RULE.items() if options.get(key) not in plain]
        return f"the option {changed[0]} of the callback {name} is set" if changed else None
    can_be_packed = getattr(kind, "can_be_packed", None)
    if can_be_packed is None:
        return f"the callback {name} may look into training"
    if not can_be_packed():
        return f"the callback {name} looks into training in a way that packs cannot serve"
    return None


def jobs_of(
    runs: Sequence[Run], processes: int, begun: Sequence[Job] = (), gpus: int = 0
) -> list[Job]:
    """Cut a study's runs into jobs, for so many processes and GPUs at a time. Those that have begun
    stay as they are.

    How a pack is cut changes the last bits of its members' numbers, for sums over wider matrices
    round in another order, and nothing else. So that a study that is interrupted ends with the same
    bits, the cut depends on the whole study and the number of processes, never on what is already
    done. Where it is continued with another number, or has got more runs, a new pack is what the
    begun ones leave of it.
    """
    groups: dict[tuple[str, str], list[Run]] = {}
    alone: list[Job] = []
    for run in runs:
        device = device_of(run.config["trainer"], gpus)
        reason = why_alone(run.config, device)
        if reason is None:
            groups.setdefault((_shape(run.config), device), []).append(run)
        else:
            alone.append(Job([run], packed=False, why=reason, device=device))
    packs = [
        Job(part, packed=True, why=why_together(group[0].config, device), device=device)
        for (_, device), group in groups.items()
        for part in _parts(
            group,
            max(1, gpus) if device == "cuda" else processes,
            largest_pack(group[0].config, device),
        )
    ]
    kept = {run.name for job in begun for run in job.runs}
    rest = [
        replace(job, runs=[run for run in job.runs if run.name not in kept])
        for job in packs + alone
    ]
    return [*begun, *(job for job in rest if job.runs)]


def _parts(group: list[Run], at_once: int, largest: int) -> list[list[Run]]:
    """Cut a group into packs of equal size, seed after seed (members of one seed share batches),
    enough for all processes or GPUs and none too large.
    """
    units: dict[str, list[Run]] = {}
    for run in sorted(group, key=lambda run: run.config["seed_everything"]):
        units.setdefault(without_epochs(run.config) or run.name, []).append(run)
    members = list(units.values())
    wanted = max(-(-len(members) // largest), min(at_once, len(members)))
    cuts = [
        members[i * len(members) // wanted : (i + 1) * len(members) // wanted]
        for i in range(wanted)
    ]
    return [[run for unit in cut for run in unit] for cut in cuts]


def _name(entry: dict[str, Any]) -> str:
    return entry["class_path"].rsplit(".")[-1]


def _shape(config: dict[str, Any]) -> str:
    """What members of a pack have in common: all but seed, delivery, votes, targets, learning rate,
    weight decay, schedule, stopping and epochs.
    """
    common = deepcopy(
        {
            "data": config["data"],
            "network": config["model"]["network"],
            "optimizer": config["model"]["optimizer"],
        }
    )
    for option in ("seed", "root", "num_workers", *class_of(config["data"]).pack_axes):  # pyright: ignore[reportAttributeAccessIssue]
        common["data"]["init_args"].pop(option, None)
    for option in ("lr", "weight_decay"):
        common["optimizer"]["init_args"].pop(option, None)
    return repr(common)


def without_epochs(config: dict[str, Any]) -> str | None:
    """Runs with an equal answer differ only in where they stop, so that shorter ones are prefixes;
    None where the total matters.
    """
    scheduler = config["model"].get("scheduler")
    if scheduler and class_of(scheduler) is CosineToEnd:
        return None
    trainer = {key: value for key, value in config["trainer"].items() if key != "max_epochs"}
    return repr((config["seed_everything"], config["data"], config["model"], trainer))
