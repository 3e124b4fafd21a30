"""On which device a pack trains: the one that Lightning would choose for a member alone."""

from collections.abc import Mapping
from typing import Any

import torch

from core.errors import InputError

GPU = ("gpu", "cuda")


def device_of(trainer: Mapping[str, Any], gpus: int) -> str:
    """`cpu` or `cuda`, by the trainer's options and the number of GPUs that it would find.

    Apple's GPU is none of these: it has no double precision, which scores are computed in.

    >>> device_of({"accelerator": "auto"}, gpus=0), device_of({"accelerator": "auto"}, gpus=2)
    ('cpu', 'cuda')
    >>> device_of({"accelerator": "cpu"}, gpus=2), device_of({"accelerator": "gpu"}, gpus=0)
    ('cpu', 'cuda')
    """
    accelerator = trainer.get("accelerator") or "auto"
    return "cuda" if accelerator in GPU or (accelerator == "auto" and gpus) else "cpu"


def device_here(trainer: Mapping[str, Any]) -> torch.device:
    """The device of this process: its first GPU, where one is wanted."""
    found = torch.cuda.device_count()
    if device_of(trainer, found) == "cpu":
        return torch.device("cpu")
    if not found:
        raise InputError(
            f"trainer.accelerator is {trainer['accelerator']}, and this process finds no GPU; set "
            "it to auto or cpu, or start the study where there is one."
        )
    return torch.device("cuda", 0)


def device_in_words(device: torch.device) -> str:
    """For a log.

    >>> device_in_words(torch.device("cpu"))
    'the CPU'
    """
    if device.type != "cuda":
        return "the CPU"
    return f"{torch.cuda.get_device_name(device)} ({device})"
