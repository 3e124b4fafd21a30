"""Votes that are ratings: their scores join by an option that leaves runs what they are."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from callbacks.results import read_results
from cli import main
from core.errors import InputError
from datamodules import OwnVotes
from datamodules.custom.describe import describe
from datamodules.votes.agreement import krippendorff_alpha
from studies.evaluate import evaluate_study
from studies.launch.pack_job import run_pack
from studies.plan.study import Study

NAMES = ("rating_alpha", "rating_mae", "rps", "wasserstein")
ITEMS = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ratings from 1 to 4 of items by five people each, and their embeddings."""
    rng = np.random.default_rng(0)
    ratings = rng.binomial(3, rng.beta(0.3, 0.3, (ITEMS, 1)), (ITEMS, 5)) + 1
    rows = [f"{item},{rating}" for item, row in enumerate(ratings.tolist()) for rating in row]
    (tmp_path / "votes.csv").write_text("item,label\n" + "\n".join(rows) + "\n")
    np.save(tmp_path / "features.npy", rng.normal(size=(ITEMS, 5)).astype(np.float32))
    return tmp_path


def own_votes(folder: Path, **options) -> OwnVotes:
    files = {"votes": "votes.csv", "embeddings": "features.npy", "root": str(folder)}
    return OwnVotes(item="item", label="label", **files, **options)


def study_of(folder: Path, **options) -> Study:
    data = {"data": "OwnVotes", "data.root": str(folder), "data.votes": "votes.csv"}
    data |= {"data.item": "item", "data.label": "label", "data.embeddings": "features.npy"}
    data |= {"model.network": "MLPHead", "trainer.max_epochs": 1, "trainer.accelerator": "cpu"}
    content = {"name": "ratings", "configs": [], "grids": {"main": {"seed_everything": [0]}}}
    probes = {"trainer.callbacks": [{"class_path": "StratumScores"}]}
    content["options"] = data | probes | options
    (folder / "study.yaml").write_text(yaml.safe_dump(content))
    return Study.load(folder / "study.yaml")


def test_a_run_keeps_its_name_and_numbers_and_gains_the_scores_of_ratings(folder: Path):
    (run,) = study_of(folder).runs()
    assert not run_pack([run], folder / "runs", folder / "state", False, lambda share: None)
    path = folder / "runs" / run.name / "results.json"
    before = json.loads(path.read_text())
    forms = {f"{name}{form}" for name in NAMES for form in ("", "_hlv", "_nohlv")}
    assert not forms & before["metrics"].keys()
    # as an earlier version left it
    later = {name for name in before["metrics"] if name.startswith(("tvd", "aurc", "rank_cs"))}
    assert len(later) == 9
    rest = {name: value for name, value in before["metrics"].items() if name not in later}
    path.write_text(json.dumps(before | {"metrics": rest}))

    study = study_of(folder, **{"data.ordinal": True})
    assert [each.name for each in study.runs()] == [run.name]
    assert read_results(folder / "runs" / run.name)
    assert not evaluate_study(study, folder / "runs", "2026-01-02", lambda message: None)
    after = json.loads(path.read_text())
    assert set(after["evaluated"]) == forms | later
    assert {name: after["metrics"][name] for name in before["metrics"]} == before["metrics"]

    again = ["--trainer.default_root_dir", str(folder / "alone"), "--data.ordinal", "true"]
    again += ["--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"]
    options = ["--config", str(folder / "runs" / run.name / "config.yaml"), *again]
    main(["fit", *options])
    main(["test", *options])
    alone = read_results(folder / "alone" / run.name)
    assert alone
    assert alone["metrics"] == pytest.approx(after["metrics"], abs=1e-5)


def test_a_pack_of_ratings_has_their_scores(folder: Path):
    (run,) = study_of(folder, **{"data.ordinal": True}).runs()
    assert not run_pack([run], folder / "runs", folder / "state", False, lambda share: None)
    results = read_results(folder / "runs" / run.name)
    assert results
    assert results["metrics"].keys() >= set(NAMES)


def test_describe_shows_alpha_of_ratings(folder: Path):
    data = own_votes(folder, ordinal=True)
    counts = data.summarize().votes.counts
    assert counts is not None
    lines = {line[:16].strip(): line[16:] for line in describe(data)}
    assert lines["classes"] == "4, in this order: '1', '2', '3', '4'"
    nominal, interval = krippendorff_alpha(counts), krippendorff_alpha(counts, interval=True)
    assert lines["agreement"] == (
        f"Krippendorff's alpha {nominal:.3f} (nominal; 1 is perfect, 0 is chance), "
        f"{interval:.3f} as ratings"
    )
    plain = {line[:16].strip(): line[16:] for line in describe(own_votes(folder))}
    assert plain["agreement"] == lines["agreement"].rpartition(", ")[0]
    assert plain["classes"] == "4: '1', '2', '3', '4'"


@pytest.mark.parametrize("labels", [("low", "high", "middle"), ("1", "2", "4"), ("1", "2", "nan")])
def test_an_order_that_labels_do_not_tell_is_asked_for(folder: Path, labels: tuple[str, ...]):
    rows = [f"{item},{labels[item % 3]}" for item in range(ITEMS)]
    (folder / "votes.csv").write_text("item,label\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=r"data\.ordinal needs data\.classes, all labels of .*'"):
        own_votes(folder, ordinal=True).setup()
    data = own_votes(folder, ordinal=True, classes=labels)
    data.setup()
    assert data.class_names == labels
    own_votes(folder).setup()


def test_ratings_at_equal_distances_tell_their_order(folder: Path):
    rows = [f"{item},{(item % 4) / 2}" for item in range(ITEMS)]
    (folder / "votes.csv").write_text("item,label\n" + "\n".join(rows) + "\n")
    data = own_votes(folder, ordinal=True)
    data.setup()
    assert data.class_names == ("0.0", "0.5", "1.0", "1.5")
