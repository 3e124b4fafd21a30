"""How a training came to its end, or why what one looks at is none: the words and records of `fit`, `test` and `predict`."""

import os
import signal
from pathlib import Path
from typing import Any

from lightning import Trainer

from callbacks.history import History, read_history
from callbacks.training_record import TrainingRecord, divergence
from interruption import CODES, Interrupted
from studies.runs import best_checkpoint

LIMITS = {"test": "limit_test_batches", "predict": "limit_predict_batches"}


def how_it_ended(trainer: Trainer) -> TrainingRecord | None:
    """The record of a `trainer.fit` that returned; None where it stopped short of its plan and no rule of its own says why."""
    epochs = next(callback.epochs for callback in trainer.callbacks if isinstance(callback, History))  # pyright: ignore[reportAttributeAccessIssue]
    planned_epochs = trainer.max_epochs if trainer.max_epochs not in (None, -1) else None
    planned_steps = trainer.max_steps if trainer.max_steps != -1 else None
    reason = divergence(epochs)
    ended = (
        "diverged"
        if reason
        else "steps"
        if planned_steps is not None and trainer.global_step >= planned_steps
        else "epochs"
        if planned_epochs is not None and len(epochs) >= planned_epochs
        else "early_stopping"
        if trainer.should_stop
        else None
    )
    return TrainingRecord(ended, len(epochs), planned_epochs, trainer.global_step, planned_steps, reason) if ended else None


def interrupted(stop: BaseException, trainer: Trainer) -> Interrupted:
    """The same interruption, with a line that says how far the training came."""
    why, code = (str(stop), stop.code) if isinstance(stop, Interrupted) else ("ended by SIGTERM", CODES[signal.SIGTERM])
    steps = trainer.max_epochs in (None, -1)
    done = f"step {trainer.global_step} of {trainer.max_steps}" if steps else f"epoch {trainer.current_epoch} of {trainer.max_epochs}"
    return Interrupted(f"{why} at {done}; the same command continues.", code)


def why_preview(config: Any, ckpt_path: str | None, run_dir: Path, command: str) -> str:
    """Why what a command would find is no result, whatever the training came to; empty where it is one."""
    if config.trainer.fast_dev_run:
        return "trainer.fast_dev_run looks at a batch or two"
    limit = config.trainer[LIMITS[command]] if command in LIMITS else None
    if not (limit is None or (isinstance(limit, float) and limit == 1.0)):  # 1 is one batch, 1.0 all of them
        return f"trainer.{LIMITS[command]} leaves items out"
    if command != "fit" and ckpt_path is not None and Path(ckpt_path).resolve() != best_checkpoint(run_dir).resolve():
        return f"{ckpt_path} is not the best checkpoint of this run"
    return ""


def unfinished_in_words(run_dir: Path, record: TrainingRecord | None, planned: int | None) -> str:
    if record is not None:
        return f"has no result, because its training diverged ({record.reason})"
    epochs = len(read_history(run_dir) or [])
    of = f" of {planned}" if planned not in (None, -1) else ""
    return f"is not trained to its end (epoch {epochs}{of}); the same fit continues it"


def several_processes() -> bool:
    """Whether this process was started together with others, which would wait for it in vain if it waited for somebody else."""
    return any(int(os.environ.get(name) or 1) > 1 for name in ("WORLD_SIZE", "SLURM_NTASKS"))
