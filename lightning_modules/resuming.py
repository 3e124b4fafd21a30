"""What a checkpoint says of the training that it was made in: whether that had come to its end,
whether it lies at the end of an epoch, and which architecture it is of.
"""

from collections.abc import Iterable
from typing import Any

from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.callbacks.early_stopping import EarlyStoppingReason
from torch import Tensor

from core.errors import InputError


def stopped_early(callbacks: Iterable[Any]) -> bool:
    """Whether early stopping has spoken.

    Whatever else stops a trainer, a clock for instance, is no rule that would stop it there again.

    >>> stopped_early([EarlyStopping("val/loss")])
    False
    """
    return any(
        isinstance(rule, EarlyStopping)
        and rule.stopping_reason is not EarlyStoppingReason.NOT_STOPPED
        for rule in callbacks
    )


def had_stopped(checkpoint: dict[str, Any]) -> bool:
    """Whether the training was over by its own rule (early stopping) when the checkpoint was made.

    Earlier versions noted every stop as one, also that of `max_time`; of theirs, only early
    stopping's own word counts.

    >>> had_stopped({"stopped_by_rule": True})
    True
    >>> had_stopped({"had_stopped": True, "callbacks": {"Timer": {}}})
    False
    """
    if "stopped_by_rule" in checkpoint:
        return checkpoint["stopped_by_rule"] is True
    states = checkpoint.get("callbacks") or {}
    spoken = (
        state.get("stopped_epoch", 0) > 0
        for name, state in states.items()
        if name.startswith("EarlyStopping")
    )
    return checkpoint.get("had_stopped") is True and any(spoken)


def is_mid_epoch(checkpoint: dict[str, Any], max_steps: int | None = None) -> bool:
    """Whether a part of an epoch would be missing, or done twice, in a training that is continued
    from this checkpoint.
    """
    progress = checkpoint.get("loops", {}).get("fit_loop", {}).get("epoch_loop.batch_progress", {})
    all_steps = max_steps is not None and 0 <= max_steps <= checkpoint.get("global_step", 0)
    return (
        progress.get("is_last_batch") is not True and not had_stopped(checkpoint) and not all_steps
    )


def check_architecture(classifier: Any, weights: dict[str, Tensor]) -> None:
    """Refuse another architecture's weights with one sentence instead of torch's list of keys."""
    here = {name: tuple(value.shape) for name, value in classifier.state_dict().items()}
    there = {name: tuple(value.shape) for name, value in weights.items()}
    every = here.keys() | there.keys()
    differing = sorted(name for name in every if here.get(name) != there.get(name))
    if differing:
        name = differing[0]
        raise InputError(
            f"{classifier.trainer.ckpt_path} is of another architecture: {name} is "
            f"{there.get(name, 'absent')} in it and {here.get(name, 'absent')} in this "
            f"{type(classifier.network).__name__} ({len(differing)} such entries); use the config "
            "that it was trained with."
        )
