"""OOD scores against pytorch-ood's, and where they have to be better than it: confident items, dead
features, chunks.
"""

import numpy as np
import pytest
import torch
from pytorch_ood import detector as peer
from sklearn.neighbors import NearestNeighbors
from torch import nn

from callbacks.ood import detectors as ours
from core.errors import InputError

CLASSES, WIDTH = 5, 24


@pytest.fixture(scope="module")
def seen():
    """Training and other items as a trained network would see them: correlated features in
    clusters, and their logits.
    """
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(WIDTH, WIDTH, generator=generator) / WIDTH**0.5
    labels = torch.arange(400) % CLASSES
    centres = 2 * torch.randn(CLASSES, WIDTH, generator=generator)
    train = (torch.randn(400, WIDTH, generator=generator) @ mix + centres[labels]).relu()
    other = (1.5 * torch.randn(150, WIDTH, generator=generator)).relu()
    head = nn.Linear(WIDTH, CLASSES)
    with torch.no_grad():
        head.weight.copy_(centres / 4)
        head.bias.copy_(torch.randn(CLASSES, generator=generator))
        return train, labels, other, head, head(train), head(other)


def close(mine: torch.Tensor, theirs: torch.Tensor, tolerance: float = 1e-5) -> None:
    np.testing.assert_allclose(
        mine.numpy(), theirs.detach().double().numpy(), rtol=tolerance, atol=tolerance
    )


def test_scores_of_logits_are_pytorch_oods(seen):
    logits = seen[-1]
    close(ours.msp(logits), peer.MaxSoftmax(None).predict_logits(logits))
    close(ours.msp(logits, 7.0), peer.MaxSoftmax(None, t=7.0).predict_logits(logits))
    close(ours.energy(logits), peer.EnergyBased(None).predict_logits(logits))
    close(ours.entropy(logits), peer.Entropy(None).predict_logits(logits))
    order = logits.sort(descending=True).values
    close(ours.margin(logits), order[:, 1] - order[:, 0])


def test_confident_items_do_not_tie():
    """In float32 both probabilities round to 1."""
    logits = torch.tensor([[20.0, 0.0, 0.0], [25.0, 0.0, 0.0]])
    for score in (ours.msp, ours.entropy):
        surer = score(logits)
        assert surer[1] < surer[0]
    assert peer.MaxSoftmax(None).predict_logits(logits).unique().numel() == 1


@pytest.mark.parametrize("k", [1, 50, 400])
def test_knn_is_pytorch_oods(seen, k: int):
    train, labels, other, *_ = seen
    theirs = peer.KNN(None, k=k)
    theirs.fit_features(train, labels)
    close(ours.KNN.fit(train, k)(other), theirs.predict_features(other))


def test_knn_takes_distances_in_chunks(seen, monkeypatch: pytest.MonkeyPatch):
    """Whatever the chunks, the same distances; and no table larger than a chunk is ever made."""
    train, _, other, *_ = seen
    whole = ours.KNN.fit(train, 3)(other)
    sizes = []
    kth_largest = ours._kth_largest

    def watch(table: torch.Tensor, k: int) -> torch.Tensor:
        sizes.append(table.numel())
        return kth_largest(table, k)

    monkeypatch.setattr(ours, "CHUNK", 4000)
    monkeypatch.setattr(ours, "_kth_largest", watch)
    close(ours.KNN.fit(train, 3)(other), whole, 1e-6)
    assert len(sizes) == 15
    assert max(sizes) <= 4000


def test_knn_survives_features_that_are_all_zero(seen):
    train, _, other, *_ = seen
    dead = torch.zeros_like(other[:2])
    # as far as anything at a right angle is
    close(ours.KNN.fit(train, 5)(dead), torch.full((2,), 2**0.5))
    reference = NearestNeighbors(n_neighbors=1).fit(nn.functional.normalize(train).numpy())
    close(
        ours.KNN.fit(train, 1)(other),
        torch.from_numpy(reference.kneighbors(nn.functional.normalize(other).numpy())[0][:, 0]),
    )


@pytest.mark.parametrize("k", [0, 401])
def test_more_neighbours_than_training_items(seen, k: int):
    with pytest.raises(
        InputError, match=f"k is {k}; it must be from 1 to 400, the number of training items"
    ):
        ours.KNN.fit(seen[0], k)


def test_mahalanobis_is_pytorch_oods(seen):
    """Its covariance is a sum instead of a mean, and its score half of the square: the same order,
    scaled by twice the number of items.
    """
    train, labels, other, *_ = seen
    theirs = peer.Mahalanobis(None).fit_features(train, labels).predict_features(other)
    close(ours.Mahalanobis.fit(train, labels)(other), 2 * len(train) * theirs, 1e-3)


def test_mahalanobis_by_its_definition_with_a_class_that_has_no_items(seen):
    train, labels, other, *_ = seen
    labels = labels * 2  # classes 1, 3, ... never occur
    groups = [train[labels == label].double().numpy() for label in labels.unique()]
    covariance = sum(len(group) * np.cov(group.T, bias=True) for group in groups) / len(train)
    inverse = np.linalg.inv(covariance)
    gaps = [other.double().numpy() - group.mean(0) for group in groups]
    expected = np.min([np.einsum("nd,de,ne->n", gap, inverse, gap) for gap in gaps], axis=0)
    close(ours.Mahalanobis.fit(train, labels)(other), torch.from_numpy(expected), 1e-4)


def test_mahalanobis_takes_a_feature_without_variance(seen):
    """A unit that is dead on all training items: an item that wakes it is far, the others are as
    far as without it.
    """
    train, labels, other, *_ = seen
    with_dead, others = (
        torch.cat([values, torch.zeros(len(values), 2)], dim=1) for values in (train, other)
    )
    others[0, -1] = 0.1
    scores, plain = (
        ours.Mahalanobis.fit(with_dead, labels)(others),
        ours.Mahalanobis.fit(train, labels)(other),
    )
    close(scores[1:], plain[1:])
    assert scores[0] > 1e3 * plain.max()


@pytest.mark.parametrize("principal", [1, 12])
def test_vim_is_pytorch_oods(seen, principal: int):
    train, labels, other, head, train_logits, other_logits = seen
    theirs = peer.ViM(None, principal, head.weight, head.bias).fit_features(train, labels)
    mine = ours.ViM.fit(train, train_logits, head, principal)
    assert mine.alpha.item() == pytest.approx(theirs.alpha, rel=1e-3)
    close(mine(other, other_logits), theirs.predict_features(other), 1e-3)


@pytest.mark.parametrize("principal", [1, 12, 23])
def test_vim_by_its_definition(seen, principal: int):
    """The principal space by a singular value decomposition, in float64; what it leaves is found by
    subtraction.
    """
    train, _, other, head, train_logits, other_logits = seen
    weight, bias = head.weight.detach().double().numpy(), head.bias.detach().double().numpy()
    origin = -np.linalg.pinv(weight) @ bias
    axes = np.linalg.svd(train.double().numpy() - origin)[2][:principal]

    def unexplained(features: torch.Tensor) -> np.ndarray:
        moved = features.double().numpy() - origin
        return np.linalg.norm(moved - moved @ axes.T @ axes, axis=1)

    alpha = train_logits.double().amax(1).mean().item() / unexplained(train).mean()
    expected = alpha * unexplained(other) - np.log(np.exp(other_logits.double().numpy()).sum(1))
    close(
        ours.ViM.fit(train, train_logits, head, principal)(other, other_logits),
        torch.from_numpy(expected),
        1e-8,
    )


def test_vim_without_a_bias_measures_from_the_origin(seen):
    train, labels, other, head, *_ = seen
    plain = nn.Linear(WIDTH, CLASSES, bias=False)
    plain.weight = head.weight
    theirs = peer.ViM(None, 8, head.weight, torch.zeros(CLASSES)).fit_features(train, labels)
    mine = ours.ViM.fit(train, plain(train).detach(), plain, 8)
    close(mine(other, plain(other).detach()), theirs.predict_features(other), 1e-3)


def test_vim_says_what_is_wrong_with_its_dimensions(seen):
    train, _, _, head, logits, _ = seen
    for principal in (0, WIDTH):
        with pytest.raises(
            InputError, match=f"principal is {principal}; it must be at least 1 and below 24"
        ):
            ours.ViM.fit(train, logits, head, principal)
    flat = nn.Linear(WIDTH, CLASSES, bias=False)
    narrow = train.clone()
    narrow[:, 4:] = 0
    with pytest.raises(InputError, match="leaves ViM nothing; choose a smaller one"):
        ours.ViM.fit(narrow, logits, flat, 10)


@pytest.mark.parametrize(("temperature", "eps"), [(1000.0, 0.0014), (1.0, 0.05)])
def test_odin_is_pytorch_oods(temperature: float, eps: float):
    torch.manual_seed(0)
    network = (
        nn.Sequential(
            nn.Conv2d(3, 6, 3),
            nn.BatchNorm2d(6),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(6 * 36, CLASSES),
        )
        .double()
        .eval()
    )
    inputs = torch.randn(20, 3, 8, 8, dtype=torch.float64)
    std = [0.2, 0.25, 0.5]
    theirs = peer.ODIN(network, temperature=temperature, eps=eps, norm_std=std).predict(inputs)
    odin = ours.ODIN(temperature, eps, torch.tensor(std).reshape(1, 3, 1, 1))
    close(odin(network, inputs), theirs, 1e-9)
    assert all(parameter.grad is None for parameter in network.parameters())
    assert not inputs.requires_grad


def test_odin_steps_towards_the_predicted_class():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(10, 20), nn.Tanh(), nn.Linear(20, CLASSES)).double()
    inputs = torch.randn(50, 10, dtype=torch.float64)
    still, moved = (ours.ODIN(2.0, eps)(network, inputs) for eps in (0.0, 0.01))
    close(still, ours.msp(network(inputs).detach(), 2.0), 1e-12)
    assert (moved < still).all()
