"""What functions of each item, drift, detection and scores taken out of a collection are given: the
right number, or one sentence.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torchmetrics import Metric

import metrics
from core.errors import InputError
from lightning_modules.packed.pack_evaluation import mean_scores
from metrics import detection, functional
from metrics.cartography import item_values
from metrics.drift import prediction_drift
from tests.metrics.test_inputs import NAN, RIGHT, WRONG, equal, pair

OF_PAIRS: dict[str, Callable[..., Any]] = {
    name: getattr(functional, name)
    for name in ("item_nll", "item_hard_nll", "item_kl", "item_brier", "item_hit", "item_js")
}


def first_class(probs: Any, annotators: Any) -> torch.Tensor:
    return item_values(probs, annotators, np.zeros(len(probs), dtype=int))


def drift(before: Any, now: Any) -> dict[str, float]:
    return prediction_drift(before, now, {"all": np.ones(len(before), dtype=bool)})


NAMES = {
    functional.item_js: ("probs", "other_probs"),
    first_class: ("probs", "annotators"),
    drift: ("before", "now"),
}
FUNCTIONS = (*OF_PAIRS.values(), first_class, drift)


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("form", [np.asarray, torch.from_numpy], ids=["numpy", "torch"])
def test_every_function_of_items_says_which_argument_is_no_distribution(case: str, form: Callable):
    wrong, sentence = WRONG[case]
    right = np.full(wrong.shape, 1 / wrong.shape[1])
    for function in FUNCTIONS:
        if function is drift and "NaN" in case:
            assert np.isnan(drift(form(wrong), form(right))["all"])
            continue
        first, second = NAMES.get(function, ("probs", "target_probs"))
        for name, given_as in ((first, (wrong, right)), (second, (right, wrong))):
            with pytest.raises(InputError, match=f"^{re.escape(sentence.format(name))}$"):
                function(*map(form, given_as))
    with pytest.raises(InputError, match=f"^{re.escape(sentence.format('probs'))}$"):
        functional.entropy(form(wrong))


def test_tables_of_many_models_are_scored_and_refused_as_one_is():
    probs, annotator_probs = (torch.from_numpy(table) for table in pair())
    other = torch.from_numpy(pair(seed=1)[0])
    both = torch.stack([probs, other])
    equal(
        functional.entropy(both),
        torch.stack([functional.entropy(probs), functional.entropy(other)]),
    )
    for function in OF_PAIRS.values():
        one_by_one = [function(table, annotator_probs) for table in (probs, other)]
        equal(function(both, annotator_probs), torch.stack(one_by_one))
        equal(function(both[0, 3], annotator_probs[3]), one_by_one[0][3])
        equal(
            function(annotator_probs, both),
            torch.stack([function(annotator_probs, table) for table in (probs, other)]),
        )
        with pytest.raises(
            InputError,
            match=r"^probs looks like logits, numbers down to -?[\d.]+ that do not sum to 1; "
            r"apply softmax",
        ):
            function(both.log(), annotator_probs)
    values = item_values(both, annotator_probs, annotator_probs.argmax(1))
    equal(
        values,
        torch.stack(
            [
                item_values(table, annotator_probs, annotator_probs.argmax(1))
                for table in (probs, other)
            ],
            1,
        ),
    )


def test_no_items_have_no_values_but_are_no_mistake():
    none = np.zeros((0, 3))
    assert functional.entropy(none).shape == (0,)
    for function in OF_PAIRS.values():
        assert function(none, none).shape == (0,)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 2), (4, 2)),
        ((3, 2), (3, 3)),
        ((3, 2), (1, 2)),
        ((2, 3, 2), (2, 2)),
        ((4, 3, 2), (2, 3, 2)),
    ],
)
def test_shapes_that_do_not_fit_are_told(shapes: tuple[tuple[int, ...], tuple[int, ...]]):
    tables = [np.full(shape, 1 / shape[-1]) for shape in shapes]
    for function in FUNCTIONS:
        first, second = NAMES.get(function, ("probs", "target_probs"))
        messages = (
            f"{first} of shape {list(shapes[0])} and {second} of shape {list(shapes[1])} "
            "do not fit together; they must have the same items"
        )
        with pytest.raises(InputError, match=f"^{re.escape(messages)}"):
            function(*tables)


@pytest.mark.parametrize("table", [0.5, [0.5], [[1.0], [1.0]]])
def test_one_class_is_no_distribution(table: Any):
    for function in (functional.entropy, lambda given: functional.item_kl(given, given)):
        with pytest.raises(
            InputError,
            match=r"^probs has shape \[.*\]; its last dimension must hold two classes or more\.$",
        ):
            function(table)


@pytest.mark.parametrize("target", [[0.0, 1.0], [0, 2], [0, -1], [0], [[0, 1], [0, 1]]])
def test_target_classes_that_are_none_are_told(target: Any):
    table = np.full((2, 2), 0.5)
    with pytest.raises(
        InputError,
        match=r"^target_class must hold whole numbers from 0 to 1, one for each item of probs\.$",
    ):
        item_values(table, table, target)


@pytest.mark.parametrize(
    "mask", [np.array([0, 1, 1]), np.array([True, False]), torch.tensor([1, 0, 1])]
)
def test_a_stratum_that_is_no_mask_is_told(mask: Any):
    table = np.full((3, 2), 0.5)
    with pytest.raises(
        InputError,
        match=r"^strata has some of shape .*; it must be a mask, True or False for each item\.$",
    ):
        prediction_drift(table, table, {"some": mask})


def test_a_member_of_a_pack_that_diverges_is_nan_and_the_others_are_not():
    probs, annotator_probs = (torch.from_numpy(table) for table in pair())
    sound, lost = mean_scores(torch.stack([probs, torch.full_like(probs, NAN)]), annotator_probs)
    collection = metrics.mean_metrics("")
    collection.update(probs, annotator_probs)
    assert sound == pytest.approx(
        {name: value.item() for name, value in collection.compute().items()}
    )
    assert all(np.isnan(value) for value in lost.values())


def test_the_drift_of_a_model_that_diverged_is_nan_and_of_anything_else_refused():
    probs, now = (torch.from_numpy(table) for table in pair())
    before, lost = probs.clone(), torch.arange(30) < 10
    before[lost] = NAN
    result = prediction_drift(before, now, {"lost": lost, "sound": ~lost})
    assert np.isnan(result["lost"])
    assert result["sound"] == pytest.approx(functional.item_js(probs, now)[~lost].mean().item())
    before[20] *= 50
    with pytest.raises(
        InputError,
        match=f"^{re.escape(f'before does not sum to 1 in row 20: row sums are 1 to 50; {RIGHT}')}$",  # noqa: E501
    ):
        prediction_drift(before, now, {"lost": lost})


# Detection


@pytest.mark.parametrize("score", [detection.auroc, detection.aupr, detection.fpr95])
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([NAN, 1.0], "{} has scores that are not finite numbers in row 0; each item needs one."),
        (
            torch.tensor([1.0, torch.inf, -torch.inf]),
            "{} has scores that are not finite numbers in rows 1, 2; each item needs one.",
        ),
        ([], "{} has shape [0]; it must be a vector of at least one score."),
        (np.ones((2, 3)), "{} has shape [2, 3]; it must be a vector of at least one score."),
        (1.0, "{} has shape []; it must be a vector of at least one score."),
        (["a"], "{} holds <U1 values; they must be real numbers."),
    ],
)
def test_detection_takes_vectors_of_finite_scores(score: Callable, values: Any, sentence: str):
    for name, given_as in (("inside", (values, [2.0, 3.0])), ("outside", ([2.0, 3.0], values))):
        with pytest.raises(InputError, match=f"^{re.escape(sentence.format(name))}$"):
            score(*given_as)


# Scores in a collection, and taken out of it


@pytest.mark.parametrize("of", [metrics.mean_metrics, metrics.every_metric])
def test_a_score_that_is_taken_out_of_its_collection_checks_what_it_is_given(of: Callable):
    probs, annotator_probs = pair()
    for name in of("t/"):
        collection = of("t/")
        # all are looked at together here, and that must not last
        collection.update(probs, annotator_probs)
        with pytest.raises(
            InputError, match=r"^target_probs (looks like counts|does not sum to 1)"
        ):
            update_and_compute(collection[name], probs, (50 * annotator_probs).round() + 1)


def update_and_compute(metric: Metric, *tables: Any) -> Any:
    metric.update(*tables)
    return metric.compute()


@pytest.mark.parametrize("of", [metrics.mean_metrics, metrics.every_metric])
def test_tables_that_all_scores_of_a_collection_are_given_are_looked_at_once(
    of: Callable, monkeypatch: pytest.MonkeyPatch
):
    looks = []
    monkeypatch.setattr("metrics.scores.check", lambda *tables, nan_ok: looks.append(nan_ok))
    collection = of("t/")
    for _ in range(3):
        collection.update(*pair())
    assert len(looks) == 3
    collection(*pair())
    assert len(looks) == 4


def test_what_is_wrong_on_a_device_is_told_by_every_score_of_a_collection():
    """There, nothing looks at it before `compute`. A CPU among other processes does the same."""
    probs, annotator_probs = pair()
    collection = metrics.mean_metrics("t/")
    for metric in collection.values():
        metric.distributed_available_fn = lambda: True
    collection.update(probs, 50 * annotator_probs)
    for metric in collection.values():
        metric.distributed_available_fn = lambda: False
        with pytest.raises(InputError, match=r"^target_probs does not sum to 1: row sums are 50; "):
            metric.compute()


# Tensors that are part of a graph


def test_scores_of_tensors_with_gradients_are_those_of_their_values():
    tables = torch.from_numpy(pair()[0]), torch.from_numpy(pair()[1])
    with_gradients = tables[0].clone().requires_grad_(), tables[1].clone().requires_grad_()
    same = pytest.approx(metrics.every_score(*tables), rel=0, abs=0, nan_ok=True)
    assert metrics.every_score(*with_gradients) == same
    equal(functional.smooth_ece(*with_gradients), functional.smooth_ece(*tables))
    for kind in (metrics.SoftNLL, metrics.SmoothECE, metrics.BrierDecomposition):
        equal(update_and_compute(kind(), *with_gradients), update_and_compute(kind(), *tables))
    functional.soft_nll(*with_gradients).backward()  # a score may also be learned from
    assert all(table.grad is not None for table in with_gradients)
