"""Checkpoints on disk: written all or nothing, and whatever is not whole is recognised, said and
replaced by the one before it.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from core.errors import InputError
from experiment.checkpoints import (
    CheckpointFiles,
    before,
    newest_whole,
    read_checkpoint,
    write_checkpoint,
)
from experiment.run_checkpoints import best_checkpoint, checkpoint_to_continue, last_checkpoint


def content(epoch: int) -> dict:
    progress = {"fit_loop": {"epoch_loop.batch_progress": {"is_last_batch": True}}}
    weights = {"weight": torch.full((40, 30), float(epoch))}
    return {
        "epoch": epoch,
        "global_step": 40 * (epoch + 1),
        "val_loss": 0.5,
        "loops": progress,
        "state_dict": weights,
    }


def two_epochs(run: Path) -> Path:
    """A run's folder after two epochs of which the first was the best; returns its last
    checkpoint.
    """
    last = last_checkpoint(run)
    write_checkpoint(best_checkpoint(run), content(0), keep=False)
    for epoch in (0, 1):
        CheckpointFiles().save_checkpoint(content(epoch), last)
    return last


def test_the_one_before_the_last_is_kept_and_of_others_nothing(tmp_path: Path):
    last = two_epochs(tmp_path)
    assert [read_checkpoint(path)["epoch"] for path in (last, before(last))] == [1, 0]
    CheckpointFiles().save_checkpoint(content(1), best_checkpoint(tmp_path))
    assert {path.name for path in last.parent.iterdir()} == {
        "best.ckpt",
        "last.ckpt",
        "last-before.ckpt",
    }


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    last = two_epochs(tmp_path)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        CheckpointFiles().save_checkpoint(content(2), last)
    assert [read_checkpoint(path)["epoch"] for path in (last, before(last))] == [1, 0]
    assert sorted(path.name for path in last.parent.iterdir()) == [
        "best.ckpt",
        "last-before.ckpt",
        "last.ckpt",
    ]


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_checkpoint_cut_short_gives_way_to_the_one_before_it(
    share: float, tmp_path: Path, capsys: pytest.CaptureFixture
):
    last = two_epochs(tmp_path)
    whole = last.read_bytes()
    last.write_bytes(whole[: int(share * len(whole))])
    assert checkpoint_to_continue(tmp_path) == before(last)
    assert (
        capsys.readouterr().err
        == f"{last} cannot be read (cut short or altered); continuing from last-before.ckpt.\n"
    )
    assert checkpoint_to_continue(tmp_path) == before(last)
    assert capsys.readouterr().err == ""  # it was set aside
    CheckpointFiles().save_checkpoint(content(1), last)
    assert [read_checkpoint(path)["epoch"] for path in (last, before(last))] == [1, 0]


def test_no_length_but_the_whole_is_taken_for_a_checkpoint(tmp_path: Path):
    path = tmp_path / "some.ckpt"
    write_checkpoint(path, content(0), keep=False)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 61), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(
            InputError, match=r"some\.ckpt is not a checkpoint that can be read; it was cut short"
        ):
            read_checkpoint(path)


def test_a_flipped_bit_is_recognised_or_changes_nothing(tmp_path: Path):
    """Dates and padding of the file's format are not covered by its checksums, and are not read
    either.
    """
    path, rng, recognised = tmp_path / "some.ckpt", np.random.default_rng(0), 0
    write_checkpoint(path, content(3), keep=False)
    whole = path.read_bytes()
    for at in rng.integers(len(whole), size=300):
        altered = bytearray(whole)
        altered[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(altered)
        try:
            result = read_checkpoint(path)
        except InputError:
            recognised += 1
        else:
            assert torch.equal(result["state_dict"]["weight"], content(3)["state_dict"]["weight"])
            assert (result["epoch"], result["val_loss"]) == (3, 0.5)
    assert recognised > 200


def test_where_none_is_whole_the_run_starts_from_the_beginning(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    last = two_epochs(tmp_path)
    for path in (last, before(last)):
        path.write_bytes(b"")
    assert checkpoint_to_continue(tmp_path) is None
    assert (
        capsys.readouterr().err
        == f"{last} and {before(last)} cannot be read (cut short or altered); starting from the "
        "beginning.\n"
    )


@pytest.mark.parametrize("best", [None, b"", b"PK not quite"], ids=["absent", "empty", "altered"])
def test_without_its_best_weights_a_run_cannot_be_continued(
    best: bytes | None, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """The best of the epochs that are done is in no other file, so the rest of the run would end
    with another best.
    """
    two_epochs(tmp_path)
    best_checkpoint(tmp_path).unlink() if best is None else best_checkpoint(tmp_path).write_bytes(
        best
    )
    assert checkpoint_to_continue(tmp_path) is None
    assert (
        "best.ckpt cannot be read (absent, cut short or altered); starting from the beginning."
        in capsys.readouterr().err
    )
    # killed before the first checkpoint of the new start
    write_checkpoint(best_checkpoint(tmp_path), content(0), keep=False)
    assert checkpoint_to_continue(tmp_path) is None


def test_a_run_that_was_never_validated_needs_no_best(tmp_path: Path):
    last = last_checkpoint(tmp_path)
    CheckpointFiles().save_checkpoint(
        {name: value for name, value in content(0).items() if name != "val_loss"}, last
    )
    assert checkpoint_to_continue(tmp_path) == last
    assert newest_whole(tmp_path / "absent.pt") is None


def test_a_run_whose_folder_was_moved_remembers_its_best_score(tmp_path: Path):
    there, here = tmp_path / "there", tmp_path / "here"
    best = ModelCheckpoint(dirpath=there, filename="best", monitor="val/loss")
    best.best_model_path = best.kth_best_model_path = str(there / "best.ckpt")
    best.best_model_score = best.kth_value = torch.tensor(0.5)
    best.best_k_models = {best.best_model_path: best.best_model_score}
    CheckpointFiles().save_checkpoint(
        {"callbacks": {best.state_key: best.state_dict()}}, there / "last.ckpt"
    )
    there.rename(here)
    loaded = CheckpointFiles().load_checkpoint(here / "last.ckpt", weights_only=True)
    again = ModelCheckpoint(dirpath=here, filename="best", monitor="val/loss")
    # would warn, and forget, if it saw another folder
    again.load_state_dict(loaded["callbacks"][again.state_key])
    assert again.best_k_models == {str(here / "best.ckpt"): torch.tensor(0.5)}
    assert (again.best_model_score, again.best_model_path) == (
        torch.tensor(0.5),
        str(here / "best.ckpt"),
    )
