"""A job to a GPU: which sees which, what plan says of it, and what Slurm is asked for. There is no
GPU here, so that torch is told how many to count.
"""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from rich.console import Console

from cli import main
from core.errors import InputError
from studies.launch import local_launcher, slurm_launcher
from studies.launch.gpu_slots import GpuSlots, visible_gpus
from studies.launch.job import do_job, write_job
from studies.launch.slurm_launcher import ClusterOptions, submit
from studies.plan.packing import Job, jobs_of
from studies.planned_jobs import device_in_words
from tests.studies.launch.test_launch import write_study
from tests.studies.plan.test_packing import run


def packs(count: int, *options: str) -> list[Job]:
    runs = [run("--seed_everything", str(seed), *options) for seed in range(count)]
    return jobs_of(runs, processes=1, gpus=count)


@pytest.mark.parametrize(
    ("listed", "names"), [("", ["0", "1"]), ("2,3", ["2", "3"]), ("GPU-1a, GPU-2b", None)]
)
def test_gpus_are_named_as_cuda_names_them(listed: str, names, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert visible_gpus() == (names or ["GPU-1a", "GPU-2b"])


def test_one_pack_to_a_gpu_and_the_next_waits():
    first, second, third = packs(3)
    slots = GpuSlots(["2", "3"])
    assert [slots.take(first), slots.take(second), slots.take(third)] == ["2", "3", None]
    slots.give_back(first)
    assert slots.take(third) == "2"


def test_a_run_that_names_its_devices_has_all_gpus():
    (pack,) = packs(1)
    (several,) = packs(1, "--trainer.devices", "2", "--trainer.accelerator", "gpu")
    slots = GpuSlots(["0", "1"])
    assert slots.take(pack) == "0"
    assert slots.take(several) is None
    slots.give_back(pack)
    assert slots.take(several) == ""
    assert slots.take(pack) is None


def test_jobs_on_the_cpu_wait_for_no_gpu():
    (job,) = packs(1, "--trainer.accelerator", "cpu")
    assert [GpuSlots(gpus).take(job) for gpus in ([], ["0"])] == ["", ""]


def test_a_job_sees_its_own_gpu_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    (job,) = packs(1)
    path = write_job(job, tmp_path, tmp_path, predict=False, threads=1, gpu="7")
    assert json.loads(path.read_text())["gpu"] == "7"
    monkeypatch.setattr("studies.launch.job.steps_left", lambda *rest: [])  # nothing is to do
    do_job(path)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"


def test_study_run_gives_each_pack_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    started = []

    class Server:
        def __init__(self, threads: int):
            self.going: list[Path] = []

        def start(self, path: Path) -> None:
            self.going.append(path)
            started.append(json.loads(path.read_text())["gpu"])

        def ended(self) -> dict[Path, int]:
            return {self.going.pop(0): 0}

        def kill(self) -> None:
            pass

    monkeypatch.setattr(local_launcher, "JobServer", Server)
    monkeypatch.setattr(local_launcher, "visible_gpus", lambda: ["2", "3"])
    study = SimpleNamespace(name="small", predict=False)
    failures = local_launcher.launch(
        study, lambda: packs(3), tmp_path, processes=4, console=Console(quiet=True)
    )  # pyright: ignore[reportArgumentType]
    assert started == ["2", "3", "2"]
    assert len(failures) == 3  # this server trains nothing


@pytest.mark.parametrize(
    ("gpus", "accelerator", "words"),
    [
        (0, "auto", "CPU"),
        (1, "auto", "GPU"),
        (4, "auto", "one of 4 GPUs"),
        (0, "gpu", "a GPU; none is here"),
        (4, "cpu", "CPU"),
    ],
)
def test_plan_says_where_a_job_runs(gpus: int, accelerator: str, words: str):
    jobs = jobs_of([run("--trainer.accelerator", accelerator)], processes=2, gpus=gpus)
    assert [device_in_words(job, gpus) for job in jobs] == [words]


def test_plan_of_a_study_on_two_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("COLUMNS", "200")
    study = write_study(tmp_path, grids={"main": {"seed_everything": [0, 1, 2, 3]}})
    main(["study", "plan", str(study), "--runs", str(tmp_path / "runs")])
    said = " ".join(capsys.readouterr().out.split())
    assert said.count("one of 2 GPUs") == 2
    assert "members of equal shape, mapped by torch.func" in said
    assert "Their cost on a GPU is not estimated" in said


class Executor:
    """submitit's, as far as it is told what to ask for."""

    asked: ClassVar[dict] = {}

    def __init__(self, **options):
        pass

    def update_parameters(self, **options):
        Executor.asked = options

    def map_array(self, task, paths):
        return [SimpleNamespace(job_id="17_0")]


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (ClusterOptions(), {}),
        (ClusterOptions(gpus=1), {"slurm_gpus_per_task": 1}),
        (ClusterOptions(gpus=2, tasks=2), {"gpus_per_node": 2}),
    ],
)
def test_slurm_is_asked_for_gpus_of_each_task(
    options: ClusterOptions, asked: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    submitit = pytest.importorskip("submitit")
    monkeypatch.setattr(submitit, "AutoExecutor", Executor)
    alone = Job([run()], packed=False, why="")
    study = SimpleNamespace(name="small", predict=False)
    assert submit(study, [alone], tmp_path, tmp_path, options) == "17"  # pyright: ignore[reportArgumentType]
    assert {key: value for key, value in Executor.asked.items() if "gpu" in key} == asked


def test_a_pack_on_slurm_has_one_gpu(tmp_path: Path):
    pytest.importorskip("submitit")
    study = SimpleNamespace(name="small", predict=False)
    with pytest.raises(InputError, match=r"--gpus is 2, but pack-.* trains on one GPU"):
        submit(study, packs(1), tmp_path, tmp_path, ClusterOptions(gpus=2))  # pyright: ignore[reportArgumentType]
    assert slurm_launcher.gpu_options(ClusterOptions(gpus=2)) == {"slurm_gpus_per_task": 2}
