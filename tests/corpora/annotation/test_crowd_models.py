"""Dawid-Skene and MACE through crowd-kit: what is handed to it and what is taken from it, with a
stand-in of the same interface and with itself.
"""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from core.errors import InputError
from corpora.annotation.aggregation import CLASS_NAMES, soft_labels
from corpora.annotation.crowd_models import crowd_labels, single_labels
from corpora.annotation.judgements import NO, UNSURE, YES, Judgements
from tests.corpora.annotation.test_judgements import sure_of

ANSWERS = np.array(
    [sure_of(3), sure_of(3), [UNSURE, YES, *[NO] * 8], sure_of(), sure_of(0)], np.int8
)
CROWD = Judgements(
    np.array(["x", "y"]), np.array(["a", "b", "c"]), np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1]), ANSWERS,  # noqa: E501
    np.full(5, np.nan), np.full(5, -1),
)  # fmt: skip


class Shares:
    """A model that takes each label's share among the workers, in the rows and columns that
    crowd-kit answers with: those that occur.
    """

    made: list[dict] = []  # noqa: RUF012

    def __init__(self, **options):
        self.made.append(options)

    def fit_predict_proba(self, rows: pd.DataFrame) -> pd.DataFrame:
        assert list(rows.columns) == ["task", "worker", "label"]
        assert not rows.duplicated(["task", "worker"]).any()
        return pd.crosstab(rows["task"], rows["label"], normalize="index").iloc[::-1]


@pytest.fixture
def crowdkit(monkeypatch: pytest.MonkeyPatch) -> None:
    aggregation = ModuleType("crowdkit.aggregation")
    aggregation.DawidSkene = aggregation.MACE = Shares  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "crowdkit", ModuleType("crowdkit"))
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", aggregation)
    monkeypatch.setattr(Shares, "made", [])


@pytest.mark.parametrize("model", ["dawid_skene", "mace"])
def test_what_the_model_infers_comes_back_by_image_and_class(model: str, crowdkit: None):
    result = crowd_labels(CROWD, model, seed=4)
    expected = np.zeros((2, 11))
    expected[0, [3, 1]] = 2 / 3, 1 / 3
    expected[1, [10, 0]] = 1 / 2
    np.testing.assert_allclose(result, expected)
    assert Shares.made == [{"random_state": 4} if model == "mace" else {}]
    assert result.shape[1] == len(CLASS_NAMES)


def test_of_several_classes_alike_each_has_the_same_chance():
    drawn = single_labels(
        np.tile(np.array([[YES, UNSURE, YES, *[NO] * 7]], np.int8), (4000, 1)), seed=0
    )
    assert set(drawn) == {0, 2}
    assert abs((drawn == 0).mean() - 0.5) < 0.04
    assert np.array_equal(
        drawn,
        single_labels(
            np.tile(np.array([[YES, UNSURE, YES, *[NO] * 7]], np.int8), (4000, 1)), seed=0
        ),
    )


@pytest.fixture(scope="module")
def planted() -> tuple[Judgements, np.ndarray]:
    """90 digits, each judged by four of five annotators who are right nine times of ten, and by two
    of three who always say 7.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, 90)
    workers = np.stack([rng.permutation(5)[:4] for _ in truth])
    lazy = np.stack([5 + rng.permutation(3)[:2] for _ in truth])
    message = np.where(rng.random((90, 4)) < 0.9, truth[:, None], rng.integers(0, 10, (90, 4)))
    image = np.repeat(np.arange(90), 6)
    annotator, label = (
        np.concatenate(parts, 1).ravel()
        for parts in ((workers, lazy), (message, np.full((90, 2), 7)))
    )
    answers = np.full((len(image), 10), NO, np.int8)
    answers[np.arange(len(image)), label] = YES
    nothing = np.full(len(image), np.nan)
    return Judgements(
        np.arange(90), np.arange(8), image, annotator, answers, nothing, np.full(len(image), -1)
    ), truth


# crowd-kit takes half a minute for it
@pytest.mark.parametrize("model", ["dawid_skene", pytest.param("mace", marks=pytest.mark.long)])
def test_crowd_kit_itself_finds_out_whom_to_trust(model: str, planted):
    judgements, truth = planted
    result = crowd_labels(judgements, model, seed=0)
    np.testing.assert_allclose(result.sum(1), 1)
    votes = soft_labels(judgements, unsure=1.0)
    sevens = truth != 7
    assert votes[sevens, 7].mean() > 0.3  # the lazy are counted like everybody else
    assert result[sevens, 7].mean() < 0.05
    assert (result.argmax(1) == truth).mean() > 0.98
    np.testing.assert_array_equal(result, crowd_labels(judgements, model, seed=0))


def test_without_crowd_kit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "crowdkit", None)
    monkeypatch.setitem(sys.modules, "crowdkit.aggregation", None)
    with pytest.raises(InputError) as mistake:
        crowd_labels(CROWD, "mace", seed=0)
    assert (
        str(mistake.value)
        == 'mace labels need crowd-kit; install it with pip install -e ".[crowd]" -c '
        "constraints.txt."
    )


def test_a_model_of_another_name():
    with pytest.raises(
        InputError, match="the model of annotators is glad; it must be one of dawid_skene, mace"
    ):
        crowd_labels(CROWD, "glad", seed=0)
