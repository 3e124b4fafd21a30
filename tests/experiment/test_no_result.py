"""Ways to a number that would not mean what it says: another run's checkpoint, a clock, a look at
what is unfinished, a folder that only others may write.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from lightning import Callback

from callbacks.records.training_record import write_training
from callbacks.results import read_results, read_training
from cli import main
from core.errors import InputError
from core.interruption import Interrupted
from experiment.run_checkpoints import best_checkpoint, last_checkpoint
from experiment.training_end import unfinished_in_words
from studies.launch import pack_job
from studies.plan.run_checks import check_results
from studies.plan.study import Study
from tests.experiment.test_finished import cut, options, run
from tests.studies.launch.test_launch import write_study


def test_fit_continues_no_other_run(tmp_path: Path, capsys):
    """Its epochs would count as those of this one."""
    other = main(["fit", *options(tmp_path)]).run_dir
    code, message = run(
        capsys,
        "fit",
        options(tmp_path, "--seed_everything", "7", "--ckpt_path", str(last_checkpoint(other))),
    )
    assert code == 2
    assert f"{last_checkpoint(other)} is of another run" in message
    assert [path.name for path in tmp_path.iterdir()] == [other.name]
    (other / "training.json").unlink()
    # its own
    assert run(capsys, "fit", options(tmp_path, "--ckpt_path", str(last_checkpoint(other))))[0] == 0


@pytest.mark.parametrize("command", ["test", "predict"])
def test_an_unfinished_run_is_refused_by_its_own_checkpoint_too(
    tmp_path: Path, monkeypatch, capsys, command: str
):
    words = cut(tmp_path, monkeypatch, checks=10)
    (folder,) = tmp_path.iterdir()
    code, message = run(capsys, command, [*words, "--ckpt_path", str(best_checkpoint(folder))])
    assert code == 2
    assert "is not trained to its end (epoch 1 of 3)" in message
    assert not {"results.json", "predictions.parquet"} & {path.name for path in folder.iterdir()}


def test_the_epochs_that_are_told_are_those_that_fit_continues_from(tmp_path: Path):
    """The history is a moment ahead of the checkpoint."""
    last_checkpoint(tmp_path).parent.mkdir()
    torch.save({"epoch": 1}, last_checkpoint(tmp_path))
    (tmp_path / "history.json").write_text(
        json.dumps([{"epoch": epoch, "val/loss": 1.0} for epoch in range(3)])
    )
    assert "(epoch 2 of 400)" in unfinished_in_words(tmp_path, None, 400)
    last_checkpoint(tmp_path).write_bytes(b"cut short")
    assert "(epoch 0 of 400)" in unfinished_in_words(tmp_path, None, 400)


class StopsAnyhow(Callback):
    """Stops a training for a reason that the next one may not have."""

    def on_train_epoch_end(self, trainer, pl_module):
        trainer.should_stop = True


def with_callback(folder: Path, name: str) -> list[str]:
    path = folder / "callback.yaml"
    path.write_text(yaml.safe_dump({"trainer": {"callbacks": [{"class_path": name}]}}))
    return ["--config", str(path)]


def test_only_early_stopping_ends_a_training_early(tmp_path: Path, capsys):
    words = options(tmp_path / "runs", *with_callback(tmp_path, f"{__name__}.StopsAnyhow"))
    code, message = run(capsys, "fit", words)
    assert code == 2
    assert "was stopped before its end by a callback that is not EarlyStopping" in message
    (folder,) = (tmp_path / "runs").iterdir()
    assert read_training(folder) is None
    assert torch.load(last_checkpoint(folder), weights_only=True)["stopped_by_rule"] is False


def test_a_clock_among_the_callbacks_is_refused(tmp_path: Path, capsys):
    path = tmp_path / "timer.yaml"
    timer = {
        "class_path": "lightning.pytorch.callbacks.Timer",
        "init_args": {"duration": "00:00:00:02", "interval": "epoch"},
    }
    path.write_text(yaml.safe_dump({"trainer": {"callbacks": [timer]}}))
    code, message = run(capsys, "fit", options(tmp_path / "runs", "--config", str(path)))
    assert code == 2
    assert "give its time as trainer.max_time instead" in message
    assert not (tmp_path / "runs").exists()


def test_a_name_that_leads_elsewhere_makes_no_folder(tmp_path: Path, capsys):
    for name in ("../../evil/x", "x" * 300):
        code, message = run(capsys, "fit", options(tmp_path / "a/runs", "--data.name", name))
        assert code == 2
        assert "it must be 1 to 40 letters, digits, - or _." in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount a disk"
)
def test_a_finished_run_that_cannot_be_written_is_looked_at_all_the_same(
    tmp_path: Path, monkeypatch, capsys
):
    """As somebody else's: what it finds is printed, and written to the working folder."""
    disk, here = tmp_path / "disk", tmp_path / "here"
    disk.mkdir()
    here.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("no disk could be mounted")
    try:
        folder = main(["fit", *options(disk)]).run_dir
        main(["test", *options(disk)])
        results = read_results(folder)
        assert results
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        monkeypatch.chdir(here)
        code, message = run(capsys, "test", options(disk))
        assert code == 0, message
        assert f"{folder} cannot be written" in message
        result = json.loads((here / "preview" / folder.name / "preview.json").read_text())
        assert result["metrics"] == results["metrics"]
        code, message = run(capsys, "predict", options(disk))
        assert code == 0, message
        assert (here / "preview" / folder.name / "predictions.parquet").exists()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize(
    "option",
    [
        {"trainer.limit_test_batches": 1},
        {"trainer.fast_dev_run": True},
        {"trainer.limit_predict_batches": 0.5},
    ],
)
def test_a_study_whose_runs_would_have_no_result_is_refused_before_it_trains(
    tmp_path: Path, option: dict
):
    study = Study.load(write_study(tmp_path, options=option))
    with pytest.raises(
        InputError, match=f"{next(iter(option))} l(ooks|eaves).*would have no result"
    ):
        check_results(study.runs(), study.path)


def test_a_pack_that_is_ended_while_it_writes_says_how_far_it_came(tmp_path: Path, monkeypatch):
    study = Study.load(
        write_study(
            tmp_path, grids={"main": {"seed_everything": [0]}}, options={"trainer.max_epochs": 1}
        )
    )

    def ended(*args):
        raise Interrupted("ended by SIGTERM", 143)

    monkeypatch.setattr(pack_job, "write_member", ended)
    with pytest.raises(
        Interrupted, match=r"ended by SIGTERM at epoch 1 of 1; the same command continues."
    ):
        pack_job.run_pack(
            study.runs(), tmp_path / "runs", tmp_path / "state.pt", False, lambda share: None
        )


def test_a_record_of_divergence_is_refused_by_its_own_checkpoint_too(tmp_path: Path, capsys):
    folder = main(["fit", *options(tmp_path)]).run_dir
    record = read_training(folder)
    assert record
    write_training(folder, type(record)("diverged", 3, 3, 18, reason="its loss was nan in epoch 2"))
    code, message = run(
        capsys, "test", options(tmp_path, "--ckpt_path", str(best_checkpoint(folder)))
    )
    assert code == 2
    assert "its training diverged (its loss was nan in epoch 2)" in message
