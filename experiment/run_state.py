"""What may be done with a run as it lies on disk: continue it, take its result, or look at it."""

from pathlib import Path

from callbacks.records.training_record import TrainingRecord
from callbacks.results import read_training
from core.atomic_io import remove_partial_files
from core.errors import InputError
from core.interruption import is_first_process
from experiment.run_checkpoints import (
    best_checkpoint,
    check_checkpoint,
    checkpoint_to_continue,
    is_whole,
    run_files,
)
from experiment.training_end import unfinished_in_words

# Written by commands after the training; stale once the model that they are of is gone
OF_A_MODEL = ("training.json", "results.json", "predictions.parquet")


def finished_training(run_dir: Path) -> TrainingRecord | None:
    """How the training ended; None where it did not, or where what it came to is gone."""
    record = read_training(run_dir)
    if record and (record.diverged or is_whole(best_checkpoint(run_dir))):
        return record
    return None


def where_to_continue(run_dir: Path, ckpt_path: str | None, max_steps: int) -> str | Path | None:
    """The checkpoint that `fit` goes on from: the one that is named, or the newest of the run.

    What an earlier model left behind is removed first.
    """
    if ckpt_path is not None:
        check_checkpoint(Path(ckpt_path), to_continue=True, max_steps=max_steps)
        if Path(ckpt_path).resolve().parent != best_checkpoint(run_dir).resolve().parent:
            raise InputError(
                f"{ckpt_path} is of another run, whose epochs would count as those of "
                f"{run_dir.name}; leave --ckpt_path out: fit continues by itself."
            )
        return ckpt_path
    if is_first_process():
        remove_partial_files(*run_files(run_dir))
        for stale in OF_A_MODEL:
            (run_dir / stale).unlink(missing_ok=True)
    # Lightning's, of mid-epoch, from which a run would not continue exactly
    for signalled in run_dir.glob("hpc_ckpt_*.ckpt"):
        signalled.unlink(missing_ok=True)
    return checkpoint_to_continue(run_dir, max_steps)


def why_unfinished(run_dir: Path, training: TrainingRecord | None, planned: int | None) -> str:
    """Why a run that has checkpoints has no result, in words; empty where it may have one.

    Where there is no checkpoint either, whoever looks for it says so.
    """
    ended_well = training is not None and not training.diverged
    if ended_well or not best_checkpoint(run_dir).exists():
        return ""
    return unfinished_in_words(run_dir, training, planned)
