"""A study that is continued with another number of processes: what has begun goes on as it was, and
only the rest is cut anew.
"""

import subprocess
from pathlib import Path

import pytest

from callbacks.records.training_record import TrainingRecord, write_training
from experiment.run_checkpoints import last_checkpoint
from studies.launch.begun_jobs import begun_jobs
from studies.launch.job import write_job
from studies.launch.local_launcher import study_folder, threads_of
from studies.plan.packing import Job, jobs_of
from studies.plan.study import Run, Study
from tests.experiment.test_exact_resume import carry_out
from tests.studies.launch.test_launch import command, results, write_study
from tests.studies.plan.test_packing import run
from tests.waiting import HANGS

DIVERGED = TrainingRecord(
    "diverged", epochs=2, planned_epochs=30, steps=None, reason="its loss was nan in epoch 1"
)


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    """Four that can be packed, and one that cannot."""
    return [
        *(run("--seed_everything", str(seed)) for seed in range(4)),
        run("--model.network", "ResNet18"),
    ]


def begin(folder: Path, *jobs: Job, threads: int = 1) -> None:
    for job in jobs:
        write_job(job, folder, folder, predict=False, threads=threads)


def members(jobs: list[Job]) -> list[list[int]]:
    """The seeds of each pack."""
    return [[run.config["seed_everything"] for run in job.runs] for job in jobs if job.packed]


def test_a_pack_with_a_saved_state_keeps_its_members_and_threads(runs: list[Run], tmp_path: Path):
    first, second, _ = jobs_of(runs, processes=2)
    begin(tmp_path, first, second, threads=1)
    assert begun_jobs(tmp_path, runs, tmp_path) == []  # there is nothing to lose
    (tmp_path / f"{first.name}-before.pt").touch()
    begun = begun_jobs(tmp_path, runs, tmp_path)
    assert [(job.name, job.packed, job.threads) for job in begun] == [(first.name, True, 1)]
    assert [job.name for job in jobs_of(runs, 2, begun)] == [job.name for job in jobs_of(runs, 2)]
    assert members(jobs_of(runs, 1, begun)) == [[0, 1], [2, 3]]
    assert members(jobs_of(runs, 4, begun)) == [[0, 1], [2], [3]]
    assert sum(not job.packed for job in jobs_of(runs, 4, begun)) == 1
    path = write_job(begun[0], tmp_path, tmp_path, predict=False, threads=7)
    assert '"threads": 1,' in path.read_text()


def test_a_pack_of_which_a_run_has_ended_and_a_run_alone_with_a_checkpoint_go_on_too(
    runs: list[Run], tmp_path: Path
):
    whole, alone = jobs_of(runs, processes=1)
    begin(tmp_path, whole, alone)
    write_training(whole.runs[2].folder(tmp_path), DIVERGED)
    last = last_checkpoint(alone.runs[0].folder(tmp_path))
    last.parent.mkdir(parents=True)
    last.touch()
    begun = begun_jobs(tmp_path, runs, tmp_path)
    assert {job.name for job in begun} == {whole.name, alone.name}
    assert {job.name for job in jobs_of(runs, 4, begun)} == {whole.name, alone.name}
    more = [*runs, run("--seed_everything", "4")]
    assert members(jobs_of(more, 1, begun_jobs(tmp_path, more, tmp_path))) == [[0, 1, 2, 3], [4]]


def test_a_run_that_began_alone_stays_alone_where_runs_like_it_are_packed_now(
    runs: list[Run], tmp_path: Path
):
    began = Job(runs[:1], packed=False, why="it had no packed form")
    begin(tmp_path, began)
    last = last_checkpoint(runs[0].folder(tmp_path))
    last.parent.mkdir(parents=True)
    last.touch()
    (job,) = begun_jobs(tmp_path, runs, tmp_path)
    assert (job.name, job.packed) == (began.name, False)
    assert members(jobs_of(runs, 1, [job])) == [[1, 2, 3]]


def test_what_is_damaged_or_of_other_runs_is_cut_anew(runs: list[Run], tmp_path: Path):
    whole, _ = jobs_of(runs, processes=1)
    begin(tmp_path, whole)
    (tmp_path / f"{whole.name}.pt").touch()
    assert begun_jobs(tmp_path, runs, tmp_path)
    assert begun_jobs(tmp_path, runs[1:], tmp_path) == []
    path = tmp_path / f"{whole.name}.json"
    described = path.read_text()
    for damaged in (
        described[:100],
        "[]",
        "{}",
        described.replace('"threads": 1,', '"threads": "many",'),
        described.replace('"packed": true', '"packed": false'),
    ):
        path.write_text(damaged)
        assert begun_jobs(tmp_path, runs, tmp_path) == []


def test_of_two_packs_that_share_runs_the_one_with_a_state_goes_on(runs: list[Run], tmp_path: Path):
    first, *_ = jobs_of(runs, processes=2)
    whole, *_ = jobs_of(runs, processes=1)
    begin(tmp_path, first, whole)
    write_training(whole.runs[0].folder(tmp_path), DIVERGED)
    assert [job.name for job in begun_jobs(tmp_path, runs, tmp_path)] == [whole.name]
    (tmp_path / f"{first.name}.pt").touch()
    assert [job.name for job in begun_jobs(tmp_path, runs, tmp_path)] == [first.name]


@pytest.mark.long
def test_a_study_killed_under_two_processes_and_continued_with_one_ends_with_the_same_bits(
    tmp_path: Path,
):
    path, killed, whole = write_study(tmp_path), tmp_path / "killed", tmp_path / "whole"
    study = Study.load(str(path))
    subprocess.run(
        [*command(path, whole), "--processes", "2"], check=True, timeout=HANGS, capture_output=True
    )
    jobs, place, entries = jobs_of(study.runs(), processes=2), study_folder(study, killed), []
    for job in jobs:
        file = write_job(job, place, killed, predict=False, threads=threads_of(jobs, 2))
        entry = {
            "job": str(file),
            "folder": str(killed),
            "log": f"{file}.log",
            "moments": [(f"replaced {job.name}.pt", 1)],
            "ends": False,
        }
        entries.append(entry)
    assert carry_out(tmp_path, *entries) == [["checkpoint"], ["checkpoint"]]
    again = subprocess.run(
        [*command(path, killed), "--processes", "1"],
        check=True,
        timeout=HANGS,
        capture_output=True,
        text=True,
    )
    assert "8 of 8 runs are done" in again.stdout
    assert {file.stem for file in place.glob("pack-*.json")} == {job.name for job in jobs}, (
        "they were cut anew"
    )
    for job in jobs:
        assert [
            line.split()[0] for line in (place / f"{job.name}.states").read_text().splitlines()
        ] == ["1"], "before it was killed"
    assert results(killed) == results(whole)
