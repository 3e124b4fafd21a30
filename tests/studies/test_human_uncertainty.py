"""The study of human uncertainty end to end, tiny: every table and figure is written, and maps and
mode shifts are those of the runs' own files.
"""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from scipy.stats import spearmanr

from callbacks.cartography.records import read_epochs, record_path
from datamodules import SoftDigits
from metrics.cartography import TARGET
from studies.plan.packing import jobs_of
from studies.plan.study import Study
from studies.report.copy import write_copy
from studies.report.report import Report, build_report, write_files
from tests.conftest import trust_mnist, write_mnist
from tests.studies.report.report_checks import check_legible, not_tested

STUDY = Path(__file__).parents[2] / "configs/studies/human_uncertainty.yaml"
SOURCES, TARGETS = ("mnist", "interpolated"), ("original", "majority", "equal", "uncertainty")
SEEDS = [0, 1]


def tiny(folder: Path, root: Path) -> Study:
    """The study with one network, the fastest, few epochs and seeds, and without the parts that are
    about the other networks.
    """
    content = yaml.safe_load(STUDY.read_text())
    network = {"LeNet": {"model.network": "SimpleFFN"}}
    for grid in ("performance", "dynamics"):
        content["grids"][grid] |= {"network": network, "seed_everything": SEEDS}
    content["grids"]["dynamics"]["probes"]["dynamics"]["trainer.max_epochs"] = 6
    sizes = {
        number: {
            "data": {
                "class_path": "MNISTSubset",
                "init_args": {"per_class": number // 10, "val_items": 40},
            }
        }
        for number in (50, 150)
    }
    recipe = {"LeNet": {"model.network": "SimpleFFN", "trainer.max_epochs": 1}}
    content["grids"]["corpus_size"] = {
        "recipe": recipe,
        "items_per_class": sizes,
        "seed_everything": SEEDS,
    }
    for part in ("figures", "claims"):
        content["report"][part] = [
            entry
            for entry in content["report"][part]
            if entry.get("where", {}).get("network", "LeNet") == "LeNet"
        ]
    content |= {
        "name": "tiny",
        "options": {"data.root": str(root), "trainer.max_epochs": 3, "trainer.accelerator": "cpu"},
    }
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return Study.load(path)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory, fewer_pictures: None):
    from studies.launch.pack_job import run_pack

    folder = tmp_path_factory.mktemp("human")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(STUDY.parents[2])
        root = write_mnist(folder / "data")
        trust_mnist(patch, root)
        study = tiny(folder, root)
        for job in jobs_of(study.runs(), processes=1):
            assert job.packed
            assert (
                run_pack(
                    job.runs,
                    folder / "runs",
                    folder / "state.pt",
                    study.predict,
                    lambda share: None,
                )
                == {}
            )
        report = build_report(study, folder / "runs", folder / "out")
        write_files(report, folder / "out")
        yield folder, report


def records_of(report: Report, grid: str, **levels) -> list:
    return [
        record
        for record in report.collection.records(grid)
        if all(record.factors[name] == level for name, level in levels.items())
    ]


def test_every_table_and_figure_of_the_paper_is_written(done):
    folder, report = done
    wanted = report.study.report
    names = {
        entry["name"] for part in ("datasets", "tables", "mode_shifts") for entry in wanted[part]
    } | {"claims"}
    assert names <= {path.stem for path in (folder / "out/tables").glob("*.csv")}
    assert {path.stem for path in (folder / "out/figures").glob("*.png")} == {
        entry["name"] for entry in wanted["figures"]
    }
    # nobody disputes these small digits
    assert not_tested(report) == {
        "kl-mnist",
        "kl-original-mnist",
        "brier-mnist",
        "confidence-mnist",
        "js-mnist",
        "synthetic-own",  # so little is learned here that its skill cannot be told
    }
    copy = write_copy(report, folder / "copy").read_text()
    assert "SIMULATED crowd" in copy.splitlines()[2]
    assert "published 96.62" in copy  # beside ours
    assert not list((folder / "copy/figures").glob("samples*"))
    for drawn in report.figures:
        check_legible(drawn.figure)


@pytest.mark.parametrize("targets", TARGETS)
def test_a_map_of_several_seeds_is_that_of_all_their_last_epochs(done, targets: str):
    folder, report = done
    (listing,) = [
        listing for listing in report.listings if listing.name == "map_interpolated_lenet-maps"
    ]
    (row,) = [
        row
        for row in listing.rows
        if (row["target"], row["stratum"]) == (report.section.label(targets), "all")
    ]
    runs = records_of(
        report, "dynamics", source="interpolated", network="LeNet", **{"data.targets": targets}
    )
    assert len(runs) == len(SEEDS)
    data = SoftDigits(root=str(folder / "data"), source="interpolated")
    data.setup()
    rows = np.sort(data.rows("train"))
    message = np.concatenate(
        [read_epochs(record_path(run.folder, "train"), len(rows))[-5:, TARGET] for run in runs]
    ).astype(float)
    assert message.shape == (5 * len(SEEDS), len(rows))
    assert row["confidence"] == pytest.approx(message.mean(), abs=1e-9)
    assert row["variability"] == pytest.approx(message.std(0).mean(), abs=1e-9)
    by_seed = message.reshape(len(SEEDS), 5, -1).mean(1)
    assert row["between"] == pytest.approx(
        (by_seed.std(0) ** 2).mean() / (message.std(0) ** 2).mean(), abs=1e-6
    )
    uncertainty = data.table.human_uncert_mean[rows]
    assert row["confidence_and_mean_uncertainty"] == pytest.approx(
        spearmanr(message.mean(0), uncertainty).statistic, abs=1e-6
    )


@pytest.mark.parametrize("source", SOURCES)
def test_mode_shifts_are_counted_on_the_runs_own_predictions(done, source: str):
    folder, report = done
    (listing,) = [listing for listing in report.changes if listing.name == f"shift_{source}"]
    data = SoftDigits(root=str(folder / "data"), source=source)
    data.setup()
    test = np.sort(data.rows("test"))
    annotator_probs, before, after = (
        data.labels(name).majority[test] for name in ("uncertainty", "original", "majority")
    )
    parts = []
    for seed in SEEDS:
        right = {}
        for targets in ("original", "majority"):
            (run,) = records_of(
                report,
                "performance",
                source=source,
                network="LeNet",
                seed_everything=seed,
                **{"data.targets": targets},
            )
            table = pq.read_table(
                run.folder / "predictions.parquet", filters=[("split", "=", "test")]
            ).sort_by("index")
            probs = np.stack([table[f"model_{k}"].to_numpy() for k in range(11)], 1)
            right[targets] = (probs.argmax(1) == annotator_probs).astype(float)
        gain = right["majority"] - right["original"]
        parts.append(
            [gain.mean(), (gain * (before != after)).mean(), (gain * (before == after)).mean()]
        )
    (row,) = [row for row in listing.rows if (row["group"], row["level"]) == ("LeNet", "majority")]
    assert [row[f"{part}_mean"] for part in ("all", "changed", "kept")] == pytest.approx(
        list(100 * np.mean(parts, 0)), abs=1e-9
    )
    assert row["items_changed"] == (before != after).sum()
    assert row["all_mean"] == pytest.approx(row["changed_mean"] + row["kept_mean"])


def test_the_table_of_datasets_says_what_the_paper_says_of_them(done):
    folder, report = done
    for row, source in zip(report.datasets[0].rows, SOURCES, strict=True):
        data = SoftDigits(root=str(folder / "data"), source=source)
        data.setup()
        one_hot = data.labels("uncertainty").probs.max(1) == 1
        assert row["NoHLV (%)"] == pytest.approx(100 * one_hot.mean())
        assert row["unsure proportion"] == pytest.approx(data.table.pct_ann_unsure.mean())
    assert report.datasets[0].rows[0]["published_NaN (%)"] == 0.624


def test_the_papers_recipe(monkeypatch: pytest.MonkeyPatch):
    """288 trainings of three networks by Adam in batches of 64: early stopping with plateaus within
    60 epochs, or 40 epochs at one rate.
    """
    monkeypatch.chdir(STUDY.parents[2])
    runs = [
        run for run in Study.load(STUDY).runs() if {"performance", "dynamics"} & set(run.factors)
    ]
    assert len(runs) == 3 * 4 * 6 * 2 * 2
    for run in runs:
        model, trainer = run.config["model"], run.config["trainer"]
        assert model["optimizer"]["class_path"].endswith("Adam")
        assert run.config["data"]["init_args"]["batch_size"] == 64
        names = [callback["class_path"].rsplit(".")[-1] for callback in trainer["callbacks"]]
        if "performance" in run.factors:
            assert trainer["max_epochs"] == 60
            assert model["scheduler"]["class_path"].endswith("ReduceLROnPlateau")
            assert "EarlyStopping" in names
        else:
            assert (trainer["max_epochs"], model["scheduler"]) == (40, None)
            assert "EarlyStopping" not in names
    assert {run.config["seed_everything"] for run in runs} == set(range(6))
    assert {run.config["model"]["network"]["class_path"].rsplit(".")[-1] for run in runs} == {
        "SimpleFFN",
        "DeeperFFN",
        "LeNet",
    }
