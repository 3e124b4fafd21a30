"""What scores are worth in results.json: of runs alone and in packs, by stratum, and on data of
which little is known.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from callbacks.records import worth as module
from callbacks.records.results_kinds import are_results
from callbacks.records.worth import lacks_worth, with_worth, worth_of
from callbacks.results import print_table, read_results
from cli import main
from datamodules import Digits
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable
from metrics import every_score, registered
from metrics.worth import score_bounds
from studies.launch.pack_job import run_pack
from studies.plan.study import Study
from tests.finished import FINISHED

ROOT = Path(__file__).parents[3]


def judged_by(votes: VoteTable | None = None, items: int | None = None) -> Any:
    """The embedded digits with other votes, or with fewer test items."""
    data: Any = Digits()
    whole: Corpus = data.load()
    splits = whole.splits | {"test": whole.splits["test"][:items]}
    data.use(Corpus(whole.inputs, votes or whole.votes, splits))
    return data


def scores_of_constant(data: Any) -> dict[str, float]:
    votes, test = data.corpus.votes.probs, data.rows("test")
    constant = np.tile(votes[data.rows("train")].mean(0), (len(test), 1))
    return every_score(constant, votes[test])


def test_a_run_alone_and_in_a_pack_say_the_same_by_stratum(tmp_path: Path):
    study = tmp_path / "study.yaml"
    study.write_text(
        f"name: small\nconfigs: [{ROOT / 'configs/digits.yaml'}]\n"
        "options: {trainer.max_epochs: 1, trainer.callbacks: [{class_path: StratumScores}]}\n"
        "grids: {main: {seed_everything: [0]}}\n"
    )
    (run,) = Study.load(study).runs()
    assert not run_pack([run], tmp_path / "packed", tmp_path / "state", False, lambda share: None)
    packed = read_results(run.folder(tmp_path / "packed"))
    config = ["--config", str(run.folder(tmp_path / "packed") / "config.yaml")]
    options = [*config, "--trainer.default_root_dir", str(tmp_path / "alone")]
    folder = main(["fit", *options]).run_dir
    main(["test", *options])
    alone = read_results(folder)
    assert alone
    assert packed
    names = {
        f"{name}{ending}" for name in registered() for ending in ("", "_hlv", "_nohlv")
    } & alone["metrics"].keys()
    assert alone["worth"].keys() == packed["worth"].keys() == names
    data = judged_by()
    counts = data.corpus.votes.counts
    expected = score_bounds(counts[data.rows("train")], counts[data.rows("test")])["kl"]
    for results in (alone, packed):
        assert results["worth"]["kl"] == expected.record(results["metrics"]["kl"])
        assert results["worth"]["ece"]["floor"] is None
        assert results["worth"]["ece"]["skill"] is None
        assert results["worth"]["ece"]["ceiling"] > 0
        assert 0 < results["worth"]["kl_hlv"]["skill"] < 1
        assert not lacks_worth(results)


def test_bounds_are_computed_once_for_all_who_are_judged_by_the_same_votes(
    monkeypatch: pytest.MonkeyPatch,
):
    calls, compute = [], module.part_bounds
    monkeypatch.setattr(module, "part_bounds", lambda *args: calls.append(1) or compute(*args))
    module._bounds.cache_clear()
    for kl in (0.3, 0.2):
        worth, _ = worth_of({"kl": kl}, judged_by())
        assert worth["kl"]["skill"] is not None
    assert len(calls) == 1
    worth_of({"kl": 0.3}, judged_by(items=100))
    assert len(calls) == 2


def test_a_constant_has_no_skill_and_nothing_is_nan():
    data = judged_by()
    metrics = scores_of_constant(data)
    assert math.isnan(metrics["entropy_spearman"])
    results = with_worth({"metrics": metrics, "notes": ["a"]}, data)
    json.dumps(results["worth"], allow_nan=False)
    assert results["worth"]["kl"]["skill"] == pytest.approx(0, abs=1e-9)
    assert results["worth"]["entropy_spearman"]["skill"] is None
    assert results["worth"]["entropy_spearman"]["ceiling"] > 0.5
    assert results["notes"] == ["a"]


def test_probabilities_without_counts_have_floors_and_a_note():
    table = VoteTable.from_probs(judged_by().corpus.votes.probs, source="people.csv")
    data = judged_by(table)
    worth, notes = worth_of(scores_of_constant(data), data)
    assert notes == [
        "ceilings are not known, because people.csv has probabilities without counts of votes."
    ]
    assert worth["kl"]["floor"] == pytest.approx(
        worth_of({"kl": 1.0}, judged_by())[0]["kl"]["floor"]
    )
    assert {worth["kl"][end] for end in ("ceiling", "low", "high", "skill")} == {None}


@pytest.mark.parametrize("items", [1, 2])
def test_fewer_than_three_test_items_have_floors_and_a_note(items: int):
    data = judged_by(items=items)
    worth, notes = worth_of(scores_of_constant(data), data)
    assert f"it takes 3 items or more and there are {items}." in notes[0]
    assert worth["soft_nll"]["ceiling"] is None
    assert worth["soft_nll"]["floor"] > 0
    json.dumps(worth, allow_nan=False)


def test_a_vote_each_leaves_the_ceiling_open():
    whole = judged_by().corpus.votes
    data = judged_by(whole.subsample(1, seed=0))
    worth, notes = worth_of(scores_of_constant(data), data)
    json.dumps(worth, allow_nan=False)
    assert worth["entropy_spearman"]["ceiling"] is None  # all entropies are 0
    assert worth["kl"]["high"] - worth["kl"]["low"] > 0.2 * worth["kl"]["floor"]
    assert all("votes are too few" in note for note in notes)


def test_the_table_of_a_test_shows_it(capsys: pytest.CaptureFixture):
    number = {"floor": 0.4, "ceiling": 0.1, "low": 0.1, "high": 0.1, "skill": 0.5}
    wide = {"floor": 0.4, "ceiling": 0.1, "low": 0.0, "high": 0.2, "skill": 0.5}
    ceiling = {"floor": None, "ceiling": 0.01, "low": 0.01, "high": 0.01, "skill": None}
    results = {
        **FINISHED,
        "dataset": "d",
        "simulated_annotators": False,
        "delivery": {"name": "SoftLabels"},
        "seed": 0,
        "network": "MLPHead",
        "embedder": None,
        "metrics": {"kl": 0.25, "soft_nll": 0.25, "ece": 0.05, "val_loss": 1.0},
    }
    print_table({**results, "worth": {"kl": number, "soft_nll": wide, "ece": ceiling}}, Path("x"))
    lines = capsys.readouterr().out.splitlines()
    cells = {row[0]: row[1:] for line in lines if (row := line.replace("│", "|").split("|")[1:-1])}
    cells = {name.strip(): [cell.strip() for cell in row] for name, row in cells.items()}
    assert cells["kl"] == ["0.2500", "0.4000", "0.1000", "50.0 %"]
    assert cells["soft_nll"] == ["0.2500", "0.4000", "0.0000 to 0.2000", "38 to 75 %"]
    assert cells["ece"] == ["0.0500", "-", "0.0100", "-"]
    assert cells["val_loss"] == ["1.0000", "-", "-", "-"]
    print_table(results, Path("x"))  # of an earlier version
    assert "ceiling" not in capsys.readouterr().out


@pytest.mark.parametrize("worth", [[], {"kl": 1}, {"kl": {"floor": "<b>"}}])
def test_a_file_whose_worth_is_something_else_holds_no_results(worth: Any):
    assert not are_results({"metrics": {"kl": 0.5}, "worth": worth})
