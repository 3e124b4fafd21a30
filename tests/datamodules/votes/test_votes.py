"""Vote tables: what follows from counts, and how bad tables are named."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from core.errors import InputError
from datamodules.votes.splitting import stratified_split
from datamodules.votes.table import VoteTable

NAN, INF = float("nan"), float("inf")


def random_counts(items: int, classes: int, seed: int) -> np.ndarray:
    counts = np.random.default_rng(seed).integers(0, 5, (items, classes))
    counts[counts.sum(1) == 0, -1] = 1
    return counts


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_probs_and_entropy_agree_with_scipy(classes):
    counts = random_counts(200, classes, seed=classes)
    votes = VoteTable(counts)
    np.testing.assert_array_equal(
        votes.probs, [[count / sum(row) for count in row] for row in counts.tolist()]
    )
    np.testing.assert_allclose(votes.entropy, stats.entropy(counts, axis=1), atol=1e-14)
    np.testing.assert_allclose(
        votes.normalized_entropy, stats.entropy(counts, axis=1, base=classes), atol=1e-14
    )


def test_probabilities_have_the_entropy_of_the_counts_they_came_from():
    votes = VoteTable(random_counts(50, 4, seed=0))
    from_probs = VoteTable.from_probs(votes.probs)
    assert from_probs.counts is None
    assert (len(from_probs), from_probs.num_classes) == (50, 4)
    np.testing.assert_allclose(from_probs.probs, votes.probs, rtol=1e-15)
    np.testing.assert_allclose(from_probs.entropy, votes.entropy, atol=1e-14)
    np.testing.assert_array_equal(from_probs.majority, votes.majority)
    np.testing.assert_array_equal(from_probs.unanimous, votes.unanimous)


def test_normalized_entropy_spans_0_to_1():
    assert VoteTable([[7, 0, 0], [2, 2, 2]]).normalized_entropy == pytest.approx([0, 1], abs=1e-15)


def test_majority_ties_go_to_the_lowest_class():
    counts = [[2, 2, 1], [0, 3, 3], [1, 1, 1], [0, 1, 2]]
    assert VoteTable(counts).majority.tolist() == [0, 1, 0, 2]
    assert VoteTable.from_probs([[0.4, 0.4, 0.2], [0.0, 0.5, 0.5]]).majority.tolist() == [0, 1]


def test_unanimous_means_that_all_votes_name_one_class():
    assert VoteTable([[0, 9, 0], [1, 8, 0], [1, 0, 0]]).unanimous.tolist() == [True, False, True]
    assert VoteTable.from_probs([[0.0, 1.0], [1e-6, 1 - 1e-6]]).unanimous.tolist() == [True, False]


def test_high_disagreement_is_what_reaches_the_quantile_of_entropy():
    votes = VoteTable([[10 - row, row] for row in range(6)])
    assert votes.high_disagreement(0.8).tolist() == [False] * 4 + [True] * 2
    assert votes.high_disagreement(0.0).tolist() == [False] + [True] * 5
    assert not VoteTable([[3, 0], [0, 3]]).high_disagreement(0.5).any()


@pytest.mark.parametrize("quantile", [-0.1, 1, 1.5, NAN])
def test_bad_quantile_is_named(quantile):
    with pytest.raises(InputError, match=f"high-disagreement quantile is {quantile};"):
        VoteTable([[1, 1]]).high_disagreement(quantile)


@pytest.mark.parametrize("k", [1, 4, 50])
def test_subsample_has_k_votes_per_item_and_only_for_classes_with_votes(k):
    votes = VoteTable(random_counts(300, 5, seed=1))
    few = votes.subsample(k, seed=3)
    assert few.counts.sum(1).tolist() == [k] * 300
    assert not few.counts[votes.counts == 0].any()


@pytest.mark.parametrize(
    "table",
    [VoteTable([[6, 3, 1], [1, 5, 4]]), VoteTable.from_probs([[0.6, 0.3, 0.1], [0.1, 0.5, 0.4]])],
)
def test_subsample_draws_from_each_items_distribution(table):
    drawn = sum(table.subsample(7, seed).counts for seed in range(1000))
    for observed, probs in zip(drawn, table.probs, strict=True):
        assert stats.chisquare(observed, 7000 * probs).pvalue > 0.01


def test_subsample_draws_independently():
    votes = VoteTable([[1, 1]] * 40_000)
    three, five, other = (
        draw.counts[:, 0]
        for draw in (votes.subsample(3, 0), votes.subsample(5, 0), votes.subsample(3, 1))
    )
    bound = 4 / np.sqrt(len(votes))
    assert abs(np.corrcoef(three, five)[0, 1]) < bound
    assert abs(np.corrcoef(three, other)[0, 1]) < bound
    assert abs(np.corrcoef(three[:-1], three[1:])[0, 1]) < bound
    np.testing.assert_array_equal(three, votes.subsample(3, 0).counts[:, 0])


@pytest.mark.parametrize("k", [0, -1, 1.5, NAN, INF, 2**31])
def test_bad_number_of_votes_is_named(k):
    with pytest.raises(InputError, match=re.escape(f"votes per item is {k};")):
        VoteTable([[1, 1]]).subsample(k, seed=0)


@pytest.mark.parametrize(
    "table",
    [
        VoteTable([[1, 0], [2, 3], [0, 4]]),
        VoteTable.from_probs([[1.0, 0.0], [0.4, 0.6], [0.0, 1.0]]),
    ],
)
def test_take_keeps_the_order_asked_for(table):
    taken = table.take([2, 0, 2])
    np.testing.assert_array_equal(taken.probs, [[0, 1], [1, 0], [0, 1]])
    assert (taken.counts is None) == (table.counts is None)
    np.testing.assert_array_equal(table.take(~table.unanimous).probs, [[0.4, 0.6]])


@st.composite
def strata_and_fractions(draw):
    sizes = draw(st.lists(st.integers(1, 30), min_size=1, max_size=8))
    parts = draw(st.integers(2, 4))
    total = max(sum(sizes), 2 * parts)
    sizes[0] += total - sum(sizes)
    spare = draw(st.lists(st.integers(0, 100), min_size=parts, max_size=parts).filter(any))
    least = 1.5 / total
    fractions = [least + (1 - parts * least) * share / sum(spare) for share in spare]
    return np.repeat(np.arange(len(sizes)), sizes), fractions


@example((np.repeat(np.arange(8), [30] + [1] * 7), [0.45, 0.55]), 0)
@example((np.array([0] * 1000 + list(range(1, 100))), [0.48, 0.52]), 0)
@example((np.array([0, 0, 0, 0, 1, 2]), [0.25, 0.5, 0.25]), 0)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(strata_and_fractions(), st.integers(0, 2**32))
def test_split_totals_are_exact_and_every_part_is_within_one_item_of_its_share_of_what_was_left(
    problem, seed
):
    strata, fractions = problem
    parts = stratified_split(strata, fractions, seed)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(strata)))
    reached = np.cumsum([len(part) for part in parts])
    assert np.abs(reached - np.cumsum(fractions) * len(strata)).max() <= 0.5 + 1e-9
    left = np.arange(len(strata))
    for part in parts:
        for stratum, size in zip(*np.unique(strata[left], return_counts=True), strict=True):
            assert abs((strata[part] == stratum).sum() - len(part) / len(left) * size) <= 1 + 1e-9
        left = np.setdiff1d(left, part)


def test_split_is_stratified_by_majority_and_depends_on_the_seed_alone():
    votes = VoteTable([[3, 1, 0]] * 100 + [[0, 1, 4]] * 60)
    train, test = votes.split([0.75, 0.25], seed=5)
    assert np.bincount(votes.majority[train], minlength=3).tolist() == [75, 0, 45]
    assert np.bincount(votes.majority[test], minlength=3).tolist() == [25, 0, 15]
    again, _ = votes.split([0.75, 0.25], seed=5)
    other, _ = votes.split([0.75, 0.25], seed=6)
    assert train.tolist() == again.tolist()
    assert train.tolist() != other.tolist()


def test_split_is_stratified_by_entropy_as_well():
    # normalised entropies 0, 0.47, 0.97, 1 and 0.47 again, of the other class
    kinds = [
        [10, 0],
        [9, 1],
        [6, 4],
        [5, 5],
        [1, 9],
    ]
    votes = VoteTable(np.random.default_rng(0).permutation(np.repeat(kinds, 40, axis=0)))
    for part in votes.split([0.5, 0.25, 0.25], seed=3, entropy_bins=4):
        assert votes.counts is not None
        result = votes.counts[part]
        assert [int((result == kind).all(1).sum()) for kind in (kinds[0], kinds[1], kinds[4])] == [
            len(part) // 5
        ] * 3
        assert (result[:, 1] * 10 >= 40).sum() - len(part) // 5 == 2 * len(
            part
        ) // 5  # the two of the last bin together
    assert (
        votes.split([0.5, 0.5], seed=3)[0].tolist()
        == stratified_split(votes.majority, [0.5, 0.5], 3)[0].tolist()
    )
    with pytest.raises(InputError, match="the number of entropy bins to stratify by is 0"):
        votes.split([0.5, 0.5], seed=3, entropy_bins=0)


def test_split_gives_every_item_the_same_chance():
    strata = np.repeat([0, 1, 2], [5, 8, 20])
    chosen = np.bincount(
        np.concatenate([stratified_split(strata, [0.25, 0.75], seed)[0] for seed in range(500)]),
        minlength=33,
    )
    for stratum in range(3):
        members = chosen[strata == stratum]
        assert stats.chisquare(members).pvalue > 0.01


@pytest.mark.parametrize(
    "fractions", [[0.5, 0.4], [0.7, 0.7], [1.0, 0.0], [1.5, -0.5], [NAN, 0.5], []]
)
def test_bad_fractions_are_named(fractions):
    with pytest.raises(InputError, match=re.escape(f"the split fractions are {fractions};")):
        VoteTable([[1, 1]] * 10).split(fractions, seed=0)


def test_a_split_that_leaves_a_part_empty_is_named():
    with pytest.raises(
        InputError, match=re.escape("splitting 3 items by [0.95, 0.05] leaves a part empty")
    ):
        VoteTable([[1, 1]] * 3).split([0.95, 0.05], seed=0)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (
            [[1, 1], [-1, 2], [1, 1], [0, -3]],
            "votes.csv has negative votes in rows 1, 3; counts must be whole numbers",
        ),
        (
            [[1, 1], [1, 1], [0.5, 2]],
            "votes.csv has fractional votes in row 2; counts must be whole numbers; for "
            "probabilities use",
        ),
        (
            [[NAN, 1], [1, 1], [1, NAN]],
            "votes.csv has votes that are not numbers in rows 0, 2; counts",
        ),
        ([[1, 1], [1, INF]], "votes.csv has votes that are not numbers in row 1; counts"),
        ([[1, 1], [1, -INF]], "votes.csv has votes that are not numbers in row 1; counts"),
        (
            [[0, 0], [1, 1], [0, 0], [0, 0], [0, 0]],
            "votes.csv has no votes at all in rows 0, 2, 3 and 1 more; every item needs",
        ),
        ([[1, 1], [2**31, 0]], "votes.csv has more than 2,147,483,647 votes in row 1"),
        ([[1, 1], [2**62, 2**62]], "votes.csv has more than 2,147,483,647 votes in row 1"),
        (
            [1, 2, 3],
            "votes.csv has shape [3]; votes must be a table of at least one item and two classes",
        ),
        (
            [[1], [2]],
            "votes.csv has shape [2, 1]; votes must be a table of at least one item and two "
            "classes",
        ),
        ([[[1, 2]]], "votes.csv has shape [1, 1, 2]; votes must be a table"),
        (np.zeros((0, 3)), "votes.csv has shape [0, 3]; votes must be a table"),
        ([["1", "2"]], "votes.csv holds <U1 values; votes must be numbers"),
        ([[None, 1]], "votes.csv holds object values; votes must be numbers"),
        ([[1j, 1]], "votes.csv holds complex128 values; votes must be numbers"),
        (
            [[1, 2], [1, 2, 3]],
            "votes.csv has rows of different lengths; every row needs one number per class",
        ),
    ],
)
def test_bad_counts_are_named(counts, message):
    with pytest.raises(InputError, match=re.escape(message)):
        VoteTable(counts, source="votes.csv")


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        (
            [[0.5, 0.5], [0.5, 0.4], [0.6, 0.6]],
            "probs.csv has probabilities that do not sum to 1 in rows 1, 2; every row must sum "
            "to 1",
        ),
        (
            [[0.5, 0.5], [0.0, 0.0]],
            "probs.csv has probabilities that do not sum to 1 in row 1; every row must sum to 1",
        ),
        (
            [[1.5, -0.5], [0.5, 0.5], [-0.1, 1.0]],
            "probs.csv has probabilities outside 0 to 1 in rows 0, 2; they must lie between",
        ),
        (
            [[3, 1], [0, 4]],
            "probs.csv has probabilities outside 0 to 1 in rows 0, 1; they must lie between",
        ),
        (
            [[0.5, 0.5], [NAN, 1.0]],
            "probs.csv has probabilities that are not numbers in row 1; they must lie between",
        ),
        (
            [[INF, 0.0]],
            "probs.csv has probabilities that are not numbers in row 0; they must lie between",
        ),
        ([0.5, 0.5], "probs.csv has shape [2]; probabilities must be a table"),
        ([[1.0]], "probs.csv has shape [1, 1]; probabilities must be a table"),
        ([["a", "b"]], "probs.csv holds <U1 values; probabilities must be numbers"),
        (
            [[0.5, 0.5], [1.0]],
            "probs.csv has rows of different lengths; every row needs one number per class",
        ),
    ],
)
def test_bad_probabilities_are_named(probs, message):
    with pytest.raises(InputError, match=re.escape(message)):
        VoteTable.from_probs(probs, source="probs.csv")


def test_rounded_probabilities_are_accepted_and_sum_to_1():
    probs = VoteTable.from_probs([[0.333, 0.333, 0.333], [0.3334, 0.3333, 0.3339]]).probs
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-15)
    np.testing.assert_allclose(probs[0], 1 / 3, rtol=1e-15)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_the_number_type_of_counts_does_not_matter(dtype):
    votes = VoteTable(np.array([[1, 0, 1], [0, 1, 0]], dtype=dtype))
    assert votes.counts.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert votes.probs.tolist() == [[0.5, 0, 0.5], [0, 1, 0]]


def test_many_votes_of_a_small_number_type_do_not_overflow():
    assert VoteTable(np.full((1, 4), 255, dtype=np.uint8)).probs.tolist() == [[0.25] * 4]
    assert VoteTable([[2**30, 2**30 - 1]]).probs.sum() == 1


def test_cifar10h_is_the_published_table(real_data):
    votes = VoteTable(np.load(real_data / "cifar-10h" / "cifar10h-counts.npy"))
    assert votes.counts.shape == (10_000, 10)
    assert (votes.counts.sum(1).min(), votes.counts.sum(1).max()) == (47, 63)
    assert round(votes.unanimous.mean(), 3) == 0.439
    np.testing.assert_array_equal(
        votes.probs, np.load(real_data / "cifar-10h" / "cifar10h-probs.npy")
    )


def test_cifar10h_majority_agrees_with_the_cifar10_labels(real_data):
    votes = VoteTable(np.load(real_data / "cifar-10h" / "cifar10h-counts.npy"))
    labels = np.fromfile(
        real_data / "cifar-10-batches-bin" / "test_batch.bin", dtype=np.uint8
    ).reshape(10_000, 3073)[:, 0]
    assert (votes.majority == labels).mean() == pytest.approx(0.9921, abs=1e-12)
