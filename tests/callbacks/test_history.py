"""history.json: every epoch as it was logged, the same file after an interruption, and nothing but
epochs of training.
"""

import json
import shutil
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from callbacks.history import read_history, write_history
from cli import main
from core.errors import InputError
from lightning_modules import AnnotatorClassifier

ROOT = Path(__file__).parents[2]
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--trainer.max_epochs", "4",
    "--trainer.limit_train_batches", "8",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
    "--data.delivery", "StochasticLabelSampling",
    "--model.network", "MLPHead",
    "--model.scheduler", "CosineToEnd",
    "--trainer.callbacks+=TrainingDynamics",
]  # fmt: skip


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return main(
        ["fit", *OPTIONS, "--trainer.default_root_dir", str(tmp_path_factory.mktemp("runs"))]
    ).run_dir


def test_every_epoch_is_kept_as_it_was_logged(fitted: Path):
    epochs = read_history(fitted)
    assert epochs
    assert [row["epoch"] for row in epochs] == [0, 1, 2, 3]
    logged = EventAccumulator(str(fitted)).Reload()
    for name in (
        "train/loss",
        "val/loss",
        "val/soft_nll",
        "val/hard_nll",
        "val/kl",
        "val/soft_brier",
        "val/accuracy",
    ):
        assert [row[name] for row in epochs] == pytest.approx(
            [event.value for event in logged.Scalars(name)], rel=1e-6
        )
    assert len({row["val/soft_nll"] for row in epochs}) == 4
    half_cosine = [
        0.5e-3 * (1 + torch.cos(torch.tensor(torch.pi * epoch / 4)).item()) for epoch in range(4)
    ]
    assert [row["lr"] for row in epochs] == pytest.approx(half_cosine, rel=1e-5)


@pytest.mark.parametrize("step", [8, 19], ids=["between epochs", "in mid-epoch"])
def test_an_interrupted_run_ends_with_the_same_file(
    fitted: Path, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    options = ["fit", *OPTIONS, "--trainer.default_root_dir", str(tmp_path)]
    with monkeypatch.context() as interruption:
        whole_step = AnnotatorClassifier.training_step

        def interrupted_step(self, batch, batch_idx: int):
            if self.global_step == step:
                raise RuntimeError("interrupted")
            return whole_step(self, batch, batch_idx)

        interruption.setattr(AnnotatorClassifier, "training_step", interrupted_step)
        with pytest.raises(RuntimeError, match="interrupted"):
            main(options)
    assert len(json.loads((tmp_path / fitted.name / "history.json").read_text())) == step // 8
    main(options)
    assert (tmp_path / fitted.name / "history.json").read_bytes() == (
        fitted / "history.json"
    ).read_bytes()
    main(options)  # there is nothing left to train
    assert (tmp_path / fitted.name / "history.json").read_bytes() == (
        fitted / "history.json"
    ).read_bytes()


def test_a_validation_for_its_own_sake_is_no_epoch(fitted: Path, tmp_path: Path):
    # TensorBoard notes a validation where the run is
    shutil.copytree(fitted, tmp_path / fitted.name)
    main(["validate", *OPTIONS, "--trainer.default_root_dir", str(tmp_path)])
    assert (tmp_path / fitted.name / "history.json").read_bytes() == (
        fitted / "history.json"
    ).read_bytes()


def test_an_epoch_without_validation_does_not_repeat_the_scores_of_another(tmp_path: Path):
    run_dir = main(
        [
            "fit",
            *OPTIONS,
            "--trainer.check_val_every_n_epoch",
            "2",
            "--trainer.default_root_dir",
            str(tmp_path),
        ]
    ).run_dir
    epochs = read_history(run_dir)
    assert epochs
    assert ["val/soft_nll" in row for row in epochs] == [False, True, False, True]
    assert all("train/loss" in row for row in epochs)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    assert read_history(tmp_path) is None
    write_history(tmp_path, [{"epoch": 0, "val/soft_nll": 0.5}])
    assert read_history(tmp_path) == [{"epoch": 0, "val/soft_nll": 0.5}]
    (tmp_path / "history.json").write_text('[{"epoch"')
    with pytest.raises(InputError, match=r"history\.json is not a list of epochs that can be read"):
        read_history(tmp_path)
