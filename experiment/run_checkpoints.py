"""The checkpoints of a run: where they lie, what each must hold, and the one to continue from."""

from pathlib import Path

import torch

from core.errors import InputError
from experiment.checkpoints import before, newest_whole, read_checkpoint, say, set_aside
from lightning_modules.resuming import is_mid_epoch

# What a checkpoint must hold to be tested, and to be continued from
WEIGHTS = {"state_dict": dict, "pytorch-lightning_version": str}
TRAINING = {
    "epoch": int,
    "global_step": int,
    "loops": dict,
    "optimizer_states": list,
    "lr_schedulers": list,
}


def check_checkpoint(path: Path, to_continue: bool = False, max_steps: int | None = None) -> None:
    """Find out before anything starts whether a checkpoint is there, whole and of the right kind;
    nothing in it can run code.
    """
    if not path.is_file():
        raise InputError(
            f"there is no checkpoint {path}; run fit with the same options first, or name one "
            "with --ckpt_path."
        )
    content = read_checkpoint(path)
    held = content if isinstance(content, dict) else {}
    needed = WEIGHTS | (TRAINING if to_continue else {})
    absent = [name for name, kind in needed.items() if not isinstance(held.get(name), kind)]
    if absent:
        what = "is no checkpoint of a training"
        if absent[0] in TRAINING:
            what = "holds weights alone, which no training can continue from"
        raise InputError(f"{path} {what}: it has no {absent[0]}; use one that fit wrote.")
    if not all(
        isinstance(name, str) and isinstance(value, torch.Tensor)
        for name, value in held["state_dict"].items()
    ):
        raise InputError(
            f"{path} has other things than tensors in its state_dict; use a checkpoint that fit "
            "wrote."
        )
    if to_continue and is_mid_epoch(held, max_steps):
        raise InputError(
            f"{path} was made in mid-epoch, from where no training continues exactly; use one of "
            "an epoch's end, such as last.ckpt."
        )
    if not isinstance(held.get("val_loss"), float | None):
        raise InputError(
            f"{path} has a val_loss that is no number; use a checkpoint that fit wrote."
        )


def best_checkpoint(run_dir: Path) -> Path:
    """Where a run's best weights lie, which are tested."""
    return run_dir / "checkpoints" / "best.ckpt"


def last_checkpoint(run_dir: Path) -> Path:
    """Where a run's newest state lies, from which it continues."""
    return run_dir / "checkpoints" / "last.ckpt"


def run_files(run_dir: Path) -> list[Path]:
    """The folders of a run that files are written to."""
    return [run_dir, best_checkpoint(run_dir).parent, run_dir / "figures"]


def checkpoint_to_continue(run_dir: Path, max_steps: int | None = None) -> Path | None:
    """The newest checkpoint that a run can be continued from; None where it has to start from the
    beginning, which ends the same but takes longer.

    The best weights of the epochs so far lie in a file of their own: without them the rest of the
    run would end with another best.
    """
    best, last = best_checkpoint(run_dir), last_checkpoint(run_dir)
    result = newest_whole(last)
    if result is None:
        return None
    path, content = result
    why = ""
    # earlier versions made such when max_time was over; the best weights may be of the same moment
    if is_mid_epoch(content, max_steps):
        why = f"{path} was made in mid-epoch"
    elif "val_loss" in content and not is_whole(best):
        why = f"{best} cannot be read (absent, cut short or altered)"
    if why:
        say(f"{why}; starting from the beginning.")
        set_aside(last, before(last))
    return None if why else path


def is_whole(path: Path) -> bool:
    """Whether a checkpoint is there and can be read."""
    try:
        read_checkpoint(path)
    except (FileNotFoundError, InputError):
        return False
    return True
