"""What a checkpoint says of the training that it was made in: whether that had come to its end, and
whether it lies at the end of an epoch.
"""

from collections.abc import Iterable
from typing import Any

from lightning.pytorch.callbacks import EarlyStopping
from lightning.pytorch.callbacks.early_stopping import EarlyStoppingReason


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

    >>> had_stopped({"had_stopped": True,
    ...     "callbacks": {"Timer": {}}}), had_stopped({"stopped_by_rule": True})
    (False, True)
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
