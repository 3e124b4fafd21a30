"""A study over two datasets from runs that were never trained to its report: groups, changes,
statistics, histories, histograms and examples.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from matplotlib import image

from callbacks.prediction_table import write_predictions
from core.errors import InputError
from experiment.build import build_data
from metrics import functional
from studies.plan.study import Run, Study
from studies.report.copy import write_copy
from studies.report.report import Report, build_report, write_files
from studies.tables.table_formats import NOTHING
from tests.finished import FINISHED
from tests.studies.report.report_checks import check_legible

DELIVERIES = ["MajorityVote", "SoftLabels"]
OF = {"groups": "dataset", "rows": "data.delivery", "reference": "MajorityVote"}
TABLE = {
    "name": "table3",
    **OF,
    "columns": ["accuracy", "kl"],
    "test": "t",
    "published": "epistemic.table3",
}
CHANGES = {
    "name": "table4",
    **OF,
    "level": "SoftLabels",
    "columns": ["kl", "entropy_pearson"],
    "published": "epistemic.table4",
}
STATISTICS = {
    "name": "table1",
    "title": "Statistics",
    "rows": "dataset",
    "published": "epistemic.table1",
}
EXAMPLES = {
    "name": "figure5",
    "kind": "examples",
    "rows": "data.delivery",
    "panels": "dataset",
    "number": 1,
}
HISTOGRAM = {"name": "figure3", "kind": "entropy_histogram", "panels": "dataset"}
HISTORY = {
    "name": "figure4",
    "kind": "history",
    "metric": "val/soft_nll",
    "lines": "data.delivery",
    "panels": "dataset",
}
REPORT: dict[str, Any] = {
    "scale": "nothing was trained",
    "labels": {"CIFAR10HHard": "CIFAR-10H-Hard"},
    "datasets": [STATISTICS],
    "tables": [TABLE],
    "changes": [CHANGES],
    "figures": [EXAMPLES, HISTOGRAM, HISTORY],
}
CONTENT = {
    "name": "both",
    "title": "Two datasets",
    "configs": ["configs/digits.yaml"],
    "grids": {
        "main": {
            "dataset": {
                "ChaosNLI": {"data": "tests.studies.report.item_datasets.Texts"},
                "CIFAR10HHard": {"data": "tests.studies.report.item_datasets.Pictures"},
            },
            "data.delivery": DELIVERIES,
            "seed_everything": [0, 1, 2],
        }
    },
}


def load(folder: Path, report: dict[str, Any]) -> Study:
    (folder / "both.yaml").write_text(
        yaml.safe_dump({**CONTENT, "report": report}, sort_keys=False)
    )
    return Study.load(folder / "both.yaml")


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory):
    runs = load(tmp_path_factory.mktemp("plan"), {}).runs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, "runs", lambda _: runs)
        yield runs


def finish(run: Run, folder: Path) -> None:
    """What a run of the first seed would leave: a soft model repeats people with some doubt, a hard
    one is too sure.
    """
    factors = run.factors["main"]
    data = build_data(run.config)
    assert data.corpus is not None
    annotator_probs = torch.from_numpy(data.corpus.votes.probs)
    soft = factors["data.delivery"] == "SoftLabels"
    sharp = annotator_probs.add(0.05).pow(1 if soft else 3)
    probs = sharp / sharp.sum(1, keepdim=True)
    folder.mkdir(parents=True)
    write_predictions(
        folder, probs, annotator_probs, torch.arange(len(annotator_probs)), data.corpus.splits
    )
    test = torch.from_numpy(data.rows("test"))
    metrics = {
        "kl": functional.kl_divergence(probs[test], annotator_probs[test]).item(),
        "accuracy": 0.5 + 0.01 * factors["seed_everything"],
    }
    metrics["entropy_pearson"] = functional.entropy_correlation(
        probs[test], annotator_probs[test], "pearson"
    ).item()
    about = {
        **FINISHED,
        "run": run.name,
        "dataset": factors["dataset"],
        "simulated_annotators": True,
        "versions": {"torch": "2"},
    }
    results = {**about, "metrics": metrics}
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "history.json").write_text(
        json.dumps(
            [{"epoch": epoch, "val/soft_nll": 1 / (1 + epoch) + 0.1 * soft} for epoch in range(5)]
        )
    )


@pytest.fixture(scope="module")
def both(planned, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    folder = tmp_path_factory.mktemp("both")
    study = load(folder, REPORT)
    for run in planned:
        finish(run, run.folder(folder / "runs"))
    report = build_report(study, folder / "runs", folder / "out")
    write_files(report, folder / "out")
    write_copy(report, folder / "copy")
    return folder, report


TABLES = ("table1", "table3", "table4", "ensembles")


def test_every_part_is_a_section_with_its_files(both):
    folder, _ = both
    out = folder / "out"
    assert {path.name for path in (out / "tables").iterdir()} == {
        f"{name}.{kind}" for name in TABLES for kind in ("md", "csv", "tex")
    }
    assert {path.name for path in (out / "figures").iterdir()} == {
        f"figure{n}.{kind}" for n in (3, 4, 5) for kind in ("png", "svg")
    }
    page = (out / "report.html").read_text()
    assert re.findall(r"<section><h2>(.*?)</h2>", page) == [
        "Statistics",
        "table3",
        "table4",
        "Ensembles over seeds",
        "figure5",
        "figure3",
        "figure4",
    ]
    for section in page.split("<section>")[1:]:
        assert "SIMULATED annotators" in section
        assert "REDUCED scale: nothing was trained." in section


def test_figures_of_items_stay_out_of_the_copy_and_everything_else_is_in_it(both):
    folder, _ = both
    assert {path.name for path in (folder / "copy" / "figures").iterdir()} == {
        "figure3.png",
        "figure4.png",
    }
    assert {path.name for path in (folder / "copy" / "tables").iterdir()} == {
        f"{name}.{kind}" for name in TABLES for kind in ("md", "csv")
    }
    readme = (folder / "copy" / "README.md").read_text()
    titles = re.findall(r"^## (.*)$", readme, re.M)
    assert titles[:4] == ["Statistics", "table3", "table4", "Ensembles over seeds"]
    assert titles[4:] == ["figure5", "figure3", "figure4"]
    assert "it shows items of the dataset" in readme.split("## figure5")[1].split("## figure3")[0]
    assert "costs" not in "".join(
        path.read_text() for path in (folder / "copy").rglob("*") if path.suffix in (".md", ".csv")
    )


def test_changes_are_those_of_the_groups_own_runs(both):
    _, report = both
    rows = {(row["metric"], row["group"]): row for row in report.changes[0].rows}
    for dataset in ("ChaosNLI", "CIFAR10HHard"):
        kl = {
            delivery: np.mean(
                [
                    record.metrics["kl"]
                    for record in report.collection.finished.values()
                    if (record.factors["dataset"], record.factors["data.delivery"])
                    == (dataset, delivery)
                ]
            )
            for delivery in DELIVERIES
        }
        label = report.section.label(dataset)
        assert rows["kl", label]["change_percent"] == pytest.approx(
            100 * (kl["SoftLabels"] / kl["MajorityVote"] - 1)
        )
    assert rows["kl", "average"]["change_percent"] == pytest.approx(
        (rows["kl", "ChaosNLI"]["change_percent"] + rows["kl", "CIFAR-10H-Hard"]["change_percent"])
        / 2
    )


def test_examples_show_the_test_items_on_which_people_disagree_most(both, planned):
    _, report = both
    figure = report.figures[0].figure
    assert figure is not None
    assert len(figure.axes) == 2 * 4
    for axes, run in zip(figure.axes[::4], (planned[0], planned[-1]), strict=True):
        data = build_data(
            {
                **run.config,
                "data": {
                    **run.config["data"],
                    "init_args": {**run.config["data"]["init_args"], "seed": 0},
                },
            }
        )
        assert data.corpus is not None
        result, test = re.search(r"^(.*), item (\d+)$", axes.get_title("left")), data.rows("test")
        assert result is not None
        assert result[1] == report.section.label(run.factors["main"]["dataset"])
        entropy = data.corpus.votes.entropy
        assert int(result[2]) == test[entropy[test].argmax()]


def test_figures_are_legible_and_nothing_is_clipped(both):
    folder, report = both
    for drawn in report.figures:
        check_legible(drawn.figure, may_touch=False)
        assert (
            image.imread(folder / "out" / "figures" / f"{drawn.spec.name}.png").shape[1] >= 5 * 200
        )


@pytest.mark.parametrize(
    ("report", "key", "allowed"),
    [
        ({"tables": [{**TABLE, "groups": "data"}]}, "report.tables[0].groups", "dataset"),
        (
            {"tables": [{**TABLE, "groups": "data.delivery"}]},
            "report.tables[0]",
            "data.delivery twice",
        ),
        (
            {"tables": [{**TABLE, "published": "basins.table2"}]},
            "report.tables[0].published",
            "it has no groups",
        ),
        (
            {"tables": [{k: v for k, v in TABLE.items() if k != "groups"}]},
            "report.tables[0].published",
            "it has groups",
        ),
        (
            {"changes": [{**CHANGES, "columns": "kl"}]},
            "report.changes[0].columns",
            "a list of metrics",
        ),
        ({"changes": [{**CHANGES, "columns": ["kll"]}]}, "report.changes[0].columns", "kl"),
        ({"changes": [{**CHANGES, "level": "Mixup"}]}, "report.changes[0].level", "SoftLabels"),
        (
            {"changes": [{**CHANGES, "level": "MajorityVote"}]},
            "report.changes[0].level",
            "between two levels",
        ),
        (
            {"changes": [{k: v for k, v in CHANGES.items() if k != "groups"}]},
            "report.changes[0].groups",
            "missing",
        ),
        ({"changes": [{**CHANGES, "name": "table3"}], "tables": [TABLE]}, "report", "table3 twice"),
        (
            {"datasets": [{**STATISTICS, "rows": "data.delivery"}]},
            "report.datasets[0].rows",
            "differ in their data",
        ),
        ({"datasets": [{"name": "t"}]}, "report.datasets[0].rows", "missing"),
        (
            {"figures": [{**HISTOGRAM, "panels": "data.delivery"}]},
            "report.figures[0].panels",
            "differ in their data",
        ),
        ({"figures": [{**HISTOGRAM, "bins": 0}]}, "report.figures[0].bins", "at least 1"),
        (
            {"figures": [{**EXAMPLES, "choose": "nice"}]},
            "report.figures[0].choose",
            "disagreement, same_class, spread",
        ),
        ({"figures": [{**EXAMPLES, "number": 0}]}, "report.figures[0].number", "at least 1"),
        (
            {"figures": [{k: v for k, v in EXAMPLES.items() if k != "panels"}]},
            "report.figures[0]",
            "average over dataset",
        ),
    ],
)
def test_a_mistake_names_file_key_and_choices(report, key, allowed, planned, tmp_path):
    study = load(tmp_path, report)
    with pytest.raises(InputError) as error:
        build_report(study, tmp_path / "runs")
    assert str(error.value).startswith(f"{study.path}: {key} ")
    assert allowed in str(error.value)


def test_without_runs_every_part_says_so(planned, tmp_path):
    report = build_report(load(tmp_path, REPORT), tmp_path / "runs")
    assert "ChaosNLI: none of its runs is finished." in report.datasets[0].caption
    assert {row["change_shown"] for row in report.changes[0].rows} == {NOTHING}
    assert [drawn.figure for drawn in report.figures] == [None] * 3
