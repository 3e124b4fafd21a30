"""Finished means finished: a training that was cut, a test that left items out and a model of other
data never become a result.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from callbacks.epochs.interruptions import TimeLimit
from callbacks.records.known_data import read_fingerprint
from callbacks.records.training_record import TrainingRecord, as_training
from callbacks.results import read_failure, read_results, read_training
from cli import main
from core.interruption import Interrupted
from experiment.configuration import resolve
from experiment.identity import earlier_names
from experiment.run_checkpoints import best_checkpoint, checkpoint_to_continue, last_checkpoint
from experiment.steps_left import steps_left
from lightning_modules.resuming import had_stopped, is_mid_epoch
from tests import processes
from tests.experiment.test_exact_resume import content, differences

ROOT = Path(__file__).parents[2]
QUICK = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--trainer.max_epochs", "3",
    "--trainer.limit_train_batches", "6",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip


def options(folder: Path, *more: str) -> list[str]:
    return [*QUICK, "--trainer.default_root_dir", str(folder), *more]


def run(capsys: pytest.CaptureFixture, command: str, words: list[str]) -> tuple[int, str]:
    """A command's exit code and what it printed."""
    capsys.readouterr()
    try:
        main([command, *words])
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    output = capsys.readouterr()
    return code, output.out + output.err


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was trained and tested without an interruption."""
    folder = tmp_path_factory.mktemp("whole")
    run_dir = main(["fit", *options(folder)]).run_dir
    main(["test", *options(folder)])
    return run_dir


def cut(folder: Path, monkeypatch: pytest.MonkeyPatch, checks: int) -> list[str]:
    """Options of a run whose time is over when it has looked at the clock so often: six times an
    epoch.
    """
    looks = iter(range(checks))
    with monkeypatch.context() as patch:
        patch.setattr(
            TimeLimit, "time_remaining", lambda self: 1.0 if next(looks, None) is not None else 0.0
        )
        with pytest.raises(SystemExit, match="124"):
            main(["fit", *options(folder, "--trainer.max_time", "00:01:00:00")])
    return options(folder)


def test_results_say_how_the_training_ended_and_how_many_items_were_scored(trained: Path):
    results = json.loads((trained / "results.json").read_text())
    assert results["training"] == {
        "ended": "epochs",
        "epochs": 3,
        "planned_epochs": 3,
        "steps": 18,
        "planned_steps": None,
        "reason": "",
    }
    assert (results["test_items"], results["scored_items"]) == (540, 540)
    assert as_training(json.loads((trained / "training.json").read_text())) == read_training(
        trained
    )


def test_what_max_time_has_cut_is_not_finished_and_continues_to_the_same_bits(
    trained: Path, tmp_path: Path, monkeypatch, capsys
):
    words = cut(tmp_path, monkeypatch, checks=10)  # in the second epoch
    assert (
        "trainer.max_time (1:00:00) is over at epoch 1 of 3; the same command continues."
        in capsys.readouterr().err
    )
    run_dir = tmp_path / trained.name
    code, message = run(capsys, "test", words)
    assert code == 2
    assert (
        "is not trained to its end (epoch 1 of 3); the same fit continues it; to look at it all "
        "the same, add --preview true." in message
    )
    assert run(capsys, "predict", words)[0] == 2
    code, message = run(capsys, "test", [*words, "--preview", "true"])
    assert code == 0
    assert (
        "This is a preview and no result: this run is not trained to its end (epoch 1 of 3)"
        in message
    )
    assert json.loads((run_dir / "preview/preview.json").read_text())["training"] is None
    assert not (run_dir / "results.json").exists()
    assert steps_left(resolve(QUICK), run_dir) == ["fit", "test"]
    # every command has the whole time, so that the second comes further than the first
    cut(tmp_path, monkeypatch, checks=9)
    assert torch.load(last_checkpoint(run_dir), weights_only=True)["epoch"] == 1
    main(["fit", *words])
    main(["test", *words])
    assert {**(read_results(run_dir) or {}), "checkpoint": ""} == {
        **(read_results(trained) or {}),
        "checkpoint": "",
    }
    for name in ("best.ckpt", "last.ckpt"):
        assert differences(content(trained, name), content(run_dir, name), name) == []


@pytest.mark.parametrize(
    ("command", "more", "why"),
    [
        (
            "test",
            ["--trainer.limit_test_batches", "1"],
            "trainer.limit_test_batches leaves items out",
        ),
        (
            "test",
            ["--trainer.fast_dev_run", "true"],
            "trainer.fast_dev_run looks at a batch or two",
        ),
        ("test", ["--ckpt_path", "LAST"], "last.ckpt is not the best checkpoint of this run"),
        ("predict", ["--trainer.limit_predict_batches", "0.5"], ""),
        (
            "fit",
            ["--trainer.fast_dev_run", "true"],
            "this was no training: trainer.fast_dev_run looks at a batch or two",
        ),
    ],
)
def test_a_partial_look_never_becomes_a_result(
    trained: Path, capsys, command: str, more: list[str], why: str
):
    before = {
        path: path.read_bytes()
        for path in trained.rglob("*")
        if path.is_file() and "preview" not in path.parts
    }
    words = [str(last_checkpoint(trained)) if word == "LAST" else word for word in more]
    code, message = run(capsys, command, options(trained.parent, *words))
    assert code == 0
    assert why in message
    assert {
        path: path.read_bytes()
        for path in trained.rglob("*")
        if path.is_file() and "preview" not in path.parts
    } == before
    if command == "test":
        assert json.loads((trained / "preview/preview.json").read_text())["preview"].endswith(why)


def test_one_batch_is_told_from_all_of_them(trained: Path, capsys):
    run(capsys, "test", options(trained.parent, "--trainer.limit_test_batches", "1"))
    preview = json.loads((trained / "preview/preview.json").read_text())
    assert (preview["scored_items"], preview["test_items"]) == (64, 540)
    assert (
        run(capsys, "test", options(trained.parent, "--trainer.limit_test_batches", "1.0"))[
            1
        ].count("PREVIEW")
        == 0
    )


def test_a_diverged_training_ends_with_a_code_of_its_own_and_has_no_result(tmp_path: Path, capsys):
    words = options(tmp_path, "--model.optimizer", "SGD", "--model.optimizer.lr", "1e30")
    code, message = run(capsys, "fit", words)
    assert code == 3
    assert "trained for 1 of 3 epochs (diverged); diverged: its loss was" in message
    run_dir = next(path for path in tmp_path.iterdir())
    assert "its loss was" in (read_failure(run_dir) or "")
    assert steps_left(resolve(words), run_dir) == []
    code, message = run(capsys, "test", words)
    assert code == 2
    assert "has no result, because its training diverged (its loss was" in message
    assert run(capsys, "fit", words)[0] == 3


def test_a_model_that_is_gone_is_trained_again_and_leaves_no_stale_result(
    trained: Path, tmp_path: Path, capsys
):
    words = options(tmp_path)
    run_dir = main(["fit", *words]).run_dir
    main(["test", *words])
    best_checkpoint(run_dir).unlink()
    code, message = run(capsys, "fit", words)
    assert code == 0
    assert "trained for 3 of 3 epochs" in message
    assert not (run_dir / "results.json").exists()
    assert differences(content(trained, "best.ckpt"), content(run_dir, "best.ckpt")) == []


def as_earlier_version(run_dir: Path, words: list[str]) -> Path:
    """The run as the version before left it: under another name, without records of its end and its
    data.
    """
    results = json.loads((run_dir / "results.json").read_text())
    for new in ("training", "scored_items", "probes"):
        del results[new]
    (run_dir / "results.json").write_text(json.dumps(results))
    (run_dir / "training.json").unlink()
    (run_dir / "fingerprint.json").unlink()
    last = torch.load(last_checkpoint(run_dir), weights_only=True)
    last["had_stopped"] = last.pop("stopped_by_rule")
    torch.save(last, last_checkpoint(run_dir))
    (name,) = earlier_names(resolve(words))
    return run_dir.rename(run_dir.with_name(name))


def test_a_run_of_an_earlier_version_is_known_by_its_evidence_and_tested_again(
    tmp_path: Path, capsys
):
    words = options(tmp_path)
    run_dir = main(["fit", *words]).run_dir
    main(["test", *words])
    before = read_results(run_dir) or {}
    earlier = as_earlier_version(run_dir, words)
    assert read_results(earlier) is None  # it does not say whether all items were scored
    assert read_training(earlier) == TrainingRecord("epochs", 3, 3, None)
    assert steps_left(resolve(words), earlier) == ["test"]
    assert "trained for 3 of 3 epochs (all epochs)" in run(capsys, "fit", words)[1]
    main(["test", *words])
    assert [path.name for path in tmp_path.iterdir()] == [earlier.name]
    assert (read_results(earlier) or {})["metrics"] == before["metrics"]
    history = json.loads((earlier / "history.json").read_text())
    for rows in (history[:2], history[1:], [{**row, "lr": "0.1"} for row in history], {}):
        (earlier / "history.json").write_text(json.dumps(rows))
        assert read_training(earlier) is None
    (earlier / "history.json").write_text(
        json.dumps([*history[:2], {**history[2], "val/loss": float("nan")}])
    )
    assert read_training(earlier) == TrainingRecord(
        "diverged", 3, 3, None, reason="its loss was nan in epoch 2"
    )


def test_early_stopping_of_an_earlier_version_is_applied_to_its_history_anew(tmp_path: Path):
    rule = {
        "class_path": "lightning.pytorch.callbacks.EarlyStopping",
        "init_args": {"monitor": "val/loss", "patience": 2},
    }
    (tmp_path / "config.yaml").write_text(
        json.dumps({"trainer": {"max_epochs": 50, "callbacks": [rule]}})
    )
    for losses, ended in (
        ([3.0, 2.0, 2.5, 2.5], True),
        ([3.0, 2.0, 2.5], False),
        ([3.0, 2.0, 2.5, 2.5, 1.0], False),
        ([3.0, 2.0, 2.5, 1.9, 2.0, 1.9], True),
    ):
        (tmp_path / "history.json").write_text(
            json.dumps([{"epoch": epoch, "val/loss": loss} for epoch, loss in enumerate(losses)])
        )
        assert read_training(tmp_path) == (
            TrainingRecord("early_stopping", len(losses), 50, None) if ended else None
        )


def test_nothing_is_continued_from_mid_epoch(trained: Path, tmp_path: Path, capsys):
    words = options(tmp_path)
    run_dir = main(["fit", *words]).run_dir
    (run_dir / "training.json").unlink()
    last = torch.load(last_checkpoint(run_dir), weights_only=True)
    last["loops"]["fit_loop"]["epoch_loop.batch_progress"]["is_last_batch"] = False
    torch.save(last, last_checkpoint(run_dir))
    assert is_mid_epoch(last)
    assert not is_mid_epoch(last, max_steps=18)  # all that was wanted
    assert not is_mid_epoch({**last, "stopped_by_rule": True})
    code, message = run(capsys, "fit", [*words, "--ckpt_path", str(last_checkpoint(run_dir))])
    assert code == 2
    assert "was made in mid-epoch, from where no training continues exactly" in message
    assert checkpoint_to_continue(run_dir) is None
    assert "was made in mid-epoch; starting from the beginning." in capsys.readouterr().err
    main(["fit", *words])
    assert differences(content(trained, "last.ckpt"), content(run_dir, "last.ckpt")) == []


def test_only_early_stopping_s_own_word_counts_in_checkpoints_of_earlier_versions():
    spoken = {"EarlyStopping{'monitor': 'val/loss'}": {"stopped_epoch": 3}}
    assert had_stopped({"had_stopped": True, "callbacks": spoken})
    assert not had_stopped({"had_stopped": True, "callbacks": {"Timer": {}}})
    assert not had_stopped({"had_stopped": False, "callbacks": spoken})


@pytest.mark.parametrize(
    "content",
    [
        "[1]",
        '{"ended": "max_time"}',
        '{"ended": "epochs", "epochs": "3"}',
        '{"ended": "epochs", "epochs": true}',
        "{",
    ],
)
def test_a_record_that_is_none_is_no_evidence(tmp_path: Path, content: str):
    (tmp_path / "training.json").write_text(content)
    assert read_training(tmp_path) is None


def start(words: list[str]) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(
        [sys.executable, "cli.py", *words],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def fork(words: list[str]) -> processes.Process:
    return processes.Process(
        words, env={**os.environ, "PYTHONWARNINGS": "ignore"}, stderr=subprocess.STDOUT
    )


def wait_until(process: subprocess.Popen | processes.Process, there) -> None:
    """Until something is there; a process that ends before it is a failure, and so are ten
    minutes.
    """
    end = time.monotonic() + 600
    while not there():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end, "ten minutes have passed"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("begin", "number", "code", "name"),
    [
        (fork, signal.SIGTERM, 143, "SIGTERM"),
        pytest.param(start, signal.SIGINT, 130, "Ctrl-C", marks=pytest.mark.long),
    ],
    ids=["SIGTERM", "Ctrl-C"],
)
def test_a_signal_ends_a_fit_with_its_code_and_one_line(
    tmp_path: Path, begin, number: int, code: int, name: str
):
    words = options(tmp_path, "--trainer.max_epochs", "100000")
    fit = begin(["fit", *words])
    wait_until(fit, lambda: any(tmp_path.glob("*/checkpoints/last.ckpt")))
    fit.send_signal(number)
    output, _ = fit.communicate(timeout=600)
    assert fit.returncode == code
    lines = [line for line in output.splitlines() if line.strip()]
    assert lines[-1].startswith(f"ended by {name} at epoch ")
    assert lines[-1].endswith(" of 100000; the same command continues.")
    run_dir = next(tmp_path.glob("*/history.json")).parent
    assert read_training(run_dir) is None
    assert not is_mid_epoch(torch.load(last_checkpoint(run_dir), weights_only=True))
    assert read_fingerprint(run_dir)


def test_an_interruption_is_no_exception_that_anybody_could_take_for_a_mistake():
    assert not issubclass(Interrupted, Exception)
