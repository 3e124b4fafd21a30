"""Running a study: every run as if alone, failures told, two processes in turn, and nothing lost to
kill -9.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

from callbacks.results import read_results
from cli import main
from core.atomic_io import SUFFIX
from tests import processes
from tests.waiting import HANGS, until

ROOT = Path(__file__).parents[3]
DIGITS = str(ROOT / "configs/digits.yaml")
pytestmark = pytest.mark.usefixtures("forked_jobs")
# clipping has no packed form
ALONE = {
    "model.network": "LeNet",
    "trainer.gradient_clip_val": 1000.0,
}


def write_study(folder: Path, epochs: int = 3, **content) -> Path:
    path = folder / "study.yaml"
    grids = {
        "main": {
            "data.delivery": ["SoftLabels", "Multipass"],
            "trainer.max_epochs": [2, epochs],
            "seed_everything": [0, 1],
        }
    }
    path.write_text(
        yaml.safe_dump(
            {"name": "small", "configs": [DIGITS], "grids": grids, **content}, sort_keys=False
        )
    )
    return path


def words(study: Path, runs: Path) -> list[str]:
    return ["study", "run", str(study), "--runs", str(runs)]


def command(study: Path, runs: Path) -> list[str]:
    return [sys.executable, str(ROOT / "cli.py"), *words(study, runs)]


def results(runs: Path) -> dict[str, str]:
    """Every finished run's results, less the paths in them."""
    return {
        path.parent.name: path.read_text().replace(str(runs), "")
        for path in runs.glob("*/results.json")
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight runs of a study: two deliveries, two lengths, two seeds."""
    folder = tmp_path_factory.mktemp("study")
    processes.run(words(write_study(folder), folder / "runs"), check=True)
    return folder


def check_as_if_alone(runs: Path, folder: Path, options: list[str]) -> None:
    """Train and test the same run alone, and compare its files with those that a pack left."""
    options = [
        "--config",
        DIGITS,
        *options,
        "--trainer.default_root_dir",
        str(folder),
        "--trainer.accelerator",
        "cpu",
    ]
    alone = main(["fit", *options, "--trainer.enable_progress_bar", "false"]).run_dir
    main(["test", *options, "--trainer.enable_progress_bar", "false"])
    packed = runs / alone.name
    mine, theirs = read_results(packed), read_results(alone)
    assert mine
    assert theirs
    numbers = {"metrics": 0, "worth": 0, "checkpoint": 0}
    assert {**mine, **numbers} == {**theirs, **numbers}
    assert mine["metrics"] == pytest.approx(theirs["metrics"], abs=1e-4)
    assert mine["worth"].keys() == theirs["worth"].keys()
    for name, worth in theirs["worth"].items():
        assert mine["worth"][name] == pytest.approx(worth, abs=1e-3)
    weights = [
        torch.load(run / "checkpoints/best.ckpt", weights_only=True)["state_dict"]
        for run in (packed, alone)
    ]
    assert weights[0].keys() == weights[1].keys()
    for name, value in weights[1].items():
        torch.testing.assert_close(weights[0][name], value, atol=1e-5, rtol=0)


def test_every_run_ends_as_if_it_had_been_alone(finished: Path, tmp_path: Path):
    assert len(results(finished / "runs")) == 8
    for delivery, epochs in (("Multipass", "3"), ("SoftLabels", "2")):
        options = [
            "--data.delivery",
            delivery,
            "--trainer.max_epochs",
            epochs,
            "--seed_everything",
            "1",
        ]
        check_as_if_alone(finished / "runs", tmp_path, options)


def test_packed_convolutions_end_as_if_they_had_been_alone(tmp_path: Path):
    """One epoch: with more of them, in single precision, a last bit turns a unit on or off."""
    grids = {"main": {"model.network": ["LeNet"], "data.delivery": ["SoftLabels", "Multipass"]}}
    study, runs = (
        write_study(tmp_path, grids=grids, options={"trainer.max_epochs": 1}),
        tmp_path / "runs",
    )
    main(["study", "run", str(study), "--runs", str(runs)])
    assert list((runs / ".studies/small").glob("pack-*.json"))
    check_as_if_alone(
        runs,
        tmp_path / "alone",
        ["--model.network", "LeNet", "--data.delivery", "Multipass", "--trainer.max_epochs", "1"],
    )


def test_the_command_line_tests_a_packed_member_to_the_same_results(finished: Path):
    run = next((finished / "runs").glob("digits-multipass-seed0-*"))
    before = (run / "results.json").read_text()
    main(
        [
            "test",
            "--config",
            str(run / "config.yaml"),
            "--trainer.default_root_dir",
            str(finished / "runs"),
            "--trainer.accelerator",
            "cpu",
        ]
    )
    assert (run / "results.json").read_text() == before


def test_plan_says_what_is_done_and_what_is_left(finished: Path, capsys: pytest.CaptureFixture):
    main(["study", "plan", str(finished / "study.yaml"), "--runs", str(finished / "runs")])
    assert "0 runs are left to do" in capsys.readouterr().out
    main(["study", "plan", str(finished / "study.yaml"), "--runs", str(finished / "elsewhere")])
    assert "8 runs are left to do" in capsys.readouterr().out


def test_plan_counts_runs_that_are_done_in_a_pack_that_is_not(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    runs = tmp_path / "runs"
    shutil.copytree(finished / "runs", runs, symlinks=True)
    shutil.rmtree(next(path for path in sorted(runs.iterdir()) if (path / "results.json").exists()))
    main(["study", "plan", str(finished / "study.yaml"), "--runs", str(runs)])
    assert "1 runs are left to do in 1 jobs" in capsys.readouterr().out


def test_mistakes_in_the_command_are_told_in_one_sentence(
    finished: Path, capsys: pytest.CaptureFixture
):
    for options, message in (
        (["--processes", "0"], "--processes is 0; it must be 1 or more."),
        ([], "absent.yaml cannot be read as a study"),
    ):
        with pytest.raises(SystemExit) as exit:
            main(
                [
                    "study",
                    "plan",
                    str(finished / "study.yaml" if options else "absent.yaml"),
                    *options,
                ]
            )
        assert exit.value.code == 2
        assert message in capsys.readouterr().err


def test_a_result_cut_short_is_not_trusted_and_nothing_else_is_done_again(finished: Path):
    runs = finished / "runs"
    before = results(runs)
    cut = next(runs.glob("digits-softlabels-seed0-*")) / "results.json"
    other = next(runs.glob("digits-softlabels-seed1-*")) / "results.json"
    untouched = other.stat().st_mtime_ns
    cut.write_text(cut.read_text()[:40])
    main(["study", "run", str(finished / "study.yaml"), "--runs", str(runs)])
    assert results(runs) == before
    assert other.stat().st_mtime_ns == untouched


def test_a_run_that_fails_is_told_at_the_end_and_the_others_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    grids = {
        "main": {
            "model.optimizer": [
                {"class_path": "torch.optim.SGD", "init_args": {"lr": lr}} for lr in (0.1, 1e30)
            ]
        }
    }
    study = write_study(tmp_path, grids=grids, options={"trainer.max_epochs": 2})
    with pytest.raises(SystemExit) as exit:
        main(["study", "run", str(study), "--runs", str(tmp_path / "runs")])
    assert exit.value.code == 3
    output = capsys.readouterr().out
    assert "1 of 2 runs are done, 1 diverged, in " in output
    assert "its loss was nan" in output
    assert len(results(tmp_path / "runs")) == 1


def test_a_run_that_diverges_alone_fails_as_it_does_in_a_pack_and_is_not_tried_again(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    grids = {
        "main": {
            "model.optimizer": [
                {"class_path": "torch.optim.SGD", "init_args": {"lr": lr}} for lr in (0.1, 1e30)
            ]
        }
    }
    study = write_study(tmp_path, grids=grids, options={"trainer.max_epochs": 2, **ALONE})
    for attempt in range(2):
        with pytest.raises(SystemExit):
            main(["study", "run", str(study), "--runs", str(tmp_path / "runs")])
        output = capsys.readouterr().out
        assert "1 of 2 runs are done" in output
        assert "its loss was nan in epoch" in output
        assert len(results(tmp_path / "runs")) == 1
        assert attempt == 0 or "0/0" in output.replace(" ", "")


def test_two_processes_on_one_study_take_turns(tmp_path: Path):
    study, runs, message = write_study(tmp_path), tmp_path / "runs", tmp_path / "said"
    first = processes.Process(words(study, runs))
    until(lambda: list(runs.glob(".studies/small/*.json")))  # it has begun
    # however fast its jobs are, it has not ended before the other has started
    first.send_signal(signal.SIGSTOP)
    with open(message, "w") as output:
        second = processes.Process(words(study, runs), stdout=output, stderr=output)
    until(lambda: "which runs this study, since" in message.read_text())
    first.send_signal(signal.SIGCONT)
    first.communicate()
    assert [process.wait() for process in (first, second)] == [0, 0]
    assert len(results(runs)) == 8


@pytest.fixture
def tiny_disk(tmp_path: Path):
    """A file system of its own with room for almost nothing."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid()
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True
        ).returncode
    ):
        pytest.skip("a full disk can only be tried where a small file system can be mounted")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_told_and_leaves_nothing_half_written(tmp_path: Path, tiny_disk: Path):
    study = write_study(
        tmp_path, grids={"main": {"seed_everything": [0, 1]}}, options={"trainer.max_epochs": 1}
    )
    done = processes.run(words(study, tiny_disk))
    assert done.returncode == 1
    assert "No space left on device" in done.stdout + done.stderr
    assert len(results(tiny_disk)) < 2
    assert all(read_results(path.parent) for path in tiny_disk.glob("*/results.json"))
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
    processes.run(words(study, tiny_disk), check=True)
    assert len(results(tiny_disk)) == 2


def states(runs: Path) -> dict[Path, int]:
    """What jobs write as they go on, and when they last did."""
    result = (
        path for path in runs.rglob("*") if path.suffix in (".progress", ".pt", ".ckpt", ".json")
    )
    return {path: path.stat().st_mtime_ns for path in result if path.exists()}


@pytest.mark.long
def test_killed_ten_times_and_started_again_it_ends_with_the_same_bits(tmp_path: Path):
    """Packs, also of convolutions, and runs alone, killed with SIGKILL at random moments; the
    children die with their parent.
    """
    grids = {
        "packed": {
            "data.delivery": ["SoftLabels", "Multipass", "StochasticLabelSampling"],
            "seed_everything": [0, 1, 2],
        },
        "convolutions": {"model.network": ["LeNet"], "seed_everything": [0, 1]},
        "alone": {"alone": {"LeNet": ALONE}, "seed_everything": [0, 1]},
    }
    study = write_study(tmp_path, grids=grids, options={"trainer.max_epochs": 12})
    subprocess.run(
        command(study, tmp_path / "whole"), check=True, timeout=HANGS, capture_output=True
    )
    chance = random.Random(0)
    killed, hit = tmp_path / "killed", 0
    for _ in range(10):
        before = states(killed)
        process = subprocess.Popen(
            command(study, killed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(
            lambda before=before, process=process: (
                states(killed) != before or process.poll() is not None
            )
        )
        time.sleep(chance.uniform(0, 8))
        process.kill()
        process.wait()
        hit += len(results(killed)) < 13
    assert hit, "the study was over before the first kill; give it more epochs"
    subprocess.run(command(study, killed), check=True, timeout=HANGS, capture_output=True)
    assert len(results(killed)) == 13
    assert results(killed) == results(tmp_path / "whole")
    for path in (tmp_path / "whole").glob("*/checkpoints/best.ckpt"):
        other = killed / path.parents[1].name / "checkpoints/best.ckpt"
        mine, theirs = (torch.load(p, weights_only=True)["state_dict"] for p in (path, other))
        assert all(torch.equal(value, theirs[name]) for name, value in mine.items()), path
    assert not [path for path in killed.rglob(f".*{SUFFIX}") if ".studies" not in path.parts]
