"""Calibrators: one option of `test` adds every score of calibrated predictions, and no number of
the model's own changes.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from callbacks import Calibrators
from callbacks.post_hoc.calibrators import calibration_targets
from callbacks.results import read_results
from cli import main
from core.errors import InputError
from datamodules import Digits
from datamodules.vote_datamodule import Corpus
from lightning_modules import AnnotatorClassifier
from metrics import every_score, registered
from metrics.calibrators import FORMS, fit_calibrator
from tests.callbacks.post_hoc.untrained import untrained_model
from tests.quiet import QUIET

ROOT = Path(__file__).parents[3]
ASKED = ["temperature", "vector_majority", "dirichlet_votes"]


def options(folder: Path) -> list[str]:
    config = str(ROOT / "configs/digits.yaml")
    limits = ["--trainer.max_epochs", "2", "--trainer.default_root_dir", str(folder)]
    return ["--config", config, *QUIET, *limits]


@pytest.fixture(scope="module")
def tested(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A run's folder, and its results from before it was calibrated."""
    words = options(tmp_path_factory.mktemp("runs"))
    fitted = main(["fit", *words])
    assert fitted
    folder = fitted.run_dir
    for command in ("test", "predict"):
        main([command, *words])
    before = json.loads((folder / "results.json").read_text())
    calibrated = main(["test", *words, "--calibrate", json.dumps(ASKED)])
    assert calibrated
    assert calibrated.run_dir == folder
    return folder, before


def probs_of(folder: Path, split: str, who: str) -> np.ndarray:
    table = pq.read_table(folder / "predictions.parquet", filters=[("split", "=", split)])
    return np.stack([table[f"{who}_{k}"].to_numpy() for k in range(10)], 1).astype(float)


def test_every_score_is_added_and_none_replaced(tested: tuple[Path, dict[str, Any]]):
    folder, before = tested
    results = read_results(folder)
    assert results
    metrics = results["metrics"]
    assert {name: metrics[name] for name in before["metrics"]} == before["metrics"]
    added = {f"{score}_{form}" for score in registered() for form in ASKED} | {"temperature"}
    assert metrics.keys() == before["metrics"].keys() | added
    assert results["probes"] == [
        {
            "class_path": "callbacks.Calibrators",
            "init_args": {"dirichlet_lambda": 10.0, "forms": ASKED},
        }
    ]


def test_scores_are_those_of_what_was_fitted_to_validation_items(
    tested: tuple[Path, dict[str, Any]],
):
    folder, _ = tested
    results, kept = read_results(folder), json.loads((folder / "calibrators.json").read_text())
    assert results
    logits, new = (np.log(probs_of(folder, split, "model")) for split in ("val", "test"))
    votes, people = (probs_of(folder, split, "annotators") for split in ("val", "test"))
    fitted = fit_calibrator("temperature", logits, votes)
    expected = every_score(fitted(new), people)
    ours = {name: results["metrics"][f"{name}_temperature"] for name in expected}
    assert ours == pytest.approx(expected, rel=1e-4, abs=1e-5)
    (plain,) = kept["temperature"]
    assert plain["kind"] == "temperature"
    assert plain["weights"] == pytest.approx(float(fitted.weights), rel=1e-4)
    assert results["metrics"]["temperature"] == pytest.approx(1 / plain["weights"])
    assert np.shape(kept["dirichlet_votes"][0]["weights"]) == (10, 10)


@pytest.fixture(scope="module")
def untrained() -> tuple[AnnotatorClassifier, Any]:
    return untrained_model(seed=3)


def test_what_is_fitted_to(untrained: tuple[AnnotatorClassifier, Any]):
    _, data = untrained
    rows = data.rows("val")
    whole = calibration_targets(data, "distributions", rows)
    single = calibration_targets(data, "votes", rows)
    majority = calibration_targets(data, "majority", rows)
    assert (whole == data.corpus.votes.probs[rows]).all()
    assert set(np.unique(single)) == set(np.unique(majority)) == {0.0, 1.0}
    assert (whole[single == 1] > 0).all()  # somebody said so
    assert (majority.argmax(1) == whole.argmax(1)).all()
    assert (single.argmax(1) != whole.argmax(1)).any()
    assert (single == calibration_targets(data, "votes", rows)).all()


def test_where_validation_items_are_the_test_items_no_item_is_fitted_to_and_judged(
    untrained: tuple[AnnotatorClassifier, Any],
):
    classifier, separate = untrained
    data: Any = Digits(seed=3)
    whole: Corpus = separate.corpus
    test = whole.splits["test"]
    data.use(Corpus(whole.inputs, whole.votes, {**whole.splits, "val": test}))
    result = Calibrators(["vector"]).run(classifier, data)
    assert "cut into halves" in result.notes[0]
    one, other = (np.array(part["bias"]) for part in result.tables["calibrators"]["vector"])
    assert not np.allclose(one, other)
    all_at_once = Calibrators(["vector"])
    seen = classifier.logits(next(data.evaluation_batches(test, batch_size=len(test))).inputs)
    cheated = fit_calibrator("vector", seen.detach().numpy(), whole.votes.probs[test])
    cheat = every_score(cheated(seen.detach().numpy()), whole.votes.probs[test])
    assert result.metrics["soft_nll_vector"] > cheat["soft_nll"]
    assert all_at_once.run(classifier, data).metrics == result.metrics  # the halves are the seed's


def test_all_nine_forms_improve_an_untrained_network(untrained: tuple[AnnotatorClassifier, Any]):
    classifier, data = untrained
    result = Calibrators(list(FORMS)).run(classifier, data)
    assert not result.notes
    own = every_score(
        *(
            torch.cat(parts)
            for parts in zip(
                *(
                    (classifier.predict(batch).probs.detach(), batch.targets)
                    for batch in data.evaluation_batches(data.rows("test"))
                ),
                strict=True,
            )
        )
    )
    for form in FORMS.values():
        assert result.metrics[f"soft_nll_{form.name}"] < own["soft_nll"] + 0.01, form
    assert result.metrics["accuracy_temperature"] == own["accuracy"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"forms": ["temprature"]}, "they must be of temperature, .*did you mean temperature"),
        ({"forms": []}, "Calibrators has no forms"),
        ({"forms": ["vector"], "dirichlet_lambda": -1.0}, "dirichlet_lambda is -1.0"),
    ],
)
def test_wrong_options_are_told(arguments: dict[str, Any], sentence: str):
    with pytest.raises(InputError, match=sentence):
        Calibrators(**arguments)


def test_a_form_that_is_mistyped_is_one_sentence(
    tested: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
):
    folder, _ = tested
    before = (folder / "results.json").read_bytes()
    with pytest.raises(SystemExit) as end:
        main(["test", *options(folder.parent), "--calibrate", "temprature"])
    assert end.value.code == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert re.search("temprature.*did you mean temperature", last), last
    assert (folder / "results.json").read_bytes() == before
