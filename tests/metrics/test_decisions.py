"""F1, AUROC and risk-coverage against scikit-learn and plain definitions."""

import itertools

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score, roc_auc_score

from metrics import functional

RNG = np.random.default_rng(1)


def votes_of(items: int, classes: int, votes: int) -> np.ndarray:
    return RNG.multinomial(votes, RNG.dirichlet(np.full(classes, 0.4), items)) / votes


@pytest.mark.parametrize(("items", "classes"), [(300, 3), (8, 9)])
def test_macro_f1_agrees_with_sklearn_also_where_classes_are_missing(items: int, classes: int):
    probs, targets = votes_of(items, classes, 5), votes_of(items, classes, 4)
    labels, predicted = targets.argmax(1), probs.argmax(1)
    expected = f1_score(labels, predicted, average="macro", zero_division=0)
    assert functional.macro_f1(probs, targets).item() == pytest.approx(expected, abs=1e-12)
    micro = f1_score(labels, predicted, average="micro")
    assert functional.hard_accuracy(probs, targets).item() == pytest.approx(micro, abs=1e-12)


def test_disagreement_auroc_agrees_with_sklearn():
    probs, targets = votes_of(300, 3, 6), votes_of(300, 3, 3)  # entropies tie
    expected = roc_auc_score(targets.max(1) < 1, np.round(stats.entropy(probs, axis=1), 12))
    assert 0 < expected < 1
    value = functional.disagreement_auroc(probs, targets).item()
    assert value == pytest.approx(expected, abs=1e-12)
    constant = np.full_like(probs, 1 / 3)
    assert functional.disagreement_auroc(constant, targets).item() == 0.5
    assert functional.disagreement_auroc(targets, targets).item() == 1


@pytest.mark.parametrize("votes", [1, 4])
def test_disagreement_auroc_is_not_defined_where_all_items_are_of_one_kind(votes: int):
    """A single vote is unanimous."""
    targets = np.eye(3)[RNG.integers(3, size=20)] if votes == 1 else np.full((20, 2), 0.5)
    probs = RNG.dirichlet(np.ones(targets.shape[1]), 20)
    assert functional.disagreement_auroc(probs, targets).isnan()


def area(confidence: np.ndarray, wrong: np.ndarray) -> float:
    """Of the most confident first, the mean of all means."""
    order = np.argsort(-confidence, kind="stable")
    risks = [wrong[order[:kept]].mean() for kept in range(1, len(order) + 1)]
    return float(np.mean(risks))


@pytest.mark.parametrize("against", ["majority", "annotators"])
def test_aurc_agrees_with_its_definition(against):
    probs, targets = RNG.dirichlet(np.ones(3), 100), votes_of(100, 3, 5)
    top = probs.argmax(1)
    chosen = targets[np.arange(100), top] if against == "annotators" else targets.argmax(1) == top
    expected = area(probs.max(1), 1.0 - chosen)
    assert functional.aurc(probs, targets, against).item() == pytest.approx(expected, abs=1e-12)


def test_aurc_by_hand():
    probs = [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]]
    targets = [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert functional.aurc(probs, targets).item() == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_aurc_of_equal_confidences_is_that_of_any_order_on_average():
    probs = np.array([[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.7, 0.3], [0.4, 0.6], [0.6, 0.4]])
    targets = np.array([[1, 0], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0]])
    wrong = (probs.argmax(1) != targets.argmax(1)).astype(float)
    orders = map(list, itertools.permutations(range(6)))
    expected = np.mean([area(probs.max(1)[order], wrong[order]) for order in orders])
    assert functional.aurc(probs, targets).item() == pytest.approx(expected, abs=1e-12)


def test_a_model_that_says_the_same_of_all_items_has_the_risk_of_all_items_at_any_coverage():
    targets = votes_of(50, 3, 5)
    constant = np.tile([0.5, 0.3, 0.2], (50, 1))
    expected = 1 - functional.hard_accuracy(constant, targets).item()
    assert functional.aurc(constant, targets).item() == pytest.approx(expected, abs=1e-12)
