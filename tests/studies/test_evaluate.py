"""`study evaluate`: a score or probe that came after the training is added from checkpoints, and no
number is replaced.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from callbacks.records.results_file import with_earlier
from callbacks.results import read_results
from cli import main
from core.atomic_io import SUFFIX
from core.errors import InputError
from core.interruption import Interrupted
from experiment.steps_left import steps_left
from studies import evaluate_run as module
from studies.evaluate import evaluate_study
from studies.launch.pack_job import run_pack
from studies.plan.study import Study
from tests import processes
from tests.own_score import ROOT, documented_metric, own_score
from tests.studies.plan.test_known_data import own, write_votes

__all__ = ["own"]  # a fixture

DAY = "2026-01-02"
ALONE = "trainer.gradient_clip_val"  # clipping has no packed form
STRATA = {"class_path": "StratumScores"}
FORMS = ["unchosen", "unchosen_hlv", "unchosen_nohlv"]


def write_study(folder: Path, probes: list[dict[str, Any]], **content: Any) -> Study:
    path = folder / "study.yaml"
    grids = {
        "packed": {"data.delivery": ["SoftLabels", "Multipass"], "seed_everything": [0, 1]},
        "alone": {ALONE: [1000.0]},
    }
    options = {"trainer.max_epochs": 2, "trainer.callbacks": probes}
    study = {"name": "small", "configs": [str(ROOT / "configs/digits.yaml")], "grids": grids}
    path.write_text(yaml.safe_dump(study | {"options": options, "predict": True} | content))
    return Study.load(path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four runs of a pack and one that went alone, from before anybody thought of the metric."""
    folder = tmp_path_factory.mktemp("trained")
    study = write_study(folder, [STRATA])
    words = ["study", "run", str(study.path), "--runs", str(folder / "runs")]
    processes.run(words, check=True)
    return folder


@pytest.fixture
def runs(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained / "runs", tmp_path / "runs")


def evaluate(study: Study, runs: Path, day: str = DAY) -> tuple[list[str], dict[str, str]]:
    messages: list[str] = []
    return messages, evaluate_study(study, runs, day, messages.append)


def results(runs: Path) -> dict[str, dict[str, Any]]:
    return {path.parent.name: json.loads(path.read_text()) for path in runs.glob("*/results.json")}


def unchosen_by_hand(run: Path) -> dict[str, float]:
    """From the predictions that the run left when it was trained."""
    table = pq.read_table(run / "predictions.parquet", filters=[("split", "=", "test")])
    probs, said = (
        np.stack([table[f"{who}_{k}"].to_numpy() for k in range(10)], 1)
        for who in ("model", "annotators")
    )
    wrong = said[np.arange(len(said)), probs.argmax(1)] == 0
    unanimous = said.max(1) == 1
    return dict(zip(FORMS, (wrong.mean(), wrong[~unanimous].mean(), wrong[unanimous].mean())))  # noqa: B905


def test_a_new_score_is_added_to_runs_alone_and_packed_with_its_strata(
    trained: Path, runs: Path, tmp_path: Path
):
    study, before = Study.load(trained / "study.yaml"), results(runs)
    assert len(before) == 5
    messages, failures = evaluate(study, runs)
    assert not failures
    assert results(runs) == before  # nothing was lacking
    assert "5 of 5 runs are finished; 0 of them were scored anew, and 5 lacked" in messages[-1]
    with own_score(tmp_path / "own", documented_metric()):
        messages, failures = evaluate(study, runs)
        assert not failures
        assert messages[-1] == f"Added: {', '.join(FORMS)}."
        after = results(runs)
        for name, result in after.items():
            assert {key: result["metrics"].pop(key) for key in FORMS} == pytest.approx(
                unchosen_by_hand(runs / name), abs=1e-9
            )
            assert result.pop("evaluated").keys() == set(FORMS)
            assert {name for name in FORMS if result["worth"].pop(name)["ceiling"] >= 0} == set(
                FORMS
            )
        assert after == before
        files = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
        evaluate(study, runs, "2026-03-04")
        assert files == {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    origin = results(runs)[next(iter(before))]["evaluated"]["unchosen"]
    assert origin["date"] == DAY
    assert set(origin) == {"version", "date"}
    assert read_results(runs / next(iter(before)))  # and other versions' readers take it


def test_runs_of_earlier_versions_get_what_their_scores_are_worth(trained: Path, runs: Path):
    """From the votes alone: no checkpoint is needed."""
    study, before = Study.load(trained / "study.yaml"), results(runs)
    for name, result in before.items():
        earlier = {key: value for key, value in result.items() if key != "worth"}
        (runs / name / "results.json").write_text(json.dumps(earlier))
        (runs / name / "checkpoints/best.ckpt").unlink()
    messages, failures = evaluate(study, runs)
    assert not failures
    assert messages[-1] == "Added: worth."
    assert results(runs) == before
    assert before[next(iter(before))]["worth"]["kl_hlv"]["skill"] is not None


def test_reports_show_it_with_arrow_and_bold_face(trained: Path, runs: Path, tmp_path: Path):
    of = {"rows": "data.delivery", "grid": "packed"}
    claim = {"metric": "unchosen", "test": "less", "level": "Multipass", "reference": "SoftLabels"}
    report = {
        "tables": [{"name": "main", "columns": ["unchosen", "unchosen_hlv"], **of}],
        "figures": [{"name": "f", "kind": "points", "metric": "unchosen", **of}],
        "claims": [{"id": "c", "claim": "It is.", "paper": "None", **claim, **of}],
    }
    study = write_study(tmp_path, [STRATA], report=report)
    with own_score(tmp_path / "own", documented_metric()):
        evaluate(study, runs)
        main(["study", "report", str(study.path), "--runs", str(runs)])
        text = next(path for path in runs.rglob("main.md")).read_text()
    assert "Top class that nobody chose ↓" in text
    assert "Top class that nobody chose, not unanimous ↓" in text
    deliveries = ("SoftLabels", "Multipass")
    packed = {run.name: run.factors["packed"] for run in study.runs() if "packed" in run.factors}
    means = {
        delivery: np.mean(
            [
                results(runs)[name]["metrics"]["unchosen"]
                for name, factors in packed.items()
                if factors["data.delivery"] == delivery
            ]
        )
        for delivery in deliveries
    }
    assert means["SoftLabels"] != means["Multipass"]
    for delivery in deliveries:  # the lower one is better, and in bold
        row = next(line for line in text.splitlines() if line.startswith(f"| {delivery}"))
        assert ("**" in row.split("|")[2]) == (means[delivery] == min(means.values()))


def test_packs_and_epochs_of_runs_to_come_have_it_at_once(tmp_path: Path):
    study = write_study(tmp_path, [STRATA])
    with own_score(tmp_path / "own", documented_metric()):
        run, *_ = study.runs()
        assert not run_pack([run], tmp_path / "runs", tmp_path / "state", True, lambda share: None)
        folder = run.folder(tmp_path / "runs")
        found = read_results(folder)
        assert found
        by_hand = unchosen_by_hand(folder)
        assert {name: found["metrics"][name] for name in FORMS} == pytest.approx(by_hand)
        assert "evaluated" not in found  # it is of the test itself
        history = json.loads((folder / "history.json").read_text())
        assert all(0 <= epoch["val/unchosen"] <= 1 for epoch in history)


def test_a_number_that_comes_out_different_is_told_and_not_replaced(
    trained: Path, runs: Path, tmp_path: Path
):
    study = Study.load(trained / "study.yaml")
    name, result = next(iter(results(runs).items()))
    result["metrics"]["kl"] = 9.0
    (runs / name / "results.json").write_text(json.dumps(result))
    with own_score(tmp_path / "own", documented_metric()):
        messages, failures = evaluate(study, runs)
    assert not failures
    after = results(runs)[name]
    assert after["metrics"]["kl"] == 9.0
    assert "unchosen" in after["metrics"]
    (told,) = [message for message in messages if message.startswith(name)]
    assert "not replaced: kl (9 in results.json, 0." in told
    assert told.endswith(after["notes"][-1])


def test_interrupted_and_given_again_it_does_the_rest(
    trained: Path, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    study, before = Study.load(trained / "study.yaml"), results(runs)
    write, written = module.write_before_drawing, []

    def stop_at_the_third(path: Path, *rest: Any) -> Any:
        if len(written) == 2:
            (path.parent / f".results.json.0123abcd{SUFFIX}").write_text("{")
            raise Interrupted("ended by SIGTERM", 143)
        written.append(path.parent.name)
        return write(path, *rest)

    with own_score(tmp_path / "own", documented_metric()):
        monkeypatch.setattr(module, "write_before_drawing", stop_at_the_third)
        with pytest.raises(Interrupted, match="2 of 5 runs are scored anew, and the same command"):
            evaluate(study, runs)
        now = results(runs)
        assert {name for name in now if now[name] != before[name]} == set(written)
        monkeypatch.setattr(module, "write_before_drawing", write)
        messages, failures = evaluate(study, runs)
        assert not failures
        assert "3 of them were scored anew, and 2 lacked nothing" in messages[0]
    assert all("unchosen" in result["metrics"] for result in results(runs).values())
    assert not list(runs.rglob(f"*{SUFFIX}"))


def test_a_probe_that_the_study_lists_by_now_is_measured(runs: Path, tmp_path: Path):
    before = results(runs)
    study = write_study(tmp_path, [STRATA, {"class_path": "GradientVariance"}])
    assert all(steps_left(run.config, run.folder(runs)) == ["test"] for run in study.runs())
    _, failures = evaluate(study, runs)
    assert not failures
    for run in study.runs():
        result = results(runs)[run.folder(runs).name]
        assert result["metrics"]["gradient_variance"] > 0
        assert result["evaluated"]["gradient_variance"]["date"] == DAY
        assert [probe["class_path"] for probe in result["probes"]] == [
            "callbacks.StratumScores",
            "callbacks.GradientVariance",
        ]
        assert result["metrics"].items() >= before[run.folder(runs).name]["metrics"].items()
        assert not steps_left(run.config, run.folder(runs))
    other = {"class_path": "GradientVariance", "init_args": {"draws": 7}}
    kept = results(runs)
    messages, _ = evaluate(write_study(tmp_path, [STRATA, other]), runs)
    assert sum("was measured with other options" in message for message in messages) == 5
    assert results(runs) == kept


def test_a_run_without_its_checkpoint_is_told_and_the_others_are_scored(
    trained: Path, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture
):
    gone = sorted(path.name for path in runs.glob("digits-*"))[0]
    (runs / gone / "checkpoints/best.ckpt").unlink()
    words = ["study", "evaluate", str(trained / "study.yaml"), "--runs", str(runs)]
    with own_score(tmp_path / "own", documented_metric()), pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 1
    assert f"failed: {gone}: there is no checkpoint" in capsys.readouterr().out
    lacking = [name for name, result in results(runs).items() if "evaluated" not in result]
    assert lacking == [gone]


def test_changed_data_is_refused(own: Path, tmp_path: Path):
    data = {"data": "OwnVotes", "data.root": str(own), "data.votes": "votes.csv"}
    data |= {"data.item": "item", "data.label": "label", "data.name": "animals"}
    data |= {"data.embeddings": "features.npy", "model.network": "MLPHead"}
    options = data | {"trainer.max_epochs": 1}
    study = write_study(own, [], configs=[], grids={"main": {"seed_everything": [0]}})
    study = write_study(
        own, [], options=options, configs=[], grids={"main": {"seed_everything": [0]}}
    )
    runs = own / "runs"
    (run,) = study.runs()
    assert not run_pack([run], runs, own / "state", False, lambda share: None)
    before = results(runs)
    write_votes(own, flipped=True)
    with own_score(tmp_path / "own", documented_metric()):
        with pytest.raises(InputError, match="are not those that it was trained on"):
            evaluate(study, runs)
        assert results(runs) == before
        write_votes(own)
        evaluate(study, runs)
    assert "unchosen" in results(runs)[run.name]["metrics"]


def test_a_later_test_takes_nothing_away_that_was_added():
    """As by somebody who has not the file of the metric."""
    origin = {"version": "0.1", "date": DAY}
    earlier = {
        "metrics": {"kl": 0.3, "unchosen": 0.1, "old": 1.0},
        "evaluated": {"unchosen": origin},
        "probes": [],
        "notes": ["a"],
    }
    tested = {"metrics": {"kl": 0.4}, "probes": [], "notes": []}
    assert with_earlier(tested, earlier) == {
        "metrics": {"kl": 0.4, "unchosen": 0.1},
        "evaluated": {"unchosen": origin},
        "probes": [],
        "notes": ["a"],
    }
    known = {"metrics": {"kl": 0.4, "unchosen": 0.2}, "probes": [], "notes": []}
    assert with_earlier(known, earlier) == known
