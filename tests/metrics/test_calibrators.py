"""Calibrators against scipy's optimizers on objectives written down anew, and what must hold of
them whatever the data.
"""

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax, softmax, xlogy

from core.errors import InputError
from metrics.calibrators import FORMS, KINDS, LAMBDA, RIDGE, fit_calibrator
from metrics.functional import equal_mass_ece


def items(
    seed: int, number: int = 400, classes: int = 4, sure: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a model that is surer than people, and people's distributions of few votes."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(number, classes)) * 1.5
    votes = rng.multinomial(7, softmax(truth, 1)) / 7
    return sure * truth + rng.normal(size=truth.shape), votes


def nll(probs: np.ndarray, targets: np.ndarray) -> float:
    return float(-(targets * np.log(probs)).sum(1).mean())


def one_hot(targets: np.ndarray) -> np.ndarray:
    return np.eye(targets.shape[1])[targets.argmax(1)]


@pytest.mark.parametrize("to", [np.asarray, one_hot])
def test_temperature_is_the_one_that_brent_finds(to):
    logits, targets = items(0)[0], to(items(0)[1])

    def loss(log_temperature: float) -> float:
        scaled = log_softmax(logits / np.exp(log_temperature), 1)
        return float(-(targets * scaled).sum(1).mean())

    found: Any = minimize_scalar(loss, bounds=(-4, 4), method="bounded", options={"xatol": 1e-10})
    fitted = fit_calibrator("temperature", logits, targets)
    assert 1 / fitted.weights == pytest.approx(np.exp(found.x), rel=1e-4)


@pytest.mark.parametrize("to", [np.asarray, one_hot])
@pytest.mark.parametrize("kind", ["vector", "dirichlet"])
def test_weights_and_biases_are_those_that_bfgs_finds(kind: str, to):
    logits, targets = items(1)[0], torch.from_numpy(to(items(1)[1]))
    classes = logits.shape[1]
    x = torch.from_numpy(logits if kind == "vector" else log_softmax(logits, 1))
    off = ~torch.eye(classes, dtype=torch.bool)

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = torch.tensor(flat, requires_grad=True)
        weights = theta[:-classes] if kind == "vector" else theta[:-classes].reshape(classes, -1)
        bias = theta[-classes:]
        matrix = torch.diag(weights) if kind == "vector" else weights
        scaled = x @ matrix.T + bias
        value = torch.nn.functional.cross_entropy(scaled, targets)
        value = value + RIDGE * ((matrix - torch.eye(classes)) ** 2).sum() + RIDGE * (bias**2).sum()
        if kind == "dirichlet":  # Kull et al. 2019, Section 3.3
            value = value + LAMBDA * ((matrix[off] ** 2).mean() + (bias**2).mean())
        value.backward()
        assert theta.grad is not None
        return value.item(), theta.grad.numpy()

    start = np.concatenate([np.ones(classes) if kind == "vector" else np.eye(classes).ravel()])
    found = minimize(
        loss, [*start, *np.zeros(classes)], jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    fitted = fit_calibrator(kind, logits, targets.numpy())
    ours = loss(np.concatenate([fitted.weights.ravel(), fitted.bias]))
    assert ours[0] == pytest.approx(found.fun, abs=1e-10)
    assert np.abs(ours[1]).max() < 1e-6  # the slope, in the other's words
    np.testing.assert_allclose(fitted.weights.ravel(), found.x[:-classes], atol=2e-3)


@given(
    seed=st.integers(0, 10_000),
    classes=st.integers(2, 6),
    number=st.integers(1, 60),
    sure=st.sampled_from([0.01, 1.0, 30.0]),
    kind=st.sampled_from(list(KINDS)),
    hard=st.booleans(),
)
def test_fitted_items_are_never_scored_worse(seed, classes, number, sure, kind, hard):
    logits, targets = items(seed, number, classes, sure)
    targets = one_hot(targets) if hard else targets
    probs = fit_calibrator(kind, logits, targets)(logits)
    np.testing.assert_allclose(probs.sum(1), 1)
    before = -(targets * log_softmax(logits, 1)).sum(1).mean()
    assert -xlogy(targets, probs).sum(1).mean() <= before + 1e-9


def test_more_freedom_fits_no_worse():
    logits, targets = items(2)
    losses = [nll(fit_calibrator(kind, logits, targets)(logits), targets) for kind in KINDS]
    assert losses[0] > losses[1]
    free = nll(fit_calibrator("dirichlet", logits, targets, dirichlet_lambda=0.0)(logits), targets)
    assert losses[2] > free


def test_a_calibrated_model_keeps_its_temperature():
    rng = np.random.default_rng(3)
    logits = rng.normal(size=(20_000, 5)) * 2
    votes = rng.multinomial(3, softmax(logits, 1)) / 3
    for targets in (votes, rng.multinomial(1, softmax(logits, 1))):
        assert fit_calibrator("temperature", logits, targets).weights == pytest.approx(1, abs=0.03)
    weights = fit_calibrator("dirichlet", logits, votes).weights
    np.testing.assert_allclose(weights, np.eye(5), atol=0.06)


def test_the_temperature_that_was_put_on_is_taken_off():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=(20_000, 3)) * 2
    targets = softmax(truth, 1)
    for temperature in (0.2, 5.0):
        fitted = fit_calibrator("temperature", truth / temperature, targets)
        assert 1 / fitted.weights == pytest.approx(1 / temperature, rel=1e-3)


def test_fitted_to_the_majority_a_model_is_surer_than_people():
    logits, targets = items(5, number=4000)
    fresh, people = items(6, number=4000)
    errors = {}
    for name, labels in (("distributions", targets), ("majority", one_hot(targets))):
        fitted = fit_calibrator("temperature", logits, labels)
        errors[name] = float(equal_mass_ece(fitted(fresh), people, against="annotators"))
    assert errors["distributions"] < 0.3 * errors["majority"]


def test_a_large_lambda_leaves_the_diagonal_alone():
    logits, targets = items(7)
    fitted = fit_calibrator("dirichlet", logits, targets, dirichlet_lambda=1e6)
    off = fitted.weights - np.diag(np.diag(fitted.weights))
    assert np.abs(off).max() < 1e-5
    assert np.abs(np.diag(fitted.weights) - 1).min() > 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_items_that_are_all_predicted_right_have_a_finite_calibrator(kind: str):
    logits = np.eye(3)[[0, 1, 2, 0]] * 4.0
    probs = fit_calibrator(kind, logits, np.eye(3)[[0, 1, 2, 0]])(logits)
    assert np.isfinite(np.log(probs)).all()
    assert probs.max(1).min() > 0.99


@pytest.mark.parametrize("kind", KINDS)
def test_constant_logits_and_a_class_without_votes(kind: str):
    targets = np.array([[0.5, 0.5, 0.0]] * 4)
    probs = fit_calibrator(kind, np.zeros((4, 3)), targets)(np.zeros((4, 3)))
    assert np.isfinite(probs).all()
    assert nll(probs[:, :2], targets[:, :2]) <= np.log(3) + 1e-9


def test_it_is_the_same_every_time_and_takes_log_probabilities():
    logits, targets = items(8)
    once, again = (fit_calibrator("dirichlet", logits, targets) for _ in range(2))
    assert once.weights.tobytes() == again.weights.tobytes()
    probs = softmax(logits, 1)
    for kind in ("temperature", "dirichlet"):  # vector scaling depends on what logits share
        np.testing.assert_allclose(
            fit_calibrator(kind, np.log(probs), targets)(np.log(probs)),
            fit_calibrator(kind, logits, targets)(logits),
            atol=1e-6,
        )


@pytest.mark.parametrize(
    ("logits", "targets", "lam", "sentence"),
    [
        ([[0.0, np.inf]], [[1.0, 0.0]], 0.1, "not finite numbers in row 0"),
        (
            [[0.0, 1.0]],
            [[1.0, 0.0, 0.0]],
            0.1,
            "logits of shape [1, 2] and targets of",
        ),
        (np.zeros((0, 2)), np.zeros((0, 2)), 0.1, "tables of the same items"),
        ([[0.0, 1.0]], [[1.0, 0.0]], -1.0, "dirichlet_lambda is -1.0; it must be"),
    ],
)
def test_what_cannot_be_fitted_to_is_told(logits, targets, lam, sentence: str):
    with pytest.raises(InputError, match=re.escape(sentence)):
        fit_calibrator("dirichlet", np.array(logits), np.array(targets), lam)


def test_the_names_of_all_forms():
    assert list(FORMS)[:4] == [
        "temperature",
        "temperature_votes",
        "temperature_majority",
        "vector",
    ]
    assert FORMS["dirichlet_votes"].words == "Dirichlet scaling to single votes"
