"""PredictionSets: sets of the test items by thresholds of the validation items."""

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from callbacks import PredictionSets
from core.errors import InputError
from datamodules import Digits
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable
from lightning_modules import AnnotatorClassifier
from metrics.prediction_sets import set_threshold
from tests.callbacks.post_hoc.untrained import untrained_model


@pytest.fixture(scope="module")
def model() -> tuple[AnnotatorClassifier, Any]:
    return untrained_model(seed=1)


def probs_of(classifier: AnnotatorClassifier, data: Any, split: str) -> np.ndarray:
    rows = np.sort(data.rows(split))
    batch = next(data.evaluation_batches(rows, batch_size=len(rows)))
    return softmax(classifier.logits(batch.inputs).detach().numpy(), 1)


def test_numbers_and_sets_are_those_of_the_definition(model: tuple[AnnotatorClassifier, Any]):
    classifier, data = model
    result = PredictionSets(alpha=0.2, draws=5).run(classifier, data)
    val, test = (np.sort(data.rows(split)) for split in ("val", "test"))
    votes = data.corpus.votes
    least = set_threshold(
        probs_of(classifier, data, "val"), votes.probs[val], 0.2, data.seed, draws=5
    )
    members = probs_of(classifier, data, "test") >= least
    covered = (members * votes.probs[test]).sum(1)
    table = result.items["prediction_sets"].to_pydict()
    assert table["index"] == test.tolist()
    assert table["classes"] == [np.flatnonzero(row).tolist() for row in members]
    assert table["coverage"] == pytest.approx(covered)
    unanimous = votes.unanimous[test]
    expected = {
        "set_coverage": covered.mean(),
        "set_size": members.sum(1).mean(),
        "set_coverage_nohlv": covered[unanimous].mean(),
        "set_size_hlv": members.sum(1)[~unanimous].mean(),
    }
    assert {name: result.metrics[name] for name in expected} == pytest.approx(expected)
    assert {"set_coverage_majority", "set_size_majority", "set_size_high"} <= result.metrics.keys()
    assert result.notes == []


def test_halves_where_validation_items_are_the_test_items(model: tuple[AnnotatorClassifier, Any]):
    classifier, separate = model
    whole, data = separate.corpus, Digits(seed=1)
    splits = {**whole.splits, "val": whole.splits["test"]}
    data.use(Corpus(whole.inputs, whole.votes, splits))
    result = PredictionSets().run(classifier, data)
    assert "PredictionSets: the validation items are the test items" in result.notes[0]
    assert result.items["prediction_sets"]["index"].to_pylist() == sorted(splits["test"])
    assert result.metrics["set_coverage"] == pytest.approx(0.9, abs=0.05)


def test_a_stratum_without_items_has_no_numbers_and_one_item_is_told(
    model: tuple[AnnotatorClassifier, Any],
):
    classifier, separate = model
    whole, data = separate.corpus, Digits(seed=1)
    agreed = VoteTable([[1, *[0] * 9]] * len(whole.votes))
    data.use(Corpus(whole.inputs, agreed, whole.splits))
    metrics = PredictionSets().run(classifier, data).metrics
    assert "set_size_nohlv" in metrics
    assert not {"set_size_hlv", "set_size_high"} & metrics.keys()
    one = {"train": whole.splits["train"], "val": np.array([0]), "test": np.array([0])}
    data.use(Corpus(whole.inputs, agreed, one))
    with pytest.raises(InputError, match="Digits has a single held-out item"):
        PredictionSets().run(classifier, data)


def test_wrong_options_are_told():
    with pytest.raises(InputError, match="alpha is 90"):
        PredictionSets(alpha=90)
