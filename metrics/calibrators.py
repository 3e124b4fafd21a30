"""Calibrators: simple maps of a trained model's logits, fitted to held-out items.

What they are fitted to decides what they are calibrated against: fitted to the majority, as is
usual, a model learns to be surer than people are wherever these disagree.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from core.errors import InputError, name_rows

# Guo et al. 2017, "On Calibration of Modern Neural Networks", for the first two; Kull et al. 2019,
# "Beyond temperature scaling", for the third
KINDS = {
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "dirichlet": "Dirichlet scaling",
}
# What is fitted to, with the ending and the words that tell it: all of an item's votes as one
# distribution, one vote drawn for each item, or the most voted class
TARGETS = {
    "distributions": ("", ""),
    "votes": ("_votes", " to single votes"),
    "majority": ("_majority", " to the majority"),
}
# Of Dirichlet scaling's off-diagonal weights and biases (ODIR). Kull et al. search it for each
# model, and so should who has many items to fit to: few need a large one. Of 0 to 10, this had the
# least soft NLL on CIFAR-10H (1,000 fitted items; seeds 100 to 102, which no study reports), and on
# ChaosNLI (467) all from 0.1 on were within 0.01 % of the least.
LAMBDA = 10.0
# Of every distance from the identity: it decides only where fitted items leave it open, as where
# all are predicted right and no temperature would be low enough
RIDGE = 1e-6


@dataclass(frozen=True)
class Form:
    """A kind of calibrator and what it is fitted to; by its name, scores of what it makes of a
    model's predictions are told from the model's own: `kl_temperature_majority`.
    """

    name: str
    kind: str
    to: str  # one of TARGETS
    words: str


FORMS = {
    kind + ending: Form(kind + ending, kind, to, scaling + words)
    for (kind, scaling), (to, (ending, words)) in product(KINDS.items(), TARGETS.items())
}


@dataclass(frozen=True)
class Calibrator:
    """softmax(weights · x + bias), where x are logits, or for `dirichlet` log-probabilities.

    >>> cold = Calibrator("temperature", np.array(2.0), np.array(0.0))  # a temperature of 1/2
    >>> cold(np.log([[0.8, 0.2]])).round(3).tolist()
    [[0.941, 0.059]]
    """

    kind: str
    weights: np.ndarray  # [], [K] or [K, K], of temperature, vector and dirichlet
    bias: np.ndarray  # [], [K], [K]

    def __call__(self, logits: np.ndarray) -> np.ndarray:
        """Calibrated probabilities [N, K] of logits [N, K]; log-probabilities will do."""
        x = _inputs(self.kind, logits)
        scaled = x @ self.weights.T if self.kind == "dirichlet" else x * self.weights
        return np.exp(_log_softmax(scaled + self.bias))

    def as_plain(self) -> dict[str, Any]:
        """For a file."""
        return {
            "kind": self.kind,
            "weights": self.weights.tolist(),
            "bias": self.bias.tolist(),
        }


def fit_calibrator(
    kind: str, logits: np.ndarray, targets: np.ndarray, dirichlet_lambda: float = LAMBDA
) -> Calibrator:
    """The calibrator of a kind with the least mean cross-entropy to targets [N, K], which are
    distributions; one class of each row, for single labels.

    Dirichlet scaling adds lambda times the mean square of its off-diagonal weights, and of its
    biases. All of it is convex, so that there is one answer; a model's own predictions are within
    reach, so that the cross-entropy on these items never rises.

    >>> logits, people = np.log([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.7, 0.3], [0.3, 0.7]])
    >>> fit_calibrator("temperature", logits, people)(logits).round(3).tolist()
    [[0.7, 0.3], [0.3, 0.7]]
    """
    _check(logits, targets, dirichlet_lambda)
    from scipy.optimize import minimize

    x = _inputs(kind, logits)
    items, classes = x.shape
    size = max(np.sqrt((x * x).mean()), 1e-12)  # inputs of size 1 make all parameters alike
    scaled = x / size
    penalty = _penalty(kind, classes, dirichlet_lambda, size)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        log_probs = _log_softmax(x + _moved(kind, scaled, theta))
        loss = -(targets * log_probs).sum() / items + (penalty * theta * theta).sum()
        slope = _gathered(kind, scaled, np.exp(log_probs) - targets) / items
        return loss, slope + 2 * penalty * theta

    def curvature(theta: np.ndarray, direction: np.ndarray) -> np.ndarray:
        probs = np.exp(_log_softmax(x + _moved(kind, scaled, theta)))
        change = _moved(kind, scaled, direction)
        change = probs * (change - (probs * change).sum(1, keepdims=True))
        return _gathered(kind, scaled, change) / items + 2 * penalty * direction

    start = np.zeros(len(penalty))  # the identity: a model's own predictions
    options = {"gtol": 1e-7, "maxiter": 500}
    theta = minimize(
        objective, start, jac=True, hessp=curvature, method="trust-ncg", options=options
    ).x
    return _calibrator(kind, classes, theta, size)


def _check(logits: np.ndarray, targets: np.ndarray, dirichlet_lambda: float) -> None:
    if logits.shape != targets.shape or logits.ndim != 2 or not len(logits):
        raise InputError(
            f"a calibrator is given logits of shape {list(logits.shape)} and targets of shape "
            f"{list(targets.shape)}; both must be tables of the same items and classes."
        )
    wrong = ~np.isfinite(logits).all(1)
    if wrong.any():
        raise InputError(
            f"logits hold values that are not finite numbers in {name_rows(np.flatnonzero(wrong))}"
            "; a calibrator can be fitted only to a model that did not diverge."
        )
    if not 0 <= dirichlet_lambda < np.inf:
        raise InputError(f"dirichlet_lambda is {dirichlet_lambda}; it must be a number from 0 on.")


def _inputs(kind: str, logits: np.ndarray) -> np.ndarray:
    return _log_softmax(logits) if kind == "dirichlet" else logits


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    logits = logits - logits.max(1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


# Parameters are a vector of distances from the identity: one weight; K weights and K biases; K rows
# of K weights and a bias.


def _moved(kind: str, x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """How far parameters move the logits: a linear map of them, to [N, K]."""
    classes = x.shape[1]
    if kind == "temperature":
        return x * theta[0]
    if kind == "vector":
        return x * theta[:classes] + theta[classes:]
    rows = theta.reshape(classes, classes + 1)
    return x @ rows[:, :-1].T + rows[:, -1]


def _gathered(kind: str, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """The transpose of `_moved`: from slopes by logit to slopes by parameter."""
    if kind == "temperature":
        return np.array([(slopes * x).sum()])
    if kind == "vector":
        return np.concatenate([(slopes * x).sum(0), slopes.sum(0)])
    return np.column_stack([slopes.T @ x, slopes.sum(0)]).ravel()


def _penalty(kind: str, classes: int, dirichlet_lambda: float, size: float) -> np.ndarray:
    """Of each squared parameter; weights are those of inputs that were divided by `size`."""
    if kind == "temperature":
        return np.array([RIDGE / size**2])
    if kind == "vector":
        return np.repeat([RIDGE / size**2, RIDGE], classes)
    rows = np.full((classes, classes + 1), dirichlet_lambda / (classes * (classes - 1)))
    np.fill_diagonal(rows, 0.0)
    rows[:, :-1] = (rows[:, :-1] + RIDGE) / size**2
    rows[:, -1] = dirichlet_lambda / classes + RIDGE
    return rows.ravel()


def _calibrator(kind: str, classes: int, theta: np.ndarray, size: float) -> Calibrator:
    if kind == "temperature":
        return Calibrator(kind, np.array(1 + theta[0] / size), np.array(0.0))
    if kind == "vector":
        return Calibrator(kind, 1 + theta[:classes] / size, theta[classes:])
    rows = theta.reshape(classes, classes + 1)
    return Calibrator(kind, np.eye(classes) + rows[:, :-1] / size, rows[:, -1])
