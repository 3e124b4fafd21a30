"""Deliveries: the mathematics of hard labels, what each delivers, and that nothing but (votes,
seed, epoch) matters.
"""

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from core.errors import InputError
from datamodules.votes.delivery import (
    DeterministicControl,
    LabelSmoothing,
    MajorityVote,
    Mixup,
    Multipass,
    ShuffledSLS,
    SoftLabels,
    StochasticLabelSampling,
)
from datamodules.votes.table import VoteTable

DELIVERIES = {
    "soft": SoftLabels(),
    "majority": MajorityVote(),
    "smoothing": LabelSmoothing(),
    "multipass": Multipass(),
    "control": DeterministicControl(),
    "sls": StochasticLabelSampling(),
    "stale sls": StochasticLabelSampling(resample_every=3),
    "shuffled sls": ShuffledSLS(),
    "mixup": Mixup(),
    "mixup of soft labels": Mixup(base=SoftLabels(), alpha=0.4),
    "mixup of sls": Mixup(base=StochasticLabelSampling()),
}
SOFT = {"soft", "smoothing", "mixup", "mixup of soft labels", "mixup of sls"}
CONSTANT = {"soft", "majority", "smoothing", "mixup", "mixup of soft labels"}
CYCLES = {"multipass", "control"}

VOTES = VoteTable([[5, 0, 0], [3, 2, 0], [1, 1, 1], [0, 4, 9], [0, 0, 1], [6, 1, 5], [2, 3, 4]])


def labels_of(bound, epochs: int) -> np.ndarray:
    return np.stack([bound.targets(epoch).numpy() for epoch in range(epochs)])


def label_frequencies(labels: np.ndarray, classes: int) -> np.ndarray:
    return np.stack([np.bincount(item, minlength=classes) for item in labels.T])


def blended(bound, epoch: int, rows=range(len(VOTES))) -> tuple[torch.Tensor, torch.Tensor]:
    rows = torch.tensor(list(rows))
    inputs = torch.from_numpy(np.random.default_rng(0).normal(size=(len(VOTES), 2, 3))).float()
    return bound.blend(inputs[rows], bound.targets(epoch)[rows], rows, epoch)


def fingerprints() -> dict[str, str]:
    """A digest of what each delivery delivers in a few epochs, blends included."""
    digests = {}
    for name, delivery in DELIVERIES.items():
        digest = hashlib.sha256()
        for seed in (0, 7):
            bound = delivery.bind(VOTES, seed)
            for epoch in (0, 1, 2, 30):
                for tensor in (bound.targets(epoch), *blended(bound, epoch)):
                    digest.update(tensor.numpy().tobytes())
        digests[name] = digest.hexdigest()
    return digests


# Proposition 1 of "Same Target, Different Basins": one hard label drawn from p, seen through the
# softmax q of the logits z.

MONTE_CARLO_EPOCHS = 20_000


@pytest.fixture(scope="module")
def proposition():
    """Items with their distributions p, logits z, q = softmax(z), and loss and gradient by autograd
    for each hard label.
    """
    rng = np.random.default_rng(12)
    p = rng.dirichlet(np.ones(4), 5)
    p[0, [0, 3]] = 0
    p /= p.sum(1, keepdims=True)
    z = torch.from_numpy(rng.normal(scale=2, size=(5, 4)))
    losses, gradients = (
        torch.empty(5, 4, dtype=torch.float64),
        torch.empty(5, 4, 4, dtype=torch.float64),
    )
    for label in range(4):
        logits = z.clone().requires_grad_()
        loss = F.cross_entropy(logits, torch.full((5,), label), reduction="none")
        losses[:, label] = loss.detach()
        (gradients[:, label],) = torch.autograd.grad(loss.sum(), logits)
    return p, z, z.softmax(1).numpy(), losses.numpy(), gradients.numpy()


@pytest.fixture(scope="module")
def sampled(proposition):
    """Labels [epochs, items] that sampling delivers for the items of the proposition."""
    return labels_of(
        StochasticLabelSampling().bind(VoteTable.from_probs(proposition[0]), seed=0),
        MONTE_CARLO_EPOCHS,
    )


def test_expected_loss_is_the_cross_entropy(proposition, sampled):
    p, _, q, losses, _ = proposition
    cross_entropy = stats.entropy(p, axis=1) + stats.entropy(p, q, axis=1)
    np.testing.assert_allclose((p * losses).sum(1), cross_entropy, rtol=1e-12)
    seen = np.take_along_axis(losses, sampled.T, 1)
    assert (
        np.abs(seen.mean(1) - cross_entropy) < 4 * seen.std(1) / np.sqrt(MONTE_CARLO_EPOCHS)
    ).all()


def test_expected_gradient_is_q_minus_p(proposition, sampled):
    p, _, q, _, gradients = proposition
    np.testing.assert_allclose(np.einsum("iy,iyk->ik", p, gradients), q - p, atol=1e-14)
    for item in range(len(p)):
        seen = gradients[item, sampled[:, item]]
        assert (
            np.abs(seen.mean(0) - (q - p)[item])
            <= 4 * seen.std(0) / np.sqrt(MONTE_CARLO_EPOCHS) + 1e-12
        ).all()


def test_soft_cross_entropy_has_the_expected_hard_gradient(proposition):
    p, z, _, _, gradients = proposition
    logits = z.clone().requires_grad_()
    (soft,) = torch.autograd.grad(
        F.cross_entropy(logits, torch.from_numpy(p), reduction="sum"), logits
    )
    np.testing.assert_allclose(soft.numpy(), np.einsum("iy,iyk->ik", p, gradients), atol=1e-14)


def test_gradient_covariance_is_that_of_one_vote(proposition, sampled):
    p, _, _, _, gradients = proposition
    for item in range(len(p)):
        expected = np.diag(p[item]) - np.outer(p[item], p[item])
        np.testing.assert_allclose(
            np.cov(gradients[item], aweights=p[item], rowvar=False, ddof=0), expected, atol=1e-14
        )
        seen = np.cov(gradients[item, sampled[:, item]], rowvar=False, ddof=0)
        np.testing.assert_allclose(seen, expected, atol=0.01)
        assert not seen[p[item] == 0].round(14).any()


def test_expected_squared_gradient_adds_the_scatter_of_votes(proposition, sampled):
    p, _, q, _, gradients = proposition
    expected = ((q - p) ** 2).sum(1) + 1 - (p**2).sum(1)
    squared = (gradients**2).sum(2)
    np.testing.assert_allclose(squared, ((q[:, None] - np.eye(4)) ** 2).sum(2), atol=1e-14)
    np.testing.assert_allclose((p * squared).sum(1), expected, rtol=1e-12)
    seen = np.take_along_axis(squared, sampled.T, 1)
    assert (np.abs(seen.mean(1) - expected) < 4 * seen.std(1) / np.sqrt(MONTE_CARLO_EPOCHS)).all()


def test_parameter_gradient_covariance_is_carried_through_the_jacobian(proposition, sampled):
    p = proposition[0]
    rng = np.random.default_rng(5)
    weight, bias = torch.from_numpy(rng.normal(size=(4, 3))), torch.from_numpy(rng.normal(size=4))
    inputs = torch.from_numpy(rng.normal(size=(5, 3)))
    for item in range(len(p)):
        per_weight, per_bias = torch.autograd.functional.jacobian(
            lambda w, b, x=inputs[item]: F.linear(x, w, b), (weight, bias)
        )
        jacobian = torch.cat([per_weight.flatten(1), per_bias], 1).numpy()
        expected = jacobian.T @ (np.diag(p[item]) - np.outer(p[item], p[item])) @ jacobian
        gradients = np.empty((4, jacobian.shape[1]))
        for label in range(4):
            parameters = weight.clone().requires_grad_(), bias.clone().requires_grad_()
            loss = F.cross_entropy(F.linear(inputs[item], *parameters), torch.tensor(label))
            gradients[label] = torch.cat(
                [part.flatten() for part in torch.autograd.grad(loss, parameters)]
            ).numpy()
        np.testing.assert_allclose(
            np.cov(gradients, aweights=p[item], rowvar=False, ddof=0), expected, atol=1e-13
        )
        seen = np.cov(gradients[sampled[:, item]], rowvar=False, ddof=0)
        np.testing.assert_allclose(seen, expected, atol=0.02 * np.abs(jacobian).max() ** 2)


# Multipass and its control


@st.composite
def count_tables(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(2, 5)))
    counts = draw(arrays(np.int64, shape, elements=st.integers(0, 4)))
    counts[counts.sum(1) == 0, draw(st.integers(0, shape[1] - 1))] = 1
    return counts


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    count_tables(), st.integers(0, 2**31), st.sampled_from([Multipass(), DeterministicControl()])
)
def test_every_vote_comes_exactly_once_per_cycle(counts, seed, delivery):
    cycles = 3
    labels = labels_of(delivery.bind(VoteTable(counts), seed), cycles * counts.sum(1).max())
    for item, row in enumerate(counts):
        for cycle in range(cycles):
            once = labels[cycle * row.sum() : (cycle + 1) * row.sum(), item]
            assert np.bincount(once, minlength=counts.shape[1]).tolist() == row.tolist()


def test_multipass_repeats_the_same_order_in_every_cycle():
    labels = labels_of(Multipass().bind(VoteTable([[5, 5, 3], [4, 4, 5]]), seed=0), 39)
    assert labels[:13].tolist() == labels[13:26].tolist() == labels[26:].tolist()


def test_multipass_orders_votes_at_random():
    votes = VoteTable([[1, 1, 1]] * 3000)
    order = labels_of(Multipass().bind(votes, seed=0), 3)
    counted = np.unique(order.T, axis=0, return_counts=True)[1]
    assert len(counted) == 6
    assert stats.chisquare(counted).pvalue > 0.01
    assert (order != labels_of(Multipass().bind(votes, seed=1), 3)).any(0).mean() == pytest.approx(
        5 / 6, abs=0.03
    )


def test_control_is_multipass_in_the_order_of_another_seed():
    votes = VoteTable([[5, 4, 3]] * 20)
    control, multipass = (
        labels_of(delivery.bind(votes, seed=3), 12)
        for delivery in (DeterministicControl(), Multipass())
    )
    np.testing.assert_array_equal(control, labels_of(Multipass().bind(votes, seed=1003), 12))
    np.testing.assert_array_equal(np.sort(control, axis=0), np.sort(multipass, axis=0))
    assert (control != multipass).any(0).all()


def test_more_than_256_classes_can_be_cycled_through():
    counts = np.zeros((2, 300), dtype=int)
    counts[0, [255, 256, 299]] = 1
    counts[1, 299] = 2
    labels = labels_of(Multipass().bind(VoteTable(counts), seed=0), 6)
    assert sorted(labels[:3, 0].tolist()) == [255, 256, 299]
    assert set(labels[:, 1].tolist()) == {299}


@pytest.mark.parametrize("name", sorted(CYCLES))
def test_cycles_need_votes_and_say_what_to_use_instead(name):
    table = VoteTable.from_probs([[0.5, 0.5]], source="probs.npy")
    message = (
        "probs.npy has only probabilities, so there are no votes to cycle through; use "
        "StochasticLabelSampling, or set data.votes_per_item"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        DELIVERIES[name].bind(table, seed=0)


# Sampling


def test_sampling_follows_each_items_distribution():
    counted = label_frequencies(labels_of(StochasticLabelSampling().bind(VOTES, seed=0), 6000), 3)
    for observed, probs in zip(counted, VOTES.probs, strict=True):
        voted = probs > 0
        assert not observed[~voted].any()
        assert (
            voted.sum() == 1 or stats.chisquare(observed[voted], 6000 * probs[voted]).pvalue > 0.01
        )


def adversarial_probabilities() -> VoteTable:
    rows = np.random.default_rng(0).dirichlet(np.ones(6), 400)
    rows[:100, -1] = 0
    rows[100:200, 0] = 0
    rows[200:300, [0, 3, 5]] = 0
    rows[:300] /= rows[:300].sum(1, keepdims=True)
    extreme = [
        [1e-300, 1, 0, 0, 0, 0],
        [0, 1, 1e-300, 0, 0, 0],
        [0, 0, 0, 0, 0, 1],
        [1, 0, 0, 0, 0, 0],
        [0, 0.1, 0.2, 0.3, 0.4, 0],
        [0, 1e-17, 1, 0, 0, 0],
        [0, 1, 1e-17, 0, 0, 0],
        [5e-324, 0, 1, 0, 5e-324, 0],
    ]
    return VoteTable.from_probs(np.concatenate([rows, extreme]))


class SameNumberAlways:
    """Stands in for a random generator, to reach numbers that chance would hardly ever draw."""

    def __init__(self, number: float):
        self.number = number

    def random(self, size: int) -> np.ndarray:
        return np.full(size, self.number)

    def permutation(self, size: int) -> np.ndarray:
        return np.arange(size)[::-1]


@pytest.mark.parametrize("uniform", [0.0, 5e-324, 0.5, float(np.nextafter(1, 0))])
@pytest.mark.parametrize("delivery", [StochasticLabelSampling(), ShuffledSLS()])
def test_no_uniform_number_leads_to_a_class_without_votes(monkeypatch, uniform, delivery):
    votes = adversarial_probabilities()
    sums = np.cumsum(votes.probs, axis=1)[:, -1]
    assert (sums > 1).any()
    assert (sums < 1).any()
    for module in ("delivery", "bound_delivery"):
        name = f"datamodules.votes.{module}.generator"
        monkeypatch.setattr(name, lambda *_: SameNumberAlways(uniform))
    labels = delivery.bind(votes, seed=0).targets(0).numpy()
    probs = votes.probs[::-1] if isinstance(delivery, ShuffledSLS) else votes.probs
    assert (probs[np.arange(len(votes)), labels] > 0).all()


@pytest.mark.parametrize("every", [1, 2, 5])
def test_labels_are_held_for_exactly_resample_every_epochs(every):
    labels = labels_of(
        StochasticLabelSampling(resample_every=every).bind(VoteTable([[1, 1]] * 100), seed=0),
        4 * every,
    )
    changed = (labels[1:] != labels[:-1]).any(1)
    assert changed.tolist() == [(epoch + 1) % every == 0 for epoch in range(4 * every - 1)]


def test_epochs_and_items_and_seeds_are_independent():
    items, epochs = 30, 3000
    votes = VoteTable([[1, 1]] * items)
    labels = labels_of(StochasticLabelSampling().bind(votes, seed=0), epochs)
    centred = labels - 0.5
    bound = 4.5 / np.sqrt(epochs)
    between_items = np.corrcoef(labels.T) - np.eye(items)
    assert np.abs(between_items).max() < bound
    assert np.abs(4 * (centred[1:] * centred[:-1]).mean(0)).max() < bound
    other = labels_of(StochasticLabelSampling().bind(votes, seed=1), epochs) - 0.5
    assert np.abs(4 * (centred * other).mean(0)).max() < bound


def test_shuffled_sampling_draws_from_one_permutation_of_the_rows():
    epochs = 5000
    votes = VoteTable(
        [[9, 1, 0], [5, 5, 0], [1, 9, 0], [0, 5, 5], [0, 1, 9], [5, 0, 5], [4, 3, 3], [10, 0, 0]]
    )
    frequencies = (
        label_frequencies(labels_of(ShuffledSLS().bind(votes, seed=0), epochs), 3) / epochs
    )
    permutation = np.abs(frequencies[:, None] - votes.probs).sum(2).argmin(1)
    assert sorted(permutation.tolist()) == list(range(len(votes)))
    assert (permutation != np.arange(len(votes))).sum() > len(votes) / 2
    standard_error = np.sqrt(votes.probs * (1 - votes.probs) / epochs)[permutation]
    assert (np.abs(frequencies - votes.probs[permutation]) <= 4 * standard_error).all()
    spread = np.sqrt((standard_error**2).sum(0)) / len(votes)
    assert (np.abs(frequencies.mean(0) - votes.probs.mean(0)) <= 4 * spread).all()


def test_shuffled_sampling_permutes_by_seed():
    votes = VoteTable(3 * np.eye(40, dtype=int))
    permutations = np.stack(
        [ShuffledSLS().bind(votes, seed).targets(0).numpy() for seed in range(5)]
    )
    assert len(np.unique(permutations, axis=0)) == 5
    for permutation in permutations:
        assert sorted(permutation.tolist()) == list(range(40))
    np.testing.assert_array_equal(ShuffledSLS().bind(votes, 0).targets(9), permutations[0])


@pytest.fixture
def torch_always_warns():
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(False)


@pytest.mark.usefixtures("torch_always_warns")
def test_counts_in_column_order_are_sampled_alike():
    columns_first = VoteTable(np.asfortranarray(VOTES.counts))
    for epoch in range(5):
        by_columns, by_rows = (
            StochasticLabelSampling().bind(votes, seed=0).targets(epoch)
            for votes in (columns_first, VOTES)
        )
        assert by_columns.tolist() == by_rows.tolist()


# Constant targets and mixup


def test_soft_labels_are_the_distribution():
    targets = SoftLabels().bind(VOTES, seed=0).targets(3)
    np.testing.assert_array_equal(targets.numpy(), VOTES.probs.astype(np.float32))


def test_majority_vote_is_the_most_voted_class():
    assert MajorityVote().bind(VOTES, seed=0).targets(3).tolist() == [0, 0, 0, 2, 2, 0, 2]


@pytest.mark.parametrize("epsilon", [0, 0.1, 0.3, 1])
def test_label_smoothing_spreads_epsilon_evenly(epsilon):
    targets = LabelSmoothing(epsilon).bind(VOTES, seed=0).targets(3).numpy()
    expected = np.full((7, 3), epsilon / 3)
    expected[np.arange(7), [0, 0, 0, 2, 2, 0, 2]] += 1 - epsilon
    np.testing.assert_allclose(targets, expected, atol=1e-7)


def test_label_smoothing_means_what_torch_means():
    logits = torch.from_numpy(np.random.default_rng(1).normal(size=(7, 3))).float()
    ours = F.cross_entropy(logits, LabelSmoothing(0.2).bind(VOTES, seed=0).targets(0))
    theirs = F.cross_entropy(logits, torch.from_numpy(VOTES.majority), label_smoothing=0.2)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-6)


@pytest.mark.parametrize("base", [MajorityVote(), Multipass(), StochasticLabelSampling()])
def test_mixup_targets_are_the_one_hot_labels_of_its_base(base):
    mixed, hard = Mixup(base=base).bind(VOTES, seed=2), base.bind(VOTES, seed=2)
    for epoch in range(4):
        np.testing.assert_array_equal(mixed.targets(epoch).numpy(), np.eye(3)[hard.targets(epoch)])


def test_mixup_keeps_soft_targets_of_its_base():
    mixed = Mixup(base=LabelSmoothing(0.2)).bind(VOTES, seed=2)
    np.testing.assert_array_equal(
        mixed.targets(0), LabelSmoothing(0.2).bind(VOTES, seed=2).targets(0)
    )


@pytest.mark.parametrize("base", [MajorityVote(), StochasticLabelSampling(), SoftLabels()])
def test_blend_is_one_convex_combination_of_inputs_and_targets_alike(base):
    bound = Mixup(base=base, alpha=0.8).bind(VOTES, seed=0)
    rows = torch.tensor([4, 1, 3, 6])
    inputs = torch.from_numpy(np.random.default_rng(8).normal(size=(4, 2, 3)))
    for epoch in range(10):
        targets = bound.targets(epoch)[rows].double()
        mixed_inputs, mixed_targets = bound.blend(inputs, targets, rows, epoch)
        assert (mixed_inputs.shape, mixed_targets.shape) == (inputs.shape, targets.shape)
        towards_itself, difference = mixed_inputs - inputs.roll(1, 0), inputs - inputs.roll(1, 0)
        share = (towards_itself * difference).sum() / difference.square().sum()
        assert 0 <= share <= 1
        torch.testing.assert_close(mixed_inputs, share * inputs + (1 - share) * inputs.roll(1, 0))
        torch.testing.assert_close(
            mixed_targets, share * targets + (1 - share) * targets.roll(1, 0)
        )
        torch.testing.assert_close(mixed_targets.sum(1), torch.ones(4, dtype=torch.float64))


def mixup_shares(alpha: float, seed: int, rows: list[int], epochs: range) -> np.ndarray:
    """The share of an input of 1 that is left after it was blended with an input of 0."""
    bound = Mixup(alpha=alpha).bind(VOTES, seed)
    inputs = torch.tensor([[1.0], [0.0]])
    return np.array(
        [
            bound.blend(inputs, bound.targets(epoch)[rows], torch.tensor(rows), epoch)[0][
                0, 0
            ].item()
            for epoch in epochs
        ]
    )


@pytest.mark.parametrize("alpha", [0.4, 1.0, 3.0])
def test_shares_follow_the_beta_distribution(alpha):
    shares = mixup_shares(alpha, seed=0, rows=[2, 5], epochs=range(2000))
    assert stats.kstest(shares, stats.beta(alpha, alpha).cdf).pvalue > 0.01
    assert abs(np.corrcoef(shares[1:], shares[:-1])[0, 1]) < 4 / np.sqrt(2000)


def test_share_is_a_function_of_seed_and_epoch_and_batch():
    epochs = range(20)
    shares = mixup_shares(1.0, 0, [2, 5], epochs)
    np.testing.assert_array_equal(shares, mixup_shares(1.0, 0, [2, 5], reversed(epochs))[::-1])
    assert (shares != mixup_shares(1.0, 1, [2, 5], epochs)).all()
    assert (shares != mixup_shares(1.0, 0, [3, 5], epochs)).all()
    assert len(np.unique(shares)) == 20


@pytest.mark.parametrize(
    "name", sorted(DELIVERIES.keys() - {"mixup", "mixup of soft labels", "mixup of sls"})
)
def test_only_mixup_blends(name):
    inputs = torch.eye(7)
    bound = DELIVERIES[name].bind(VOTES, seed=0)
    targets = bound.targets(0)
    assert bound.blend(inputs, targets, torch.arange(7), 0) == (inputs, targets)


# What holds for all deliveries


PROBABILITIES = VoteTable.from_probs(VOTES.probs)
TABLES = {
    "counts": VOTES,
    "subsampled": VOTES.subsample(4, seed=0),
    "probabilities": PROBABILITIES,
    "subsampled probabilities": PROBABILITIES.subsample(4, seed=0),
}


@pytest.mark.parametrize(
    ("name", "table"),
    [(n, t) for n in DELIVERIES for t in TABLES if not (n in CYCLES and t == "probabilities")],
)
def test_targets_have_the_stated_type_and_shape(name, table):
    targets = DELIVERIES[name].bind(TABLES[table], seed=0).targets(2)
    expected = (torch.float32, (7, 3)) if name in SOFT else (torch.int64, (7,))
    assert (targets.dtype, tuple(targets.shape)) == expected
    if name in SOFT:
        torch.testing.assert_close(targets.sum(1), torch.ones(7))
    else:
        assert 0 <= targets.min() <= targets.max() <= 2


@pytest.mark.parametrize("name", DELIVERIES)
def test_epochs_can_be_asked_for_in_any_order(name):
    one, other = (DELIVERIES[name].bind(VOTES, seed=0) for _ in range(2))
    forward = [blended(one, epoch) for epoch in range(6)]
    backward = [blended(other, epoch) for epoch in reversed(range(6))][::-1]
    for (inputs, targets), (same_inputs, same_targets) in zip(forward, backward, strict=True):
        assert torch.equal(inputs, same_inputs)
        assert torch.equal(targets, same_targets)


@pytest.mark.parametrize("name", sorted(DELIVERIES.keys() - CONSTANT))
def test_seeds_and_epochs_change_what_is_delivered(name):
    votes = VoteTable([[5, 4, 3]] * 50)
    bound = DELIVERIES[name].bind(votes, seed=0)
    assert not torch.equal(bound.targets(0), bound.targets(4))
    assert not torch.equal(bound.targets(0), DELIVERIES[name].bind(votes, seed=1).targets(0))


@pytest.mark.parametrize("name", sorted(CONSTANT))
def test_constant_targets_are_the_same_in_every_epoch_and_for_every_seed(name):
    bound = DELIVERIES[name].bind(VOTES, seed=0)
    assert torch.equal(bound.targets(0), bound.targets(4))
    assert torch.equal(bound.targets(0), DELIVERIES[name].bind(VOTES, seed=1).targets(0))


def test_another_process_delivers_the_same():
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "12345"}
    done = subprocess.run(
        [sys.executable, __file__],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == fingerprints()


def global_states() -> list:
    numpy_state = np.random.get_state()  # noqa: NPY002 - the point is that deliveries leave it alone
    return [
        random.getstate(),
        torch.get_rng_state().tolist(),
        numpy_state[0],
        numpy_state[1].tolist(),
        *numpy_state[2:],
    ]


def test_global_random_states_neither_matter_nor_change():
    before = fingerprints()
    random.random()
    torch.rand(3)
    np.random.random(3)  # noqa: NPY002 - the point is that it does not matter
    states = global_states()
    assert fingerprints() == before
    assert global_states() == states


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: LabelSmoothing(epsilon=-0.1), "LabelSmoothing's epsilon is -0.1;"),
        (lambda: LabelSmoothing(epsilon=1.1), "LabelSmoothing's epsilon is 1.1;"),
        (lambda: LabelSmoothing(epsilon=float("nan")), "LabelSmoothing's epsilon is nan;"),
        (lambda: Mixup(alpha=0), "Mixup's alpha is 0;"),
        (lambda: Mixup(alpha=-1), "Mixup's alpha is -1;"),
        (lambda: Mixup(alpha=float("nan")), "Mixup's alpha is nan;"),
        (lambda: Mixup(alpha=float("inf")), "Mixup's alpha is inf;"),
        (
            lambda: StochasticLabelSampling(resample_every=0),
            "StochasticLabelSampling's resample_every is 0;",
        ),
        (
            lambda: StochasticLabelSampling(resample_every=-3),
            "StochasticLabelSampling's resample_every is -3;",
        ),
        (
            lambda: StochasticLabelSampling(resample_every=1.5),
            "StochasticLabelSampling's resample_every is 1.5;",
        ),
        (lambda: ShuffledSLS(resample_every=0), "ShuffledSLS's resample_every is 0;"),
    ],
)
def test_bad_options_are_named(make, named):
    with pytest.raises(InputError, match=re.escape(named)):
        make()


@pytest.mark.parametrize("name", sorted(DELIVERIES.keys() - CONSTANT))
def test_a_negative_seed_is_named(name):
    with pytest.raises(InputError, match=r"^seed is -[12]000; it must be 0 or larger\.$"):
        DELIVERIES[name].bind(VOTES, seed=-2000).targets(0)


if __name__ == "__main__":
    print(json.dumps(fingerprints()))
