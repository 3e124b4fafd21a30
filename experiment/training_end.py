"""How a training came to its end, or why what one looks at is none: the words and records of `fit`,
`test` and `predict`.
"""

import os
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lightning import Trainer
from lightning.pytorch.callbacks import Timer

from callbacks.history import History
from callbacks.records.training_record import TrainingRecord, divergence
from core.errors import InputError
from core.folder_lock import is_writable
from core.interruption import CODES, Interrupted
from experiment.build import class_of
from experiment.checkpoints import before, read_checkpoint
from experiment.run_checkpoints import best_checkpoint, last_checkpoint
from lightning_modules.resuming import stopped_early

LIMITS = {"test": "limit_test_batches", "predict": "limit_predict_batches"}


def how_it_ended(trainer: Trainer) -> TrainingRecord | None:
    """The record of a `trainer.fit` that returned; None where it stopped short of its plan and no
    rule of its own says why.
    """
    callbacks = trainer.callbacks  # pyright: ignore[reportAttributeAccessIssue]
    epochs = next(callback.epochs for callback in callbacks if isinstance(callback, History))
    planned_epochs = trainer.max_epochs if trainer.max_epochs not in (None, -1) else None
    planned_steps = trainer.max_steps if trainer.max_steps != -1 else None
    reason = divergence(epochs)
    steps = trainer.global_step
    if reason:
        ended = "diverged"
    elif planned_steps is not None and steps >= planned_steps:
        ended = "steps"
    elif planned_epochs is not None and len(epochs) >= planned_epochs:
        ended = "epochs"
    elif stopped_early(callbacks):
        ended = "early_stopping"
    else:
        return None
    return TrainingRecord(ended, len(epochs), planned_epochs, steps, planned_steps, reason)


def interrupted(stop: BaseException, trainer: Trainer) -> Interrupted:
    """The same interruption, with a line that says how far the training came."""
    why, code = "ended by SIGTERM", CODES[signal.SIGTERM]
    if isinstance(stop, Interrupted):
        why, code = str(stop), stop.code
    done = f"epoch {trainer.current_epoch} of {trainer.max_epochs}"
    if trainer.max_epochs in (None, -1):
        done = f"step {trainer.global_step} of {trainer.max_steps}"
    return Interrupted(f"{why} at {done}; the same command continues.", code)


def why_preview(config: Any, ckpt_path: str | None, run_dir: Path, command: str) -> str:
    """Why what a command would find is no result, whatever the training came to; empty where it is
    one.
    """
    if why := leaves_items_out(config.trainer, [command]):
        return why
    if command != "fit" and ckpt_path is not None and not is_best(ckpt_path, run_dir):
        return f"{ckpt_path} is not the best checkpoint of this run"
    return ""


def is_best(ckpt_path: str, run_dir: Path) -> bool:
    """Whether a path is that of a run's own best checkpoint."""
    return Path(ckpt_path).resolve() == best_checkpoint(run_dir).resolve()


def refuse_clocks(callbacks: Any) -> None:
    """Lightning's Timer ends a training as if it were complete, at another epoch each time."""
    for callback in callbacks or []:
        kind = class_of(callback)
        if issubclass(kind, Timer):
            raise InputError(
                f"trainer.callbacks has {kind.__name__}, which would end a training by the clock; "
                "give its time as trainer.max_time instead."
            )


def leaves_items_out(trainer: Any, commands: Iterable[str]) -> str:
    """Which option of a trainer has one of these commands look at some of the items alone; empty
    where none does.

    >>> leaves_items_out({"fast_dev_run": False, "limit_test_batches": 1}, ["test"])
    'trainer.limit_test_batches leaves items out'
    """
    if trainer.get("fast_dev_run"):
        return "trainer.fast_dev_run looks at a batch or two"
    options = [LIMITS[command] for command in commands if command in LIMITS]
    limited = [name for name in options if not _is_all(trainer.get(name))]
    return f"trainer.{limited[0]} leaves items out" if limited else ""


def _is_all(limit: int | float | None) -> bool:
    """Whether a limit leaves nothing out: 1 is one batch, 1.0 all of them."""
    return limit is None or (isinstance(limit, float) and limit == 1.0)


def unfinished_in_words(run_dir: Path, record: TrainingRecord | None, planned: int | None) -> str:
    """Why a run has no result, as the end of a sentence that begins with the run."""
    if record is not None:
        return f"has no result, because its training diverged ({record.reason})"
    epochs = _epochs_to_continue_from(run_dir)
    of = f" of {planned}" if planned not in (None, -1) else ""
    return f"is not trained to its end (epoch {epochs}{of}); the same fit continues it"


def _epochs_to_continue_from(run_dir: Path) -> int:
    for path in (last_checkpoint(run_dir), before(last_checkpoint(run_dir))):
        try:
            return read_checkpoint(path)["epoch"] + 1
        except (FileNotFoundError, InputError):
            continue
    return 0


def several_processes() -> bool:
    """Whether this process was started together with others, which would wait for it in vain if it
    waited for somebody else.
    """
    return any(int(os.environ.get(name) or 1) > 1 for name in ("WORLD_SIZE", "SLURM_NTASKS"))


def preview_folder(run_dir: Path) -> Path:
    """Where what is only looked at is written: in the run's folder, or where that cannot be written
    to, in one of the working folder.
    """
    return run_dir / "preview" if is_writable(run_dir) else Path("preview") / run_dir.name
