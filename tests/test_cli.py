"""The command line as a user sees it: fit, test, predict, a deterministic run directory, and
mistakes told in one sentence.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cli import main
from metrics import functional, registered
from tests.waiting import HANGS

ROOT = Path(__file__).parents[1]
QUICK = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--trainer.max_epochs", "2",
    "--trainer.limit_train_batches", "6",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip
MULTIPASS = [*QUICK, "--data.delivery", "Multipass"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's directory after fit, test and predict."""
    root = tmp_path_factory.mktemp("runs")
    options = [*MULTIPASS, "--trainer.default_root_dir", str(root)]
    run_dir = main(["fit", *options]).run_dir
    main(["test", *options])
    main(["predict", *options])
    return run_dir


def test_results_hold_every_metric_and_what_they_depend_on(finished: Path):
    results = json.loads((finished / "results.json").read_text())
    usual = {
        "soft_nll", "hard_nll", "val_loss", "kl", "soft_brier", "accuracy", "entropy_spearman", "entropy_pearson", "ece", "ece_annotators",  # noqa: E501
        "smooth_ece", "smooth_ece_annotators", "brier_reliability", "brier_resolution", "brier_uncertainty",  # noqa: E501
    }  # fmt: skip
    assert set(results["metrics"]) == {*registered(), "val_loss"}
    assert usual <= set(results["metrics"])
    assert (results["seed"], results["delivery"], results["dataset"]) == (
        0,
        {"name": "Multipass"},
        "Digits",
    )
    assert results["simulated_annotators"] is True
    assert results["versions"]["torch"] == torch.__version__.split("+")[0]
    assert results["checkpoint"] == str(finished / "checkpoints" / "best.ckpt")
    parts = [
        results["metrics"][f"brier_{name}"] for name in ("reliability", "resolution", "uncertainty")
    ]
    assert parts[0] - parts[1] + parts[2] == pytest.approx(
        results["metrics"]["soft_brier"], abs=1e-12
    )


def test_predictions_are_one_row_per_item_and_reproduce_the_tested_score(finished: Path):
    table = pq.read_table(finished / "predictions.parquet")
    assert table["index"].to_pylist() == list(range(3592))
    probs = np.column_stack([table[f"model_{k}"] for k in range(10)])
    annotators = np.column_stack([table[f"annotators_{k}"] for k in range(10)])
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-12)
    entropy = -(probs * np.log(probs)).sum(1)
    np.testing.assert_allclose(table["model_entropy"].to_numpy(), entropy, atol=1e-9)
    test = np.array(table["split"].to_pylist()) == "test"
    score = functional.soft_nll(
        torch.from_numpy(probs[test]), torch.from_numpy(annotators[test])
    ).item()
    assert score == pytest.approx(
        json.loads((finished / "results.json").read_text())["metrics"]["soft_nll"], abs=1e-6
    )


def test_tensorboard_gets_scalars_and_both_pictures(finished: Path):
    events = EventAccumulator(str(finished)).Reload()
    assert {"train/loss", "val/soft_nll", "val/kl", "val/accuracy", "test/ece"} <= set(
        events.Tags()["scalars"]
    )
    assert {"test/reliability", "test/entropy", "val/reliability", "val/entropy"} <= set(
        events.Tags()["images"]
    )
    assert {path.name for path in (finished / "figures").iterdir()} >= {
        "test_reliability.png",
        "test_entropy.png",
    }


def test_the_best_checkpoint_is_the_one_with_the_least_validation_score(finished: Path):
    checkpoint = torch.load(finished / "checkpoints" / "best.ckpt", weights_only=True)
    scores = [
        event.value for event in EventAccumulator(str(finished)).Reload().Scalars("val/soft_nll")
    ]
    assert checkpoint["epoch"] == int(np.argmin(scores))
    assert (finished / "config.yaml").exists()


def test_the_same_command_finds_its_own_run_and_does_nothing_twice(finished: Path, capsys):
    before = (finished / "checkpoints" / "last.ckpt").stat().st_mtime_ns
    again = main(["fit", *MULTIPASS, "--trainer.default_root_dir", str(finished.parent)])
    assert again.run_dir == finished
    assert f"this run is done: {finished}" in capsys.readouterr().out
    assert (finished / "checkpoints" / "last.ckpt").stat().st_mtime_ns == before


def test_a_continued_run_is_tested_by_its_best_checkpoint_not_its_last(tmp_path: Path):
    options = [*QUICK, "--trainer.default_root_dir", str(tmp_path)]
    run_dir = main(["fit", *options]).run_dir
    main(["fit", *options])  # finds last.ckpt
    main(
        [
            "test",
            "--config",
            str(run_dir / "config.yaml"),
            "--trainer.default_root_dir",
            str(tmp_path),
        ]
    )
    assert json.loads((run_dir / "results.json").read_text())["checkpoint"] == str(
        run_dir / "checkpoints" / "best.ckpt"
    )


def test_another_seed_or_delivery_is_another_run(finished: Path):
    options = [
        *QUICK,
        "--trainer.default_root_dir",
        str(finished.parent),
        "--trainer.max_epochs",
        "1",
        "--trainer.limit_train_batches",
        "1",
    ]
    names = {
        main(["fit", *options, *change]).run_dir.name
        for change in ([], ["--seed_everything", "1"], ["--data.delivery", "Mixup"])
    }
    assert len(names) == 3


def test_class_count_and_input_shape_are_linked_from_data_to_model(finished: Path):
    cli = main(
        [
            "fit",
            *QUICK,
            "--trainer.default_root_dir",
            str(finished.parent),
            "--trainer.max_epochs",
            "0",
            "--model.network",
            "LeNet",
        ]
    )
    assert cli.model.network.head.out_features == cli.datamodule.num_classes == 10
    assert cli.model.network.convolutions[0].in_channels == cli.datamodule.input_shape[0] == 1
    assert cli.datamodule.seed == cli.model.seed == 0


def mistake(capsys: pytest.CaptureFixture, *args: str) -> str:
    """The one line that a wrong command prints."""
    with pytest.raises(SystemExit) as exit:
        main(list(args))
    assert exit.value.code == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1, lines
    return lines[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--data.delivery", "Multpass"],
            "error: data.delivery is Multpass, which is not one of DeterministicControl, "
            "LabelSmoothing,",
        ),
        (
            ["--data.delivery", "Mixup", "--data.delivery.base", "Soft"],
            "error: data.delivery.base is Soft, which is not one of",
        ),
        (
            ["--data.delivery", "LabelSmoothing", "--data.delivery.epsilon", "2"],
            "error: LabelSmoothing's epsilon is 2.0",
        ),
        (["--data", "Digts"], "error: data is Digts, which is not one of"),
        (["--model.network", "ResNet"], "error: model.network is ResNet, which is not one of"),
        (
            ["--model.network", "ResNet18", "--model.network.width", "wide"],
            "error: model.network.width is wide, which is not int",
        ),
        (["--data.votes_per_item", "0"], "error: data.votes_per_item is 0"),
        (["--data.votes_per_item", "-3"], "error: data.votes_per_item is -3"),
        (["--data.batch_size", "0"], "error: data.batch_size is 0"),
        (
            ["--data.batchsize", "8"],
            "error: data.batchsize is not an option (did",
        ),
        (
            ["--trainer.max_epochs", "many"],
            "error: trainer.max_epochs is many, which is not int or null.",
        ),
        (["--seed_everything", "-1"], "error: seed_everything is -1"),
        (["--config", "absent.yaml"], "absent.yaml"),
        (["--ckpt_path", "absent.ckpt"], "error: there is no checkpoint absent.ckpt"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    options: list[str], message: str, capsys, tmp_path: Path
):
    assert message in mistake(
        capsys, "fit", *QUICK, "--trainer.default_root_dir", str(tmp_path), *options
    )
    assert not list(tmp_path.iterdir()), "a mistake left something behind"


def test_testing_before_fitting(capsys, tmp_path: Path):
    assert "run fit with the same options first" in mistake(
        capsys, "test", *QUICK, "--trainer.default_root_dir", str(tmp_path)
    )


def test_a_checkpoint_of_another_architecture(capsys, finished: Path, tmp_path: Path):
    other = [
        "--model.network",
        "DeeperFFN",
        "--ckpt_path",
        str(finished / "checkpoints/best.ckpt"),
        "--trainer.default_root_dir",
        str(tmp_path),
    ]
    line = mistake(capsys, "test", *MULTIPASS, *other)
    assert "best.ckpt is of another architecture" in line
    assert "DeeperFFN" in line


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None])
def test_a_checkpoint_that_is_none(capsys, content: bytes | None, finished: Path, tmp_path: Path):
    """Empty, something else, or cut short."""
    whole = (finished / "checkpoints/best.ckpt").read_bytes()
    (tmp_path / "bad.ckpt").write_bytes(whole[: len(whole) // 2] if content is None else content)
    line = mistake(
        capsys,
        "test",
        *MULTIPASS,
        "--ckpt_path",
        str(tmp_path / "bad.ckpt"),
        "--trainer.default_root_dir",
        str(tmp_path / "runs"),
    )
    assert "bad.ckpt" in line


def test_a_checkpoint_cannot_run_code(capsys, tmp_path: Path):
    class Attack:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "attacked"),)

    torch.save({"state_dict": Attack()}, tmp_path / "evil.ckpt")
    line = mistake(
        capsys,
        "test",
        *MULTIPASS,
        "--ckpt_path",
        str(tmp_path / "evil.ckpt"),
        "--trainer.default_root_dir",
        str(tmp_path / "runs"),
    )
    assert "evil.ckpt" in line
    assert not (tmp_path / "attacked").exists()


def test_one_batch_is_not_all_batches():
    """In a process of its own, because how a union of int and float is read used to depend on what
    was imported before.
    """
    options = [
        "fit",
        "--config",
        "configs/digits.yaml",
        "--trainer.limit_train_batches",
        "1",
        "--print_config",
    ]
    done = subprocess.run(
        [sys.executable, "cli.py", *options],
        capture_output=True,
        text=True,
        timeout=HANGS,
        cwd=ROOT,
    )
    assert "  limit_train_batches: 1\n" in done.stdout
