"""Studies in two stages: who wins and why, what a selection waits for, every run once, and packs
that end as if each run had been alone.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from callbacks.history import read_history
from callbacks.records.training_record import TrainingRecord, write_training
from callbacks.results import read_failure, read_results, write_results
from cli import main
from core.errors import InputError
from studies import commands
from studies.analysis.collect import Collection
from studies.plan import selection
from studies.plan.second_stage import second_stage
from studies.plan.study import Run, Study
from studies.report.copy import write_copy
from studies.report.report import build_report, write_report
from studies.tables import selection_listing
from studies.tables.table_formats import NOTHING
from tests.finished import FINISHED

DIGITS = str(Path(__file__).parents[3] / "configs/digits.yaml")
LABELS = {
    "SoftLabels": {"data.delivery": "SoftLabels"},
    "MajorityVote": {"data.delivery": "MajorityVote", "model.monitor": "val/hard_nll"},
}
SEARCH = {
    "labels": LABELS,
    "model.optimizer.init_args.lr": [0.01, 0.001],
    "trainer.max_epochs": [2, 3],
}
BEST = {"from": "search", "for_each": ["labels"], "then": {"seed_everything": [0, 1, 2]}}
TABLE = {
    "name": "main",
    "grid": "best",
    "rows": "labels",
    "columns": ["kl"],
    "reference": "MajorityVote",
    "test": "t",
}


def write_study(
    folder: Path, grid: dict[str, Any] | None = None, best: dict[str, Any] | None = None, **content
) -> Path:
    path = folder / "study.yaml"
    whole = {
        "name": "two",
        "configs": [DIGITS],
        "grids": {"search": grid or SEARCH},
        "selections": {"best": {**BEST, **(best or {})}},
        **content,
    }
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    return path


def finish(run: Run, runs: Path, loss: float, **rest) -> None:
    write_results(
        run.folder(runs),
        {**FINISHED, "metrics": {"val_loss": loss, "kl": 0.5}, "val_is_test": False, **rest},
    )


def finish_all(study: Study, runs: Path, loss) -> list[Run]:
    cells = study.runs()
    for run in cells:
        finish(run, runs, loss(run.factors["search"]))
    return cells


def test_the_least_loss_wins_and_of_equals_the_first_in_the_order_of_the_yaml(tmp_path: Path):
    study = Study.load(write_study(tmp_path))

    def loss(levels: dict[str, Any]) -> float:
        return (
            0.3
            if (levels["labels"], levels["model.optimizer.init_args.lr"]) == ("MajorityVote", 0.001)
            else 0.4
        )

    stage = second_stage(study, finish_all(study, tmp_path, loss), tmp_path)
    chosen = {
        choice.levels["labels"]: choice.winner.factors["search"]
        for choice in stage.choices["best"]
        if choice.winner
    }
    assert list(chosen) == ["SoftLabels", "MajorityVote"]
    assert [
        (levels["model.optimizer.init_args.lr"], levels["trainer.max_epochs"])
        for levels in chosen.values()
    ] == [(0.01, 2), (0.001, 2)]
    assert len(stage.runs) == study.selections["best"].runs == 6
    for run in stage.runs:
        levels = run.factors["best"]
        assert levels.keys() == {"labels", "seed_everything"}
        assert (
            run.config["seed_everything"]
            == run.config["model"]["seed"]
            == levels["seed_everything"]
        )
        assert run.config["model"]["monitor"] == (
            "val/soft_nll" if levels["labels"] == "SoftLabels" else "val/hard_nll"
        )
        assert (
            run.config["model"]["optimizer"]["init_args"]["lr"]
            == chosen[levels["labels"]]["model.optimizer.init_args.lr"]
        )
    names = {run.name for run in study.runs()}
    # seed 0 is what the grid has run already
    assert sum(run.name in names for run in stage.runs) == 2


def test_neither_a_diverged_cell_nor_one_without_a_finite_loss_wins(tmp_path: Path):
    study = Study.load(write_study(tmp_path))
    for run in study.runs():
        levels = run.factors["search"]
        if levels["labels"] == "MajorityVote" or levels["model.optimizer.init_args.lr"] == 0.01:
            write_training(
                run.folder(tmp_path),
                TrainingRecord("diverged", 1, 2, 40, reason="its loss was nan"),
            )
        else:
            finish(run, tmp_path, math.nan if levels["trainer.max_epochs"] == 2 else 9.0)
    soft, hard = second_stage(study, study.runs(), tmp_path).choices["best"]
    assert soft.winner
    assert soft.winner.factors["search"]["trainer.max_epochs"] == 3
    assert (len(soft.diverged), soft.missing) == (3, [])
    assert hard.winner is None
    assert len(hard.diverged) == 4
    # the other combination goes on, with two more seeds
    assert len(Collection.of(study, tmp_path).planned) == 8 + 2


def test_a_grid_that_is_not_complete_is_not_chosen_from(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    study = Study.load(write_study(tmp_path, report={"tables": [TABLE]}))
    cells = finish_all(study, tmp_path, lambda levels: 0.4)
    (cells[0].folder(tmp_path) / "results.json").unlink()
    stage = second_stage(study, cells, tmp_path)
    assert stage.runs == []
    expected = (
        f"best is not decided: 1 of the 8 runs that it is chosen from are missing ({cells[0].name})"
    )
    assert stage.waiting("best") == expected
    main(["study", "plan", str(study.path), "--runs", str(tmp_path)])
    output = capsys.readouterr().out
    assert (
        "Then a second stage, best: the least val_loss of search for each labels; 2 winners x 3 "
        f"= 6 runs; {expected}." in output
    )
    report = build_report(study, tmp_path)
    assert expected in report.selections[0].caption[-1]
    assert report.selections[0].rows[0]["tried"] == "3 of 4"
    # this one is decided
    assert report.selections[0].rows[1]["model.optimizer.init_args.lr"] == "0.01"


def test_a_selection_by_the_test_set_is_refused(tmp_path: Path):
    study = Study.load(write_study(tmp_path))
    cells = study.runs()
    finish(cells[0], tmp_path, 0.4, val_is_test=True)
    with pytest.raises(
        InputError, match=r"selections\.best: digits-softlabels.* was validated on its test items"
    ):
        second_stage(study, cells, tmp_path)


def test_then_may_replace_what_was_chosen_by_and_where_narrows_it(tmp_path: Path):
    best = {
        "where": {"labels": "SoftLabels"},
        "then": {"data.delivery": ["SoftLabels", "Multipass"], "data.votes_per_item": [5, None]},
    }
    study = Study.load(write_study(tmp_path, best=best))
    stage = second_stage(
        study, finish_all(study, tmp_path, lambda levels: levels["trainer.max_epochs"]), tmp_path
    )
    assert study.levels("best") == {
        "labels": ["SoftLabels"],
        "data.delivery": ["SoftLabels", "Multipass"],
        "data.votes_per_item": [5, None],
    }
    made = [
        (
            run.config["data"]["init_args"]["delivery"]["class_path"],
            run.config["data"]["init_args"]["votes_per_item"],
        )
        for run in stage.runs
    ]
    assert made == [
        (f"datamodules.{name}", votes)
        for name in ("SoftLabels", "Multipass")
        for votes in (5, None)
    ]


def test_the_listing_has_the_papers_choice_below_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    values = {"lr": 0.00001, "epochs": 20, "batch_size": 8}
    facts = {
        "paper.table2_SoftLabels": {"source": "arXiv:0000", "where": "Table 2", "values": values}
    }
    monkeypatch.setattr(selection, "published", lambda kind: facts)
    monkeypatch.setattr(selection_listing, "published", lambda kind: facts)
    study = Study.load(
        write_study(tmp_path, best={"published": "paper.table2"}, report={"tables": [TABLE]})
    )
    finish_all(study, tmp_path, lambda levels: 0.25)
    (listing,) = build_report(study, tmp_path).selections
    assert list(listing.shown.values()) == [
        "labels",
        "choice",
        "lr",
        "max epochs",
        "Validation loss",
        "cells tried",
    ]
    shown = [listing.cells(row) for row in listing.rows]
    assert shown == [
        ["SoftLabels", "ours", "0.01", "2", "0.2500", "4 of 4"],
        ["SoftLabels", "paper", "0.00001", "20", NOTHING, NOTHING],
        ["MajorityVote", "ours", "0.01", "2", "0.2500", "4 of 4"],
    ]
    assert "Choices of the paper: arXiv:0000, Table 2." in listing.caption


@pytest.mark.parametrize(
    ("best", "message"),
    [
        (
            {"from": "serch"},
            r"study.yaml: selections.best.from is serch; it must be a grid: search",
        ),
        (
            {"for_each": ["delivery"]},
            r"selections.best.for_each is delivery; it must be a factor of the grid search",
        ),
        ({"by": "soft_nll"}, r"selections.best.by is soft_nll; it must be one of val_loss"),
        ({"then": {}}, r"selections.best.then must have factors with levels"),
        ({"then": {"seed_everything": []}}, r"selections.best.then.seed_everything has no levels"),
        ({"then": {"labels": ["SoftLabels"]}}, r"selections.best.then.labels is in for_each, too"),
        (
            {"where": {"labels": "Soft"}},
            r"selections.best.where.labels is Soft; it must be a level of labels",
        ),
        (
            {"published": "nobody.table9"},
            r"selections.best.published is nobody.table9; there are no facts",
        ),
        ({"best": 1}, r"selections.best.best is not an option"),
    ],
)
def test_mistakes_in_a_selection_are_named(tmp_path: Path, best: dict, message: str):
    with pytest.raises(InputError, match=message):
        Study.load(write_study(tmp_path, best=best))


def test_the_cluster_gets_one_array_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    submitted = []

    def instead_of_slurm(study, cut, runs, options, console) -> list[str]:
        submitted.append([run for job in cut() for run in job.runs])
        for run in submitted[-1]:
            finish(run, runs, 0.4)
        return []

    monkeypatch.setattr(commands, "launch_on_slurm", instead_of_slurm)
    main(
        ["study", "run", str(write_study(tmp_path)), "--runs", str(tmp_path), "--launcher", "slurm"]
    )
    assert [len(runs) for runs in submitted] == [8, 4]
    assert {run.config["seed_everything"] for run in submitted[1]} == {1, 2}
    assert "12 of 12 runs are done" in capsys.readouterr().out


CALLBACKS = [
    {"class_path": "EpochScores"},
    {
        "class_path": "EarlyStopping",
        "init_args": {"monitor": "val/loss", "patience": 2, "min_delta": 0.02},
    },
]
PLATEAU = {
    "class_path": "torch.optim.lr_scheduler.ReduceLROnPlateau",
    "init_args": {"factor": 0.1, "patience": 0, "threshold": 0.3},
}
OPTIONS = {"trainer.callbacks": CALLBACKS, "model.scheduler": PLATEAU, "model.network": "MLPHead"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, forked_jobs: None) -> Path:
    """Both stages of a small study on real digits; a third of its cells diverge."""
    folder = tmp_path_factory.mktemp("two")
    grid = {
        "labels": LABELS,
        "model.optimizer.init_args.lr": [1e30, 0.01, 0.001],
        "trainer.max_epochs": [2, 9],
    }
    report = {
        "tables": [TABLE],
        "figures": [
            {
                "name": "curve",
                "grid": "best",
                "kind": "history",
                "metric": "val/loss",
                "lines": "labels",
            }
        ],
    }
    study = write_study(
        folder, grid, {"then": {"seed_everything": [0, 1]}}, options=OPTIONS, report=report
    )
    with pytest.raises(SystemExit) as exit:
        main(["study", "run", str(study), "--runs", str(folder / "runs"), "--processes", "1"])
    assert exit.value.code == 3  # because some diverged
    return folder


def test_both_stages_end_in_one_command_and_nothing_is_done_twice(
    finished: Path, capsys: pytest.CaptureFixture
):
    runs, study = finished / "runs", Study.load(finished / "study.yaml")
    collection = Collection.of(study, runs)
    assert len(collection.planned) == 12 + 2
    assert len(collection.missing) == 4
    assert all(
        "its loss was nan" in (read_failure(runs / name) or "") for name in collection.missing
    )
    for choice in collection.stage.choices["best"]:
        cells = [
            record
            for record in collection.records("search")
            if record.factors["labels"] == choice.levels["labels"]
        ]
        assert choice.loss == min(record.metrics["val_loss"] for record in cells)
        assert len(choice.diverged) == 2
    assert len(collection.records("best")) == 4
    before = {
        path: path.stat().st_mtime_ns
        for path in runs.rglob("*")
        if path.is_file() and path.name != ".lock"
    }
    with pytest.raises(SystemExit):
        main(
            ["study", "run", str(finished / "study.yaml"), "--runs", str(runs), "--processes", "1"]
        )
    assert {path: path.stat().st_mtime_ns for path in before} == before
    output = capsys.readouterr().out
    assert "10 of 14 runs are done" in output
    assert f"to try it again, delete {runs}" in output.replace("\n", "")


def test_a_packed_run_has_the_history_and_the_checkpoint_of_its_solo_run(
    finished: Path, tmp_path: Path
):
    """Early stopping, plateau and best checkpoint by the loss against the majority; scores on all
    three splits.
    """
    words = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in OPTIONS.items()
    }
    options = [
        "--config",
        DIGITS,
        *(word for name, value in words.items() for word in (f"--{name}", value)),
    ]
    options += [
        "--data.delivery",
        "MajorityVote",
        "--model.monitor",
        "val/hard_nll",
        "--trainer.max_epochs",
        "9",
    ]
    options += [
        "--model.optimizer.init_args.lr",
        "0.01",
        "--trainer.enable_progress_bar",
        "false",
        "--trainer.accelerator",
        "cpu",
    ]
    alone = main(["fit", *options, "--trainer.default_root_dir", str(tmp_path)]).run_dir
    main(["test", *options, "--trainer.default_root_dir", str(tmp_path)])
    mine, theirs = read_history(finished / "runs" / alone.name), read_history(alone)
    assert mine
    assert theirs
    assert len(mine) == len(theirs) < 9  # it stopped early
    assert len({row["lr"] for row in mine}) > 1  # and the plateau was seen
    for row, other in zip(mine, theirs, strict=True):
        assert {
            "train/kl",
            "train/accuracy",
            "val/hard_nll",
            "test/soft_nll",
            "test/hard_nll",
        } <= row.keys()
        assert row == pytest.approx(other, abs=2e-4)
    results = read_results(finished / "runs" / alone.name)
    assert results
    assert results["metrics"]["val_loss"] == min(row["val/hard_nll"] for row in mine)
    assert results["metrics"] == pytest.approx((read_results(alone) or {})["metrics"], abs=1e-3)


def test_the_report_shows_the_winners_and_their_seeds(finished: Path, tmp_path: Path):
    study = Study.load(finished / "study.yaml")
    out = tmp_path / "report"
    page = write_report(study, finished / "runs", out).read_text()
    assert "Options chosen by validation: best" in page
    assert {path.name for path in (out / "tables").iterdir()} == {
        f"{name}.{kind}" for name in ("main", "best-options") for kind in ("md", "csv", "tex")
    }
    assert "6 of 6, 2 diverged" in (out / "tables/best-options.md").read_text()
    report = build_report(study, finished / "runs")
    assert report.figures[0].figure is not None
    assert (
        "## Options chosen by validation: best" in write_copy(report, tmp_path / "copy").read_text()
    )
