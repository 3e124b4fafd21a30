"""Krippendorff's alpha against his own worked examples, and the rules by which annotators become
suspicious.
"""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datamodules.votes.agreement import (
    annotator_records,
    far_below,
    krippendorff_alpha,
    one_label_only,
)
from datamodules.votes.annotations import Annotations, count_votes, repeated_votes

# "Computing Krippendorff's Alpha-Reliability" (2011), examples A, B and C: a line per observer, a
# dot where there is no value
PUBLISHED = [
    (("0100000010", "1110010000"), 0.095),
    (("aabbdcccedda", "babbbccceddd"), 0.692),
    (("123321412...", "1233224125.3", ".3332342251.", "12332441251."), 0.743),
]


def counts_of(observers: tuple[str, ...]) -> np.ndarray:
    labels = sorted(set("".join(observers)) - {"."})
    return np.array(
        [
            [sum(observer[unit] == label for observer in observers) for label in labels]
            for unit in range(len(observers[0]))
        ]
    )


@pytest.mark.parametrize(("observers", "published"), PUBLISHED)
def test_alpha_of_krippendorffs_own_examples(observers: tuple[str, ...], published: float):
    assert krippendorff_alpha(counts_of(observers)) == pytest.approx(published, abs=5e-4)


def test_interval_alpha_of_krippendorffs_own_example():
    observers, _ = PUBLISHED[2]
    assert krippendorff_alpha(counts_of(observers), interval=True) == pytest.approx(0.849, abs=5e-4)


def alpha_by_pairs(counts: np.ndarray, interval: bool) -> float:
    """His definition, pair by pair: observed disagreement within units over that of all pairs of
    values, whatever their units.
    """
    units = [
        [label for label, votes in enumerate(row) for _ in range(votes)]
        for row in counts.tolist()
        if sum(row) > 1
    ]
    values = [value for unit in units for value in unit]

    def disagreement(labels: list[int]) -> float:
        pairs = permutations(labels, 2)
        return sum((a - b) ** 2 if interval else a != b for a, b in pairs) / (len(labels) - 1)

    observed = sum(map(disagreement, units)) / len(values)
    expected = disagreement(values) / len(values)
    return 1 - observed / expected if expected else float("nan")


@pytest.mark.parametrize("interval", [False, True])
@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=6))
def test_alpha_equals_its_definition_over_pairs(rows: list[list[int]], interval: bool):
    counts = np.array(rows)
    expected = alpha_by_pairs(counts, interval) if (counts.sum(1) > 1).any() else float("nan")
    assert krippendorff_alpha(counts, interval) == pytest.approx(expected, abs=1e-12, nan_ok=True)


def crowd(items: int = 60, annotator_probs: int = 12) -> Annotations:
    """Eleven people who are mostly right; number 3 says the opposite of what is right, number 7
    always says class 0.
    """
    rng = np.random.default_rng(0)
    item, who = (
        np.repeat(np.arange(items), annotator_probs),
        np.tile(np.arange(annotator_probs), items),
    )
    label = np.where(rng.random(len(item)) < 0.85, item % 3, rng.integers(0, 3, len(item)))
    label = np.where(who == 3, (item + 1) % 3, np.where(who == 7, 0, label))
    return Annotations(item, label, who, [f"rater {number}" for number in range(annotator_probs)])


def test_who_contradicts_all_others_and_who_always_says_the_same_are_found():
    annotations = crowd()
    counts = annotations.counts(60, 3)
    records = annotator_records(annotations, counts)
    below, median, _ = far_below(records)
    assert set(below) >= {3}
    assert set(below) <= {3, 7}
    assert median > 0.6
    assert one_label_only(records, counts.sum(0) / counts.sum()).tolist() == [7]
    # by hand for one of them: the mean share of the other eleven votes that were the same
    same = [(counts[item, (item + 1) % 3] - 1) / 11 for item in range(60)]
    assert records.agreement[3] == pytest.approx(np.mean(same))


def test_nobody_is_accused_on_a_few_votes_or_for_one_slip_in_a_crowd_that_always_agrees():
    few = crowd(items=9)
    records = annotator_records(few, few.counts(9, 3))
    assert len(far_below(records)[0]) == len(one_label_only(records, np.full(3, 1 / 3))) == 0
    item, who = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    label = item % 2
    label[0] = 1
    slip = Annotations(item, label, who, list("abcdef"))
    assert len(far_below(annotator_records(slip, slip.counts(20, 2)))[0]) == 0


def test_items_with_a_single_vote_are_compared_with_nothing():
    alone = Annotations(
        np.array([0, 1, 1]), np.array([0, 1, 1]), np.array([0, 1, 2]), ["a", "b", "c"]
    )
    records = annotator_records(alone, alone.counts(2, 2))
    assert records.compared.tolist() == [0, 1, 1]
    np.testing.assert_array_equal(records.agreement, [np.nan, 1.0, 1.0])


def test_counts_and_repeated_votes_by_loops():
    rng = np.random.default_rng(1)
    item, label, who = rng.integers(0, 20, 300), rng.integers(0, 4, 300), rng.integers(0, 9, 300)
    counts = np.zeros((20, 4), int)
    seen, again = set(), []
    for row, (i, j, k) in enumerate(zip(item, label, who, strict=True)):
        counts[i, j] += 1
        if (i, k) in seen:
            again.append(row)
        seen.add((i, k))
    np.testing.assert_array_equal(count_votes(item, label, 20, 4), counts)
    assert repeated_votes(item, who).tolist() == again
