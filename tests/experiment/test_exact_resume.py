"""Killed with SIGKILL and started again with the same command, runs end with the same bits:
weights, optimizer, metrics, histories, records.
"""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

from callbacks.history import read_history
from callbacks.results import read_results
from experiment.configuration import resolve
from experiment.identity import run_name
from studies.launch.job import write_job
from studies.plan.packing import Job
from studies.plan.study import Run
from tests import processes
from tests.waiting import HANGS

ROOT = Path(__file__).parents[2]
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--data.batch_size", "128",
    "--model.network", "MLPHead",
    "--model.network.dropout", "0.2",
    "--model.optimizer.lr", "0.003",
    "--model.scheduler", "torch.optim.lr_scheduler.ReduceLROnPlateau",
    "--model.scheduler.patience", "1",
    "--model.scheduler.factor", "0.6",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip
DELIVERIES = ("SoftLabels", "StochasticLabelSampling", "Multipass", "Mixup")
Entry = dict[str, Any]


def options(
    delivery: str, epochs: int, patience: int, seed: int = 0, probes: bool = True
) -> list[str]:
    rule = [
        "--trainer.callbacks+=EarlyStopping",
        "--trainer.callbacks.monitor",
        "val/loss",
        "--trainer.callbacks.patience",
        str(patience),
    ]
    looks = (
        ["--trainer.callbacks+=DataCartography", "--trainer.callbacks+=TrainingDynamics"]
        if probes
        else []
    )
    return [
        *OPTIONS,
        *rule,
        *looks,
        "--trainer.max_epochs",
        str(epochs),
        "--data.delivery",
        delivery,
        "--seed_everything",
        str(seed),
    ]


def alone(
    folder: Path,
    delivery: str,
    moments: list,
    commands: tuple[str, ...],
    more: list[str] | None = None,
    **length: int,
) -> Entry:
    place = ["--trainer.default_root_dir", str(folder)]
    words = [[command, *options(delivery, **length), *(more or []), *place] for command in commands]
    return {"commands": words, "folder": str(folder), "log": f"{folder}.log", "moments": moments}


def packed(
    folder: Path, moments: list, seeds: tuple[int, ...], probes: bool, **length: int
) -> Entry:
    """One pack of all deliveries."""
    configs = [
        resolve(options(delivery, seed=seed, probes=probes, **length))
        for delivery in DELIVERIES
        for seed in seeds
    ]
    job = Job([Run(run_name(config), config, {}) for config in configs], packed=True, why="")
    folder.mkdir()
    path = write_job(job, folder, folder, predict=False, threads=1)
    return {
        "job": str(path),
        "folder": str(folder),
        "log": f"{folder}.log",
        "moments": [_of_pack(moment, path) for moment in moments],
    }


def _of_pack(moment: tuple, job: Path) -> list:
    """STATE in a moment is the file of a pack's saved state, whose name follows from its runs."""
    return json.loads(json.dumps(moment).replace("STATE", job.stem))


def carry_out(folder: Path, *entries: Entry) -> list[list[str]]:
    """Start and kill; returns the phases in which each entry was hit."""
    (folder / "plan.json").write_text(json.dumps(entries))
    done = processes.run(
        [folder / "plan.json"],
        check=True,
        timeout=len(entries) * 25 * HANGS,  # it gives as much to each start of a run
        script="tests/experiment/killed_runs.py",
    )
    print(done.stdout)
    return [json.loads(line)["killed in"] for line in done.stdout.splitlines()]


def assert_same_end(whole: Path, killed: Path) -> None:
    """Every file that a run leaves behind, but for TensorBoard's, where what is done twice is
    written twice, and figures of the last validation.
    """
    runs = sorted(path.parent for path in whole.glob("*/history.json"))
    assert runs
    for run in runs:
        other = killed / run.name
        mine, theirs = (
            {**(read_results(folder) or {}), "checkpoint": ""} for folder in (run, other)
        )
        assert mine == theirs
        assert (other / "history.json").read_bytes() == (run / "history.json").read_bytes()
        for record in run.glob("*.f32"):
            assert (other / record.name).read_bytes() == record.read_bytes()
        for path in sorted((run / "checkpoints").glob("*.ckpt")):
            assert differences(content(run, path.name), content(other, path.name), path.name) == []
        assert file_names(run) == file_names(other)


def file_names(run: Path) -> set[Path]:
    names = (path.relative_to(run) for path in run.rglob("*"))
    return {
        name
        for name in names
        if ".tfevents." not in name.name
        and name.suffix != ".damaged"
        and name.parts[0] != "figures"
    }


def content(run: Path, name: str) -> Any:
    """Of a checkpoint, without its place and without what Lightning counts for itself alone: how
    often it asked schedules to step, the score of the last save.
    """
    checkpoint = torch.load(run / "checkpoints" / name, weights_only=True)
    checkpoint.get("loops", {}).get("fit_loop", {}).pop("epoch_loop.scheduler_progress", None)
    for state in checkpoint.get("callbacks", {}).values():
        state.pop("current_score", None)
    return without(str(run.resolve()), checkpoint)


def without(place: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {without(place, key): without(place, part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [without(place, part) for part in value]
    return value.replace(place, "") if isinstance(value, str) else value


def differences(mine: Any, theirs: Any, name: str = "") -> list[str]:
    """Where two nested values differ, by as much as a bit."""
    if isinstance(mine, torch.Tensor) and isinstance(theirs, torch.Tensor):
        return [] if mine.dtype == theirs.dtype and torch.equal(mine, theirs) else [name]
    if isinstance(mine, list) and isinstance(theirs, list):
        mine, theirs = dict(enumerate(mine)), dict(enumerate(theirs))
    if isinstance(mine, dict) and isinstance(theirs, dict):
        result = [f"{name}/{key}" for key in mine.keys() ^ theirs.keys()]
        return result + [
            part
            for key in mine.keys() & theirs.keys()
            for part in differences(mine[key], theirs[key], f"{name}/{key}")
        ]
    return [] if mine == theirs else [f"{name}: {mine} or {theirs}"]


def epochs_of(states: Path) -> dict[str, set[str]]:
    """Of each epoch, the digests of a pack's whole state (weights, moments, schedules, histories)
    as often as it was done.
    """
    result: dict[str, set[str]] = {}
    for line in states.read_text().splitlines():
        epoch, digest = line.split()
        result.setdefault(epoch, set()).add(digest)
    return result


def test_killed_at_each_kind_of_moment_it_ends_with_the_same_bits(tmp_path: Path):
    """Alone and in a pack: in mid-epoch, in validation, with half a checkpoint written, between two
    files that belong together, and with a damaged file.
    """
    moments = [
        ("training", 3),
        ("replaced best.ckpt", 1),  # there is no last.ckpt yet
        ("fsync last.ckpt", 2, None, ("last.ckpt", "cut", 0.7)),  # nor one before it
        ("replace last.ckpt", 2),  # the one before it was just moved to last-before.ckpt
        # which is before the epoch's checkpoints
        (
            "replaced history.json",
            2,
            None,
            ("last.ckpt", "flip", 0.5),
        ),
    ]
    of_pack = [
        ("training", 25),
        ("fsync STATE.pt", 1),
        ("replace STATE.pt", 1),
        ("validation", 2, None, ("STATE.pt", "cut", 0.9)),
        ("results", 2),
    ]
    length = {"epochs": 8, "patience": 2}
    whole, killed, whole_pack, killed_pack = (
        tmp_path / name for name in ("whole", "killed", "whole_pack", "killed_pack")
    )
    left = (
        killed / run_name(resolve(options("StochasticLabelSampling", **length))) / "hpc_ckpt_1.ckpt"
    )
    left.parent.mkdir(parents=True)
    left.write_text(
        "of mid-epoch, as Lightning writes when Slurm sends a signal: not to be continued from"
    )
    phases = carry_out(
        tmp_path,
        alone(whole, "StochasticLabelSampling", [], ("fit",), **length),
        # the second time there is nothing left to train
        alone(killed, "StochasticLabelSampling", moments, ("fit", "fit"), **length),
        packed(whole_pack, [], seeds=(0,), probes=False, **length),
        packed(killed_pack, of_pack, seeds=(0,), probes=False, **length),
    )
    assert phases[1::2] == [
        ["training", "checkpoint", "checkpoint", "checkpoint", "validation"],
        ["training", "checkpoint", "checkpoint", "validation", "results"],
    ]
    assert_same_end(whole, killed)
    assert_same_end(whole_pack, killed_pack)
    messages = [
        line for line in Path(f"{killed}.log").read_text().splitlines() if "cannot be read" in line
    ]
    assert [line.split("/")[-1] for line in messages] == [
        "last.ckpt cannot be read (cut short or altered); starting from the beginning.",
        "last.ckpt cannot be read (cut short or altered); continuing from last-before.ckpt.",
    ]
    assert len(read_history(next(killed.iterdir())) or []) < 8  # early stopping had its say


@pytest.mark.long
@pytest.mark.parametrize("seed", [0])
def test_killed_at_twenty_random_moments_it_ends_with_the_same_bits(seed: int, tmp_path: Path):
    """Each delivery alone, and all of them in a pack, killed twenty times each from outside, now
    and then with a checkpoint damaged as well.
    """
    chance = random.Random(seed)
    length = {"epochs": 200, "patience": 12}
    entries = []
    for delivery in DELIVERIES:
        moments = [random_moment(chance, "last.ckpt") for _ in range(20)]
        entries.append(alone(tmp_path / delivery, delivery, [], ("fit", "test"), **length))
        entries.append(
            alone(
                tmp_path / f"{delivery}-killed", delivery, moments, ("fit", "fit", "test"), **length
            )
        )
    moments = [random_moment(chance, "STATE.pt") for _ in range(20)]
    entries += [
        packed(tmp_path / "pack", [], (0, 1), True, **length),
        packed(tmp_path / "pack-killed", moments, (0, 1), True, **length),
    ]
    phases = carry_out(tmp_path, *entries)
    for whole, killed, hit in zip(entries[::2], entries[1::2], phases[1::2], strict=True):
        assert len(hit) == 20
        assert "ended" not in hit
        assert_same_end(Path(whole["folder"]), Path(killed["folder"]))
    whole, killed = (epochs_of(Path(entry["job"]).with_suffix(".states")) for entry in entries[-2:])
    assert whole == killed
    hits = Counter(phase for hit in phases for phase in hit)
    print(
        f"seed {seed}: killed in {dict(hits)}; {sum(len(done) for done in killed.values())} "
        "epochs of the pack"
    )
    assert {"training", "validation", "checkpoint"} <= hits.keys()


def random_moment(chance: random.Random, file: str) -> tuple:
    """Somewhere within the next three epochs or so, or before the first of them."""
    event, most, delay = chance.choice(
        [
            ("start", 1, 1.0),
            ("training", 60, 0.005),
            ("training", 60, 0.005),
            ("validation", 3, 0.01),
            ("checkpoint", 5, 0.004),
        ]
    )
    harm = (
        chance.choice([file, file.replace(".", "-before.")]),
        chance.choice(["cut", "flip"]),
        chance.random(),
    )
    return (
        event,
        chance.randint(1, most),
        chance.uniform(0, delay),
        harm if chance.random() < 0.2 else None,
    )


@pytest.mark.long
def test_killed_under_other_rhythms_it_ends_with_the_same_bits(tmp_path: Path):
    """Where validation does not come once at the end of each epoch, or an epoch is cut off by the
    last step.
    """
    cosine = ["--model.scheduler", "CosineToEnd"]
    rhythms = {
        "every second epoch": ["--trainer.check_val_every_n_epoch", "2", *cosine],
        "twice an epoch": ["--trainer.val_check_interval", "0.5"],
        "accumulated": ["--trainer.accumulate_grad_batches", "3"],
        "a number of steps": ["--trainer.max_steps", "50"],
    }
    moments = [("training", 30), ("checkpoint", 2), ("training", 15), ("training", 25)]
    entries = []
    for name, more in rhythms.items():
        for folder, its_moments in ((tmp_path / name, []), (tmp_path / f"{name}, killed", moments)):
            entries.append(
                alone(folder, "Multipass", its_moments, ("fit", "fit"), more, epochs=6, patience=30)
            )
    phases = carry_out(tmp_path, *entries)
    assert phases[1::2] == [["training", "checkpoint", "training", "training"]] * len(rhythms)
    for whole, killed in zip(entries[::2], entries[1::2], strict=True):
        assert_same_end(Path(whole["folder"]), Path(killed["folder"]))
