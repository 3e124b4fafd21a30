"""What scores are given: torch, numpy and lists alike; and one sentence for what is no
distribution, wherever it is found.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import metrics
from core.errors import InputError
from metrics import detection, functional
from metrics.cartography import item_values
from metrics.drift import prediction_drift
from metrics.inputs import TOLERANCE, check, check_evidence, evidence

SCORES: dict[str, Callable[..., Any]] = {
    name: getattr(functional, name)
    for name in (
        "soft_nll",
        "hard_nll",
        "kl_divergence",
        "soft_brier",
        "hard_accuracy",
        "entropy_correlation",
        "confidence_and_outcome",
        "equal_mass_ece",
        "smooth_ece",
        "brier_decomposition",
    )
}
OF_ITEMS = (
    functional.item_nll,
    functional.item_hard_nll,
    functional.item_kl,
    functional.item_js,
    functional.item_brier,
    functional.item_hit,
)
MEANS = (
    metrics.SoftNLL,
    metrics.HardNLL,
    metrics.KLDivergence,
    metrics.SoftBrier,
    metrics.HardAccuracy,
)
OF_ALL_ITEMS = (
    metrics.EntropyCorrelation,
    metrics.EqualMassECE,
    metrics.SmoothECE,
    metrics.BrierDecomposition,
)
RIGHT = "each row must hold numbers of 0 or more that sum to 1."


def pair(items: int = 30, classes: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, 0.7), items), rng.dirichlet(np.full(classes, 0.5), items)


def read_only(table: np.ndarray) -> np.ndarray:
    table = table.copy()
    table.flags.writeable = False
    return table


def equal(result: Any, expected: Any) -> None:
    torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


# Torch, numpy and lists


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    "float64": lambda table: table,
    "read-only": read_only,
    "reversed": lambda table: table[::-1].copy()[::-1],
    "column by column": np.asfortranarray,
    "the other byte order": lambda table: table.astype(">f8"),
    "a list": lambda table: table.tolist(),
}


@pytest.mark.parametrize("form", FORMS)
def test_numpy_and_lists_give_what_torch_gives(form: str):
    tables = pair()
    tensors, given_as = (
        [torch.from_numpy(table) for table in tables],
        [FORMS[form](table) for table in tables],
    )
    for score in (*SCORES.values(), *OF_ITEMS, metrics.every_score):
        expected = score(*tensors)
        equal(score(*given_as), expected)
        equal(score(tensors[0], given_as[1]), expected)
    equal(functional.entropy(given_as[0]), functional.entropy(tensors[0]))
    for kind in (*MEANS, *OF_ALL_ITEMS):
        one, other = kind(), kind()
        one.update(*tensors)
        other.update(*given_as)
        equal(other.compute(), one.compute())


def test_numpy_is_taken_where_no_distributions_are_asked_for():
    inside, outside = np.random.default_rng(5).random((2, 30))
    for score in (detection.auroc, detection.aupr, detection.fpr95):
        equal(score(inside, outside), score(torch.from_numpy(inside), torch.from_numpy(outside)))
    for kind in ("spearman", "pearson"):
        equal(
            functional.correlation(inside, outside, kind),
            functional.correlation(torch.tensor(inside), torch.tensor(outside), kind),
        )
    outcome = outside > 0.5
    equal(
        functional.binned_gap(inside, outcome, 5),
        functional.binned_gap(torch.from_numpy(inside), torch.from_numpy(outcome), 5),
    )
    probs, annotator_probs = pair()
    tensors = [
        torch.from_numpy(table) for table in (probs, annotator_probs, annotator_probs.argmax(1))
    ]
    equal(item_values(probs, annotator_probs, annotator_probs.argmax(1)), item_values(*tensors))
    some = np.arange(30) < 7
    assert prediction_drift(probs, annotator_probs, {"some": some}) == prediction_drift(
        tensors[0], tensors[1], {"some": torch.from_numpy(some)}
    )


def test_float32_arrays_and_whole_numbers_that_are_distributions_pass():
    probs, _ = pair()
    single = probs.astype(np.float32)
    hard = np.eye(4, dtype=int)[probs.argmax(1)]
    for targets in (
        hard,
        hard.astype(bool),
        hard.astype(np.uint8),
        torch.from_numpy(hard),
        torch.from_numpy(hard == 1),
    ):
        equal(
            functional.soft_nll(single, targets),
            functional.soft_nll(torch.from_numpy(single), torch.from_numpy(hard.astype(float))),
        )
        assert functional.hard_accuracy(single, targets) == 1


# What is no distribution


def changed(**rows: list[float]) -> np.ndarray:
    """A table of three classes whose rows are distributions but for these."""
    table = np.tile([0.5, 0.25, 0.25], (6, 1))
    for name, row in rows.items():
        table[int(name[3:])] = row
    return table


NAN, INF = float("nan"), float("inf")
WRONG = {
    "counts": (
        np.array([[30, 20, 0], [0, 1, 0], [5, 0, 45]]),
        "{} looks like counts, whole numbers that sum to up to 50 in rows 0, 2; divide each row "
        "by its sum.",
    ),
    "counts as floats": (
        np.array([[1.0, 2.0], [2.0, 2.0], [0.0, 0.0], [3.0, 0.0], [3.0, 1.0]]),
        "{} looks like counts, whole numbers that sum to up to 4 in rows 0, 1, 2 and 2 more; "
        "divide each row by its sum.",
    ),
    "logits": (
        np.array([[2.5, -1.5, 0.25], [0.5, 0.5, 3.0]]),
        "{} looks like logits, numbers down to -1.5 that do not sum to 1 in rows 0, 1; apply "
        "softmax to each row.",
    ),
    "log-probabilities": (
        np.log(changed()),
        "{} looks like logits, numbers down to -1.38629 that do not sum to 1 in rows 0, 1, 2 and "
        "3 more; apply softmax to each row.",
    ),
    "negative": (
        changed(row1=[1.5, -0.5, 0.0], row3=[1.0, 1e-9, -1e-9]),
        f"{{}} has negative numbers in rows 1, 3; {RIGHT}",
    ),
    "NaN": (
        changed(row2=[NAN, 0.5, 0.5]),
        f"{{}} has values that are not finite numbers in row 2; {RIGHT}",
    ),
    "all NaN": (
        np.full((2, 3), NAN),
        f"{{}} has values that are not finite numbers in rows 0, 1; {RIGHT}",
    ),
    "infinite": (
        changed(row0=[INF, 0.0, 0.0]),
        f"{{}} has values that are not finite numbers in row 0; {RIGHT}",
    ),
    "minus infinity": (
        changed(row5=[-INF, 0.5, 0.5]),
        f"{{}} has values that are not finite numbers in row 5; {RIGHT}",
    ),
    "too little": (
        changed(row1=[0.5, 0.2, 0.2]),
        f"{{}} does not sum to 1 in row 1: row sums are 0.9 to 1; {RIGHT}",
    ),
    "too much": (
        changed() * 1.25,
        f"{{}} does not sum to 1 in rows 0, 1, 2 and 3 more: row sums are 1.25; {RIGHT}",
    ),
    "a row of zeros": (
        changed(row0=[0, 0, 0]),
        f"{{}} does not sum to 1 in row 0: row sums are 0 to 1; {RIGHT}",
    ),
    "two decimals": (
        np.full((1, 3), 0.33),
        f"{{}} does not sum to 1 in row 0: row sums are 0.99; {RIGHT}",
    ),
}


def places(wrong: np.ndarray) -> list[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """The table in the place of either argument, and the argument's name."""
    right = np.full(wrong.shape, 1 / wrong.shape[1])
    return [("probs", (wrong, right)), ("target_probs", (right, wrong))]


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_every_score_says_which_argument_is_no_distribution_and_what_it_looks_like(
    case: str, form: Callable
):
    wrong, sentence = WRONG[case]
    for name, tables in places(wrong):
        expected = f"^{re.escape(sentence.format(name))}$"
        given_as = [form(table) for table in tables]
        for score in (*SCORES.values(), metrics.every_score):
            with pytest.raises(InputError, match=expected):
                score(*given_as)
        for kind in MEANS:
            with pytest.raises(InputError, match=expected):
                kind().update(*given_as)
        for kind in OF_ALL_ITEMS:
            metric = kind()
            metric.update(*given_as)
            with pytest.raises(InputError, match=expected):
                metric.compute()


@pytest.mark.parametrize("case", WRONG)
def test_evidence_tells_afterwards_what_a_look_at_the_rows_tells_but_for_their_numbers(case: str):
    """Also where each row came in a batch of its own."""
    wrong, sentence = WRONG[case]
    for name, tables in places(wrong):
        batches = zip(
            *(torch.from_numpy(table.astype(float)).split(1) for table in tables), strict=True
        )
        seen = torch.stack(
            [torch.stack([evidence(table) for table in batch]) for batch in batches]
        ).amax(0)
        with pytest.raises(InputError) as error:
            check_evidence(seen)
        assert str(error.value) == re.sub(
            r" in rows? \d+(, \d+)*( and \d+ more)?", "", sentence.format(name)
        )


def test_the_first_argument_is_named_where_both_are_wrong():
    with pytest.raises(InputError, match=r"^probs looks like logits"):
        functional.soft_nll([[3.0, -1.0]], [[30, 20]])


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        (
            ((3, 2), (4, 2)),
            r"probs has shape \[3, 2\] and target_probs \[4, 2\]; both must have the same items "
            r"and classes.",
        ),
        (
            ((3, 2), (3, 3)),
            r"probs has shape \[3, 2\] and target_probs \[3, 3\]; both must have the same items "
            r"and classes.",
        ),
        (
            ((3, 2), (3,)),
            r"target_probs has shape \[3\]; it must be a table \[items, classes\] of two classes "
            r"or more.",
        ),
        (
            ((2,), (2,)),
            r"probs has shape \[2\]; it must be a table \[items, classes\] of two classes or more.",
        ),
        (
            ((5, 3, 2), (3, 2)),
            r"probs has shape \[5, 3, 2\]; it must be a table \[items, classes\] of two classes "
            r"or more.",
        ),
        (
            ((3, 1), (3, 1)),
            r"probs has shape \[3, 1\]; it must be a table \[items, classes\] of two classes or "
            r"more.",
        ),
        (
            ((), ()),
            r"probs has shape \[\]; it must be a table \[items, classes\] of two classes or more.",
        ),
    ],
)
def test_shapes_that_do_not_fit_are_told(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], sentence: str
):
    tables = [np.full(shape, 1 / (shape or (1,))[-1]) for shape in shapes]
    for score in SCORES.values():
        with pytest.raises(InputError, match=f"^{sentence}$"):
            score(*tables)
    for kind in (*MEANS, *OF_ALL_ITEMS, metrics.AllItems):
        with pytest.raises(InputError, match=f"^{sentence}$"):
            kind().update(*tables)


def test_no_rows_have_no_score_but_are_no_mistake_in_one_batch():
    none, some = [table[:0] for table in pair()], pair()
    for score in SCORES.values():
        with pytest.raises(
            InputError,
            match=r"^probs and target_probs have no rows; a score needs at least one item\.$",
        ):
            score(*none)
    for kind in (*MEANS, *OF_ALL_ITEMS):
        metric, expected = kind(), kind()
        metric.update(*none)
        with pytest.raises(InputError, match="have no rows"):
            metric.compute()
        metric.update(*some)
        expected.update(*some)
        equal(metric.compute(), expected.compute())


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            [[0.5, 0.5], [1.0]],
            "probs has rows of different lengths; every row needs one number per class.",
        ),
        ([["a", "b"]], "probs holds <U1 values; they must be real numbers."),
        (np.array([[1j, 0]]), "probs holds complex128 values; they must be real numbers."),
        (torch.tensor([[1j, 0]]), "probs holds torch.complex64 values; they must be real numbers."),
        (None, "probs holds object values; they must be real numbers."),
    ],
)
def test_what_is_no_table_of_numbers_is_told(values: Any, sentence: str):
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        functional.soft_nll(values, [[0.5, 0.5]])


def test_a_refused_batch_leaves_no_trace():
    probs, annotator_probs = pair()
    for kind in (*MEANS, lambda: metrics.mean_metrics(""), lambda: metrics.every_metric("")):
        metric, expected = kind(), kind()
        metric.update(probs, annotator_probs)
        expected.update(probs, annotator_probs)
        with pytest.raises(InputError):
            metric.update(probs, 50 * annotator_probs)
        equal(metric.compute(), expected.compute())


# What is within rounding


def test_rounding_of_every_kind_passes():
    logits = torch.from_numpy(np.random.default_rng(3).normal(0, 3, (200, 1000)))
    even = torch.full((2, 3), 1 / 3)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        for table in (logits.to(dtype).softmax(-1), logits.softmax(-1).to(dtype), even.to(dtype)):
            check(table, table)
            check(table.float(), table.float())  # numpy has no bfloat16
            check_evidence(torch.stack([evidence(table), evidence(table)]))
    for classes in (3, 10):
        rounded = np.round(pair(500, classes, seed=4)[0], 3)
        assert (rounded.sum(1) != 1).any()
        functional.kl_divergence(rounded, rounded)
    functional.soft_nll(np.full((1, 3), 0.333), np.array([[0.334, 0.333, 0.334]]))


@st.composite
def tables(draw):
    shape = draw(st.tuples(st.integers(1, 12), st.integers(2, 6)))
    weights = draw(
        arrays(np.float64, shape, elements=st.floats(0, 1e6) | st.integers(0, 3).map(float))
    )
    weights[weights.sum(1) == 0] = 1
    return weights / weights.sum(1, keepdims=True), draw(
        st.sampled_from([np.float64, np.float32, np.float16])
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(tables(), st.integers(0, 11))
def test_any_distribution_passes_and_any_row_twice_as_large_is_refused(drawn, row: int):
    table, kind = drawn[0].astype(drawn[1]), np.full(drawn[0].shape, 1 / drawn[0].shape[1])
    functional.soft_nll(table, kind)
    functional.soft_nll(kind, table)
    row %= len(table)
    table[row] *= 2
    for name, given_as in (("probs", (table, kind)), ("target_probs", (kind, table))):
        with pytest.raises(InputError, match=rf"^{name} .* in row {row}\b"):
            functional.soft_nll(*given_as)
        with pytest.raises(InputError, match=f"^{name} "):
            check_evidence(torch.stack([evidence(torch.from_numpy(values)) for values in given_as]))


def test_the_tolerance_is_no_smaller_than_that_of_vote_tables():
    from datamodules.votes.table import SUM_TOLERANCE

    assert TOLERANCE >= SUM_TOLERANCE


# A training that diverges


def test_mean_metrics_of_a_model_that_diverged_are_nan_and_of_anything_else_refused():
    probs, annotator_probs = (torch.from_numpy(table) for table in pair())
    collection = metrics.mean_metrics("val/")
    collection.update(probs, annotator_probs)
    diverged = probs.clone()
    diverged[3] = NAN
    collection.update(diverged, annotator_probs)
    assert all(value.isnan() for value in collection.compute().values())
    for wrong in (
        (probs.log(), annotator_probs),
        (probs, 50 * annotator_probs),
        (probs, diverged),
        (probs / 0, annotator_probs),
    ):
        with pytest.raises(InputError):
            collection.update(*wrong)


# On a device


@pytest.mark.parametrize("kind", [*MEANS, *OF_ALL_ITEMS])
def test_update_waits_for_no_device(kind: type):
    """Tensors on the meta device hold no numbers, so any look at one is an error."""
    metric = kind().to("meta")
    for dtype in (torch.float64, torch.float32, torch.bfloat16):
        metric.update(
            torch.empty(5, 3, device="meta", dtype=dtype), torch.empty(5, 3, device="meta")
        )
        metric.update(np.full((5, 3), 1 / 3), np.full((5, 3), 1 / 3))
    with pytest.raises((RuntimeError, NotImplementedError)):
        metric.compute()
