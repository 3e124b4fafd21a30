"""Scores of how foreign an item looks to a classifier, from its logits or its penultimate features.

A higher score means more OOD.

The first four need logits only. KNN, Mahalanobis and ViM are fitted to the training items'
features. ODIN needs the network itself, and gradients with respect to its inputs. Nothing here
knows a dataset.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from core.errors import InputError
from metrics import per_item

CHUNK = 2**22  # distances in memory at a time: 16 MB
# added to the training features' scatter, so that features without any variance can be inverted; as
# in pytorch-ood
RIDGE = 1e-6


def msp(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Minus the largest predicted probability (Hendrycks and Gimpel 2017).

    In float64, because in float32 all confident items tie at -1.

    >>> msp(torch.tensor([[0.0, 0.0], [30.0, 0.0]])).tolist()
    [-0.5, -0.99999999999990...]
    """
    return -(logits.double() / temperature).softmax(-1).amax(-1)


def energy(logits: Tensor) -> Tensor:
    """Minus the log of the summed exponentials of the logits (Liu et al. 2020)."""
    return -logits.double().logsumexp(-1)


def entropy(logits: Tensor) -> Tensor:
    """Entropy of the predicted distribution, in nats."""
    return per_item.entropy(logits.double().softmax(-1))


def margin(logits: Tensor) -> Tensor:
    """Minus the difference between the two largest logits.

    >>> margin(torch.tensor([[1.0, 5.0, 2.0]])).item()
    -3.0
    """
    first, second = logits.double().topk(2).values.unbind(-1)
    return second - first


@dataclass(frozen=True)
class KNN:
    """Distance to the k-th nearest training item, of features of unit length (Sun et al. 2022).

    Distances are taken a chunk at a time in float32, which resolves them to about 1e-3 where they
    vanish and far better elsewhere.
    """

    known: Tensor  # the training features, of unit length
    k: int

    @classmethod
    def fit(cls, features: Tensor, k: int) -> "KNN":
        """Keep the training features, which are what is searched."""
        if not 1 <= k <= len(features):
            raise InputError(
                f"OODScores's k is {k}; it must be from 1 to {len(features)}, the number of "
                "training items."
            )
        return cls(F.normalize(features), k)

    def __call__(self, features: Tensor) -> Tensor:
        """The distance of each item."""
        chunks = F.normalize(features).split(max(1, CHUNK // len(self.known)))
        nearness = torch.cat([_kth_largest(chunk @ self.known.T, self.k) for chunk in chunks])
        return (2 - 2 * nearness.double()).clamp_min(0).sqrt()


def _kth_largest(table: Tensor, k: int) -> Tensor:
    """The k-th largest value of each row.

    On the CPU by numpy, in place: twice as fast as torch's topk for k = 50, five times for 200.
    """
    if table.device.type != "cpu":
        return table.topk(k).values[:, -1]
    place = table.shape[1] - k
    table.numpy().partition(place, axis=1)
    return table[:, place].clone()


@dataclass(frozen=True)
class Mahalanobis:
    """Squared distance to the nearest class mean, in units of the covariance that all classes share
    (Lee et al. 2018; without its input step).
    """

    means: Tensor  # [classes, features], whitened
    whitening: Tensor  # [features, features]

    @classmethod
    def fit(cls, features: Tensor, labels: Tensor) -> "Mahalanobis":
        """`labels` are class numbers; classes that no training item has are left out."""
        features = features.double()
        _, group = labels.unique(return_inverse=True)
        total = features.new_zeros(int(group.max()) + 1, features.shape[1])
        total.index_add_(0, group, features)
        means = total / group.bincount()[:, None]
        rest = features - means[group]
        scatter, directions = torch.linalg.eigh(rest.T @ rest)
        whitening = directions * (len(features) / (scatter.clamp_min(0) + RIDGE)).sqrt()
        return cls(means @ whitening, whitening)

    def __call__(self, features: Tensor) -> Tensor:
        """The squared distance of each item."""
        return torch.cdist(features.double() @ self.whitening, self.means).amin(1).square()


@dataclass(frozen=True)
class ViM:
    """Energy plus a virtual logit: the length of what the principal space of the training features
    leaves unexplained (Wang et al. 2022).
    """

    origin: Tensor  # the features at which the logits are as near to 0 as they can be
    residual: Tensor  # [features, features - principal], orthonormal
    alpha: Tensor  # brings the virtual logit to the scale of the largest real one

    @classmethod
    def fit(cls, features: Tensor, logits: Tensor, head: nn.Linear, principal: int) -> "ViM":
        """`principal` is the number of dimensions that count as explained."""
        if not 1 <= principal < features.shape[1]:
            raise InputError(
                f"OODScores's principal is {principal}; it must be at least 1 and below "
                f"{features.shape[1]}, the number of features."
            )
        features, weight = features.double(), head.weight.detach().double()
        bias = weight.new_zeros(len(weight)) if head.bias is None else head.bias.detach().double()
        origin = -torch.linalg.pinv(weight) @ bias
        moved = features - origin
        # in order of increasing variance
        _, directions = torch.linalg.eigh(moved.T @ moved / len(moved))
        residual = directions[:, : features.shape[1] - principal]
        length = (moved @ residual).norm(dim=1).mean()
        if length < 1e-9 * moved.norm(dim=1).mean():
            raise InputError(
                f"OODScores's principal is {principal}, which explains all training features and "
                "leaves ViM nothing; choose a smaller one."
            )
        return cls(origin, residual, logits.double().amax(1).mean() / length)

    def __call__(self, features: Tensor, logits: Tensor) -> Tensor:
        """The virtual logit of each item, plus its energy."""
        unexplained = (features.double() - self.origin) @ self.residual
        return self.alpha * unexplained.norm(dim=1) + energy(logits)


@dataclass(frozen=True)
class ODIN:
    """Minus the largest probability at a high temperature, after a step of the inputs that makes
    the predicted class likelier (Liang et al. 2018).

    >>> # the largest of softmax(1.5, -0.5)
    >>> ODIN(temperature=1.0, eps=0.5)(lambda inputs: inputs, torch.tensor([[1.0, 0.0]]))
    tensor([-0.8808], dtype=torch.float64)
    """

    temperature: float
    eps: float  # the step of each pixel, before standardisation
    std: Tensor | float = 1.0  # what each channel was divided by

    def step(self, inputs: Tensor, logits: Tensor) -> Tensor:
        """The inputs after the step, from logits that were computed from them with a gradient."""
        with torch.enable_grad():
            loss = F.cross_entropy(logits / self.temperature, logits.argmax(-1), reduction="sum")
        (gradient,) = torch.autograd.grad(loss, inputs)
        return inputs.detach() - self.eps * gradient.sign() / self.std

    def score(self, logits: Tensor) -> Tensor:
        """Of logits that were computed after the step."""
        return msp(logits, self.temperature)

    def __call__(self, network: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        """The score of inputs from two passes of a network."""
        with torch.enable_grad():
            inputs = inputs.detach().requires_grad_()
            moved = self.step(inputs, network(inputs))
        with torch.no_grad():
            return self.score(network(moved))
