"""Label-sampling variance: both ways against autograd's own gradients, against each other, and as a
probe that leaves no trace.
"""

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn

from callbacks import GradientVariance, gradient_variance
from callbacks.gradient_variance import exact_variance, relative_gap, sampled_variance
from core.errors import InputError
from core.randomness import generator
from datamodules import Digits
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import LeNet, MLPHead, Network, SimpleFFN

RNG = np.random.default_rng(0)
PEOPLE = torch.from_numpy(RNG.multinomial(50, RNG.dirichlet(np.full(5, 0.4), 300)) / 50)
MODEL = torch.from_numpy(RNG.dirichlet(np.full(5, 0.7), 300))
SQUARED_NORM = torch.from_numpy(RNG.uniform(1, 40, 300))


def head_gradients(head: nn.Linear, features: torch.Tensor) -> torch.Tensor:
    """By autograd, [labels, parameters]: the gradient of one item's cross-entropy for each label
    that it could be given.
    """
    rows = []
    for label in range(head.out_features):
        loss = F.cross_entropy(head(features)[None], torch.tensor([label]))
        rows.append(
            torch.cat(
                [part.flatten() for part in torch.autograd.grad(loss, list(head.parameters()))]
            )
        )
    return torch.stack(rows)


@pytest.fixture(params=[True, False], ids=["bias", "no bias"])
def item(request):
    """Three items at the head of a real network: head, features, predictions, |h|² (+ 1)."""
    torch.manual_seed(0)
    network = SimpleFFN((7,), 5).double()
    network.head = nn.Linear(128, 5, bias=request.param).double()
    features = network.features(torch.randn(3, 7, dtype=torch.float64)).detach()
    return (
        network.head,
        features,
        network.head(features).softmax(-1).detach(),
        features.square().sum(1) + request.param,
    )


def test_the_closed_form_is_the_variance_of_autograds_gradients(item):
    head, features, _, squared_norm = item
    for row in range(3):
        p, gradients = PEOPLE[row], head_gradients(head, features[row])
        expected = (p @ (gradients - p @ gradients).square()).sum()
        assert exact_variance(p, squared_norm[row]).item() == pytest.approx(
            expected.item(), rel=1e-10
        )


def test_the_estimate_is_the_sample_variance_of_autograds_gradients(item):
    head, features, probs, squared_norm = item
    counts = generator(3, "gradient-variance").multinomial(40, PEOPLE[:3].numpy())
    ours = sampled_variance(probs, PEOPLE[:3], squared_norm, draws=40, seed=3)
    for row in range(3):
        labels = np.repeat(np.arange(5), counts[row])
        drawn = head_gradients(head, features[row])[torch.from_numpy(labels)]
        assert ours[row].item() == pytest.approx(drawn.var(0, correction=1).sum().item(), rel=1e-10)


def test_the_estimate_has_the_closed_form_as_its_mean_even_with_two_draws():
    draws = torch.stack(
        [sampled_variance(MODEL, PEOPLE, SQUARED_NORM, draws=2, seed=seed) for seed in range(400)]
    ).mean(1)
    error = draws.std() / len(draws) ** 0.5
    assert abs(draws.mean() - exact_variance(PEOPLE, SQUARED_NORM).mean()) < 4 * error
    assert error < 0.01 * draws.mean()


def test_the_gap_falls_with_the_square_root_of_the_draws():
    exact = exact_variance(PEOPLE, SQUARED_NORM)
    few, many = (
        relative_gap(sampled_variance(MODEL, PEOPLE, SQUARED_NORM, draws, seed=1), exact)
        for draws in (100, 10_000)
    )
    assert 7 < few / many < 14
    assert many < 0.02


def test_unanimous_items_tie_at_exactly_zero_in_both_ways():
    certain = torch.eye(5)[torch.arange(300) % 5]
    assert (exact_variance(certain, SQUARED_NORM) == 0).all()
    assert (sampled_variance(MODEL, certain, SQUARED_NORM, draws=200, seed=0) == 0).all()


def test_rows_that_float32_rounds_above_one_are_drawn_from():
    sevenths = torch.tensor([[1, 1, 1, 1, 3, 0]]).float() / 7
    assert sevenths.double().sum() > 1 + 1e-12
    assert sampled_variance(sevenths, sevenths, torch.ones(1), draws=50, seed=0).item() > 0


def test_the_estimate_does_not_depend_on_how_items_are_cut_to_save_memory(
    monkeypatch: pytest.MonkeyPatch,
):
    whole = sampled_variance(MODEL, PEOPLE, SQUARED_NORM, draws=50, seed=0)
    monkeypatch.setattr(gradient_variance, "CHUNK", 7 * 25)
    assert torch.equal(sampled_variance(MODEL, PEOPLE, SQUARED_NORM, draws=50, seed=0), whole)
    assert not torch.equal(sampled_variance(MODEL, PEOPLE, SQUARED_NORM, draws=50, seed=1), whole)


def digits(**options) -> Digits:
    data = Digits(**options)
    data.setup()
    return data


def traces(classifier: AnnotatorClassifier) -> dict:
    return {
        "weights": {name: value.clone() for name, value in classifier.state_dict().items()},
        "modes": [part.training for part in classifier.modules()],
        "gradients": [
            (id(parameter.grad), parameter.grad.sum().item())
            for parameter in classifier.parameters()
        ],
        "random": (
            torch.get_rng_state().tolist(),
            random.getstate(),
            np.random.get_state()[1].tolist(),  # noqa: NPY002
        ),
    }


@pytest.mark.parametrize("network", [SimpleFFN, LeNet, MLPHead])
def test_the_probe_agrees_with_a_plain_computation_and_leaves_no_trace(network: type[Network]):
    data = digits(batch_size=64)
    classifier = AnnotatorClassifier((1, 8, 8), 10, network=network).train()
    classifier(torch.ones(2, 1, 8, 8)).sum().backward()
    before = traces(classifier)
    result = GradientVariance(draws=100).run(classifier, data)
    after = traces(classifier)
    assert all(
        torch.equal(value, after["weights"][name]) for name, value in before.pop("weights").items()
    )
    assert before == {name: value for name, value in after.items() if name != "weights"}

    classifier.eval()
    loader = data.test_dataloader()
    items = loader.sampler.items
    with torch.no_grad():
        features = classifier.network.features(loader.prepare(items, 0)).double().numpy()
    assert data.corpus
    p = data.corpus.votes.probs[items]
    variance = (1 - (p**2).sum(1)) * ((features**2).sum(1) + 1)
    assert result.metrics["gradient_variance"] == pytest.approx(variance.mean(), rel=1e-5)
    expected = stats.spearmanr(
        data.corpus.votes.entropy[items].round(6), variance.round(9)
    ).statistic
    assert result.metrics["gradient_variance_spearman"] == pytest.approx(expected, abs=1e-3)
    assert result.metrics["gradient_variance_mc"] == pytest.approx(variance.mean(), rel=0.02)
    assert result.metrics["gradient_variance_mc_spearman"] == pytest.approx(expected, abs=0.02)
    assert 0 < result.metrics["gradient_variance_gap"] < 0.2


def test_the_figure_shows_every_item_and_both_correlations():
    classifier = AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN)
    result = GradientVariance(draws=100).run(classifier, digits())
    axes = result.figures["gradient_variance"]().axes[0]
    assert len(axes.collections[0].get_offsets()) == 540
    _, labels = axes.get_legend_handles_labels()
    assert f"Spearman {result.metrics['gradient_variance_spearman']:.3f}" in labels[1]
    assert f"Spearman {result.metrics['gradient_variance_mc_spearman']:.3f}" in labels[2]
    assert "simulated annotators" in axes.get_title()


def test_the_numbers_do_not_depend_on_the_batch_size():
    classifier = AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN)
    one, other = (
        GradientVariance(draws=50).run(classifier, digits(batch_size=size)).metrics
        for size in (7, 540)
    )
    assert one == pytest.approx(other, rel=1e-6)


def test_votes_without_any_disagreement_have_no_correlation():
    data = digits()
    data.annotator_probs = torch.eye(10)[data.annotator_probs.argmax(1)]
    result = GradientVariance().run(AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN), data)
    assert (
        result.metrics["gradient_variance"]
        == result.metrics["gradient_variance_mc"]
        == result.metrics["gradient_variance_gap"]
        == 0
    )
    assert np.isnan(result.metrics["gradient_variance_spearman"])


def test_mistakes_are_told_in_one_sentence():
    with pytest.raises(InputError, match="GradientVariance's draws is 1; it must be at least 2"):
        GradientVariance(draws=1)

    class TwoHeads(SimpleFFN):
        def __init__(self, input_shape: tuple[int, ...], num_classes: int):
            super().__init__(input_shape, num_classes)
            self.head = nn.Sequential(nn.Linear(128, 32), nn.Linear(32, num_classes))

    with pytest.raises(InputError, match="TwoHeads is a network with no named penultimate layer"):
        GradientVariance().run(AnnotatorClassifier((1, 8, 8), 10, network=TwoHeads), digits())
