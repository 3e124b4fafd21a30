"""Soft labels and uncertainties from judgements: by hand, by a plain loop, and by what must hold
for any crowd.
"""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy, pearsonr, spearmanr

from core.errors import InputError
from corpora.annotation.aggregation import (
    CORRELATED,
    aggregate,
    annotations_per_image,
    annotator_labels,
    correlations,
    soft_labels,
)
from corpora.annotation.judgements import NO, UNSURE, YES, Judgements, judgements_from_rows
from tests.corpora.annotation.test_judgements import long_rows, sure_of


def crowd(
    answers: np.ndarray, image: np.ndarray, milliseconds: np.ndarray | None = None
) -> Judgements:
    annotator_probs = np.arange(len(image))
    times = np.full(len(image), np.nan) if milliseconds is None else milliseconds
    return Judgements(
        np.unique(image),
        annotator_probs,
        image,
        annotator_probs,
        answers.astype(np.int8),
        times,
        np.full(len(image), -1),
    )


def random_crowd(seed: int = 0, images: int = 40, timed: bool = True) -> Judgements:
    rng = np.random.default_rng(seed)
    image = np.sort(np.concatenate([np.arange(images), rng.integers(images, size=5 * images)]))
    answers = rng.choice([NO, UNSURE, YES], p=[0.8, 0.12, 0.08], size=(len(image), 10))
    return crowd(answers, image, rng.uniform(500, 5000, size=len(image)) if timed else None)


@pytest.mark.parametrize(
    ("answers", "equal", "weighted"),
    [
        (sure_of(), {10: 1}, {10: 1}),
        ([UNSURE] * 10, dict.fromkeys(range(10), 0.1), dict.fromkeys(range(10), 0.1)),
        ([YES, UNSURE, *[NO] * 8], {0: 1 / 2, 1: 1 / 2}, {0: 2 / 3, 1: 1 / 3}),
        ([NO, UNSURE, *[NO] * 8], {1: 1}, {1: 1}),
        (sure_of(2, 7), {2: 1 / 2, 7: 1 / 2}, {2: 1 / 2, 7: 1 / 2}),
        (
            [YES, YES, UNSURE, *[NO] * 7],
            {0: 1 / 3, 1: 1 / 3, 2: 1 / 3},
            {0: 2 / 5, 1: 2 / 5, 2: 1 / 5},
        ),
    ],
    ids=[
        "all no",
        "all unsure",
        "one yes, one unsure",
        "one unsure",
        "two yes",
        "two yes, one unsure",
    ],
)
def test_one_annotator_by_hand(
    answers: list[int], equal: dict[int, float], weighted: dict[int, float]
):
    for unsure, expected in ((1.0, equal), (0.5, weighted)):
        result = annotator_labels(np.array([answers]), unsure)[0]
        np.testing.assert_allclose(
            result, [expected.get(label, 0) for label in range(11)], rtol=1e-15
        )


def test_an_image_by_hand():
    annotations = {
        ("a", "x"): [YES, UNSURE, *[NO] * 8],
        ("b", "x"): sure_of(),
        ("c", "x"): sure_of(1),
        ("c", "y"): [UNSURE] * 2 + [NO] * 8,
    }
    result = aggregate(
        judgements_from_rows(
            long_rows(annotations, milliseconds={("a", "x"): 100, ("c", "x"): 400}), Path("raw.csv")
        )
    )
    assert result.images.tolist() == ["x", "y"]
    np.testing.assert_allclose(result.equal[0, [0, 1, 10]], [1 / 6, 1 / 2, 1 / 3])
    np.testing.assert_allclose(result.uncertainty[0, [0, 1, 10]], [2 / 9, 4 / 9, 1 / 3])
    assert result.majority.tolist() == [1, 0]  # the second is a tie
    np.testing.assert_allclose(result.mean_uncertainty, [0.1 / 3, 0.2])
    np.testing.assert_allclose(result.unsure_proportion, [1 / 3, 1])
    assert result.annotations.tolist() == [3, 1]
    np.testing.assert_array_equal(result.milliseconds, [250, np.nan])


def test_many_images_as_a_plain_loop_finds_them():
    judgements = random_crowd()
    result = aggregate(judgements)
    for weight, labels in ((1.0, result.equal), (0.5, result.uncertainty)):
        for image in range(len(result)):
            own = []
            for answers in judgements.answers[judgements.image == image]:
                scores = [{NO: 0.0, UNSURE: weight, YES: 1.0}[answer] for answer in answers] + [
                    float(not any(answers))
                ]
                own.append([score / sum(scores) for score in scores])
            np.testing.assert_allclose(labels[image], np.mean(own, axis=0), atol=1e-12)
    assert sum(annotations_per_image(judgements).values()) == 40
    assert sum(
        number * images for number, images in annotations_per_image(judgements).items()
    ) == len(judgements)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.int8, (7, 10), elements=st.integers(0, 2)),
    st.lists(st.integers(0, 2), min_size=7, max_size=7),
    st.permutations(range(10)),
)
def test_what_holds_for_any_crowd(answers: np.ndarray, images: list[int], order: list[int]):
    image = np.unique(images, return_inverse=True)[1]
    result, renamed = aggregate(crowd(answers, image)), aggregate(crowd(answers[:, order], image))
    for labels, other in ((result.equal, renamed.equal), (result.uncertainty, renamed.uncertainty)):
        np.testing.assert_allclose(labels.sum(1), 1, atol=1e-12)
        assert (labels >= 0).all()
        # no digit is special
        np.testing.assert_allclose(labels[:, [*order, 10]], other, atol=1e-12)
    np.testing.assert_array_equal(result.equal > 0, result.uncertainty > 0)
    # who rejects all is not unsure
    np.testing.assert_array_equal(result.equal[:, 10], result.uncertainty[:, 10])
    assert (result.mean_uncertainty <= result.unsure_proportion + 1e-12).all()
    assert (result.unsure_proportion <= 10 * result.mean_uncertainty + 1e-12).all()
    sure = result.unsure_proportion == 0
    np.testing.assert_array_equal(result.equal[sure], result.uncertainty[sure])


@pytest.mark.parametrize(("method", "reference"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_correlations_are_those_of_scipy(method: str, reference):
    judgements = random_crowd(1)
    judgements.milliseconds[judgements.image == 5] = np.nan
    result = aggregate(judgements)
    columns = [
        result.milliseconds,
        result.mean_uncertainty,
        result.unsure_proportion,
        entropy(result.equal, axis=1),
        entropy(result.uncertainty, axis=1),
    ]
    timed = np.arange(len(result)) != 5
    expected = [[reference(a[timed], b[timed]).statistic for b in columns] for a in columns]
    matrix = correlations(result, method)
    assert matrix.shape == (len(CORRELATED),) * 2
    np.testing.assert_allclose(matrix, expected, atol=1e-12)


def test_what_cannot_be_correlated_is_nan():
    matrix = correlations(aggregate(random_crowd(timed=False)))
    assert np.isnan(matrix[0]).all()
    assert not np.isnan(matrix[1:, 1:]).any()
    same = correlations(
        aggregate(crowd(np.array([sure_of(1), sure_of(2)]), np.arange(2), np.array([1.0, 2.0]))),
        "spearman",
    )
    assert np.isnan(same[1:]).all()
    assert same[0, 0] == pytest.approx(1)


def test_bad_options():
    with pytest.raises(InputError, match="the weight of an unsure is 0; it must be above 0"):
        soft_labels(random_crowd(), unsure=0)
    with pytest.raises(
        InputError, match="the correlation is kendall; it must be pearson or spearman"
    ):
        correlations(aggregate(random_crowd()), "kendall")
