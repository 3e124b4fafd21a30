"""The scores against independent references, and the laws that they obey."""

import itertools
import math

import numpy as np
import pytest
import relplot
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.spatial.distance import jensenshannon
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

from metrics import functional

SCORES = {
    "soft_nll": functional.soft_nll,
    "kl_divergence": functional.kl_divergence,
    "soft_brier": functional.soft_brier,
    "hard_accuracy": functional.hard_accuracy,
    "spearman": lambda probs, targets: functional.entropy_correlation(probs, targets, "spearman"),
    "pearson": lambda probs, targets: functional.entropy_correlation(probs, targets, "pearson"),
    "ece": functional.equal_mass_ece,
    "ece_annotators": lambda probs, targets: functional.equal_mass_ece(
        probs, targets, against="annotators"
    ),
    "smooth_ece": functional.smooth_ece,
    "smooth_ece_annotators": lambda probs, targets: functional.smooth_ece(
        probs, targets, against="annotators"
    ),
    "brier_decomposition": lambda probs, targets: torch.stack(
        functional.brier_decomposition(probs, targets)
    ),
}


def random_pair(items: int, classes: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    return tuple(
        torch.from_numpy(rng.dirichlet(np.full(classes, concentration), items))
        for concentration in (0.7, 0.5)
    )


def random_votes(items: int, classes: int, votes: int, seed: int) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(
        rng.multinomial(votes, rng.dirichlet(np.full(classes, 0.5), items)) / votes
    )


def one_hot(labels: np.ndarray, classes: int) -> torch.Tensor:
    return torch.from_numpy(np.eye(classes)[labels])


@st.composite
def pairs(draw):
    """Predictions and annotator distributions with many ties and zeros."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(2, 5)))

    def distributions():
        weights = draw(arrays(np.int64, shape, elements=st.integers(0, 6)))
        weights[weights.sum(1) == 0, draw(st.integers(0, shape[1] - 1))] = 1
        return torch.from_numpy(weights / weights.sum(1, keepdims=True))

    return distributions(), distributions()


law = settings(max_examples=100, deadline=None, derandomize=True)


# Means over items


def test_hard_nll_agrees_with_sklearn():
    probs, _ = random_pair(300, 5, seed=0)
    labels = np.random.default_rng(1).integers(5, size=300)
    assert functional.soft_nll(probs, one_hot(labels, 5)).item() == pytest.approx(
        log_loss(labels, probs.numpy(), labels=range(5)), rel=1e-12
    )


def test_soft_nll_agrees_with_sklearn_weighted_by_annotators():
    probs, targets = random_pair(300, 5, seed=2)
    labels, each_item_per_class = np.tile(np.arange(5), 300), np.repeat(probs.numpy(), 5, axis=0)
    reference = log_loss(
        labels, each_item_per_class, sample_weight=targets.numpy().ravel(), labels=range(5)
    )
    assert functional.soft_nll(probs, targets).item() == pytest.approx(reference, rel=1e-12)


def test_kl_agrees_with_scipy():
    probs, targets = random_pair(300, 5, seed=3)
    targets[::3] = one_hot(np.arange(100) % 5, 5)
    reference = stats.entropy(targets.numpy(), probs.numpy(), axis=1)
    np.testing.assert_allclose(
        functional.item_kl(probs, targets), reference, rtol=1e-10, atol=1e-14
    )
    assert functional.kl_divergence(probs, targets).item() == pytest.approx(
        reference.mean(), rel=1e-12
    )


def test_js_agrees_with_scipy():
    """scipy gives the distance, which is the square root of the divergence."""
    probs, others = random_pair(300, 5, seed=28)
    probs[::3], others[::5] = one_hot(np.arange(100) % 5, 5), random_votes(60, 5, votes=3, seed=29)
    reference = jensenshannon(probs.numpy(), others.numpy(), axis=1) ** 2
    np.testing.assert_allclose(functional.item_js(probs, others), reference, rtol=1e-10, atol=1e-14)


def test_entropy_agrees_with_scipy():
    probs = random_votes(200, 6, votes=7, seed=4)
    np.testing.assert_allclose(
        functional.entropy(probs), stats.entropy(probs.numpy(), axis=1), atol=1e-14
    )


def test_brier_by_hand():
    probs = torch.tensor([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0]])
    targets = torch.tensor([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    assert functional.item_brier(probs, targets).tolist() == pytest.approx([0.18, 2.0], abs=1e-7)
    assert functional.soft_brier(probs, targets).item() == pytest.approx(1.09, abs=1e-7)


def test_hard_brier_agrees_with_sklearn():
    probs, _ = random_pair(300, 2, seed=5)
    labels = np.random.default_rng(6).integers(2, size=300)
    ours = functional.soft_brier(probs, one_hot(labels, 2)).item()
    assert ours == pytest.approx(
        2 * brier_score_loss(labels, probs[:, 1].numpy(), scale_by_half=True), rel=1e-12
    )
    probs, _ = random_pair(300, 4, seed=7)
    labels = np.random.default_rng(8).integers(4, size=300)
    ours = functional.soft_brier(probs, one_hot(labels, 4)).item()
    assert ours == pytest.approx(
        brier_score_loss(labels, probs.numpy(), scale_by_half=False, labels=range(4)), rel=1e-12
    )


def test_accuracy_agrees_with_sklearn():
    probs, targets = random_pair(300, 4, seed=9)
    reference = accuracy_score(targets.numpy().argmax(1), probs.numpy().argmax(1))
    assert 0.2 < reference < 0.8
    assert functional.hard_accuracy(probs, targets).item() == pytest.approx(reference, abs=1e-12)


def test_tied_classes_count_as_the_lowest_on_both_sides():
    probs = torch.tensor([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4]])
    targets = torch.tensor([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]])
    assert functional.item_hit(probs, targets).tolist() == [1, 0, 1]


def test_a_confident_wrong_prediction_stays_finite():
    wrong, truth = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    for score in (functional.soft_nll, functional.kl_divergence):
        assert score(wrong, truth).item() == pytest.approx(
            -math.log(np.finfo(np.float64).tiny), rel=1e-12
        )
    for name, score in SCORES.items():
        assert name in ("spearman", "pearson") or score(wrong, truth).isfinite().all()


def test_small_float32_probabilities_are_not_cut_off():
    probs = torch.tensor([[1e-30, 1.0]])
    assert functional.soft_nll(probs, torch.tensor([[1.0, 0.0]])).item() == pytest.approx(
        30 * math.log(10), rel=1e-6
    )


# Correlation of entropies


@pytest.mark.parametrize(
    ("kind", "reference"), [("spearman", stats.spearmanr), ("pearson", stats.pearsonr)]
)
def test_correlation_agrees_with_scipy(kind, reference):
    rng = np.random.default_rng(10)
    x, noise = rng.integers(0, 6, 200), rng.integers(0, 6, 200)
    for y in (x + noise, x**2 - noise, -x + 0.1 * noise, noise):
        ours = functional.correlation(torch.from_numpy(x), torch.from_numpy(y), kind)
        assert ours.item() == pytest.approx(reference(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize(
    ("kind", "reference"), [("spearman", stats.spearmanr), ("pearson", stats.pearsonr)]
)
def test_entropy_correlation_agrees_with_scipy(kind, reference):
    probs, targets = random_pair(300, 4, seed=11)
    expected = reference(
        stats.entropy(probs.numpy(), axis=1), stats.entropy(targets.numpy(), axis=1)
    ).statistic
    assert functional.entropy_correlation(probs, targets, kind).item() == pytest.approx(
        expected, abs=1e-12
    )


def test_distributions_that_differ_only_in_the_order_of_classes_have_tied_entropies():
    targets = random_votes(400, 5, votes=8, seed=12)
    probs = 0.6 * targets + 0.4 * random_votes(400, 5, votes=5, seed=13)
    entropies = [stats.entropy(table.numpy(), axis=1).round(9) for table in (probs, targets)]
    assert len(np.unique(entropies[1])) < 30
    assert functional.entropy_correlation(probs, targets).item() == pytest.approx(
        stats.spearmanr(*entropies).statistic, abs=1e-9
    )


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
@pytest.mark.parametrize("constant", [[0.9, 0.1], [0.7, 0.3], [0.5, 0.5], [1.0, 0.0]])
@pytest.mark.parametrize("items", [1, 3, 10, 77])
def test_entropy_that_is_the_same_everywhere_has_no_correlation(kind, constant, items):
    same = torch.tensor([constant] * items, dtype=torch.float64)
    varied, _ = random_pair(items, 2, seed=14)
    assert functional.entropy_correlation(same, varied, kind).isnan()
    assert functional.entropy_correlation(varied, same, kind).isnan()


# Calibration


def plain_equal_mass_ece(confidence, outcome, bins):
    ranked = sorted(zip(confidence, outcome, strict=True))
    edges = [math.ceil(number * len(ranked) / bins) for number in range(bins + 1)]
    total = 0
    for start, stop in itertools.pairwise(edges):
        members = ranked[start:stop]
        if members:
            mean_confidence, mean_outcome = (
                sum(values) / len(members) for values in zip(*members, strict=True)
            )
            total += len(members) * abs(mean_confidence - mean_outcome)
    return total / len(ranked)


@pytest.mark.parametrize("against", ["majority", "annotators"])
@pytest.mark.parametrize("items", [1, 5, 15, 100, 301])
@pytest.mark.parametrize("bins", [1, 4, 15])
def test_equal_mass_ece_agrees_with_a_plain_one(against, items, bins):
    probs, targets = random_pair(items, 4, seed=items)
    confidence, outcome = [], []
    for predicted, annotator_probs in zip(probs.tolist(), targets.tolist(), strict=True):
        top = predicted.index(max(predicted))
        confidence.append(predicted[top])
        outcome.append(
            annotator_probs[top]
            if against == "annotators"
            else float(annotator_probs.index(max(annotator_probs)) == top)
        )
    expected = plain_equal_mass_ece(confidence, outcome, bins)
    assert functional.equal_mass_ece(probs, targets, bins, against).item() == pytest.approx(
        expected, abs=1e-12
    )


def test_equal_mass_ece_by_hand():
    probs = torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.3, 0.7]], dtype=torch.float64)
    targets = torch.tensor([[1.0, 0.0], [0.8, 0.2], [0.3, 0.7], [0.0, 1.0]], dtype=torch.float64)
    # by confidence 0.6, 0.7, 0.8, 0.9 the hits are 0, 1, 0, 1 and the shares of people are 0.2, 1,
    # 0.3, 1
    for bins, hits, annotator_probs in [
        (1, 0.25, 0.125),
        (2, (0.15 + 0.35) / 2, (0.05 + 0.2) / 2),
        (4, 0.45, (0.4 + 0.3 + 0.5 + 0.1) / 4),
    ]:
        assert functional.equal_mass_ece(probs, targets, bins).item() == pytest.approx(
            hits, abs=1e-12
        )
        assert functional.equal_mass_ece(
            probs, targets, bins, "annotators"
        ).item() == pytest.approx(annotator_probs, abs=1e-12)


def test_repeating_people_exactly_is_calibrated_against_annotators_only():
    _, annotator_probs = random_pair(100, 3, seed=15)
    assert (
        functional.equal_mass_ece(annotator_probs, annotator_probs, against="annotators").item()
        == 0
    )
    expected = 1 - annotator_probs.max(1).values.mean().item()
    assert functional.equal_mass_ece(annotator_probs, annotator_probs).item() == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("against", ["majority", "annotators"])
def test_smooth_ece_is_that_of_relplot(against):
    probs, targets = random_pair(150, 4, seed=16)
    top = probs.numpy().argmax(1)
    outcome = (
        targets.numpy()[np.arange(150), top]
        if against == "annotators"
        else (targets.numpy().argmax(1) == top).astype(float)
    )
    assert functional.smooth_ece(probs, targets, against).item() == pytest.approx(
        relplot.smECE(probs.numpy().max(1), outcome), abs=1e-12
    )


# The parts of the Brier score


@law
@given(pairs(), st.integers(1, 30))
def test_brier_parts_sum_to_the_score(pair, bins):
    reliability, resolution, uncertainty = functional.brier_decomposition(*pair, bins)
    assert (reliability - resolution + uncertainty).item() == pytest.approx(
        functional.soft_brier(*pair).item(), abs=1e-12
    )
    assert reliability >= 0
    assert uncertainty >= 0


def binary_forecasts(
    forecasts: list[float], outcomes: list[int]
) -> tuple[torch.Tensor, torch.Tensor]:
    yes = torch.tensor(forecasts, dtype=torch.float64)
    return torch.stack([1 - yes, yes], 1), one_hot(np.array(outcomes), 2)


def test_brier_parts_are_murphys_where_forecasts_are_constant_within_bins():
    pair = binary_forecasts([0.2] * 5 + [0.8] * 5, [1, 0, 0, 0, 0, 1, 1, 1, 0, 0])
    # of each class: base rate 0.4, shares of yes 0.2 and 0.6
    reliability, resolution, uncertainty = functional.brier_decomposition(*pair, bins=2)
    assert reliability.item() == pytest.approx(2 * (5 * 0.0**2 + 5 * 0.2**2) / 10, abs=1e-12)
    assert resolution.item() == pytest.approx(2 * (5 * 0.2**2 + 5 * 0.2**2) / 10, abs=1e-12)
    assert uncertainty.item() == pytest.approx(2 * 0.4 * 0.6, abs=1e-12)


def test_calibrated_forecasts_have_reliability_zero():
    pair = binary_forecasts([0.25] * 4 + [0.75] * 4, [0, 0, 1, 0, 1, 1, 0, 1])
    reliability, resolution, uncertainty = functional.brier_decomposition(*pair, bins=2)
    assert [part.item() for part in (reliability, resolution, uncertainty)] == pytest.approx(
        [0, 0.125, 0.5], abs=1e-12
    )


@pytest.mark.parametrize("bins", [1, 5, 12])
def test_brier_parts_agree_with_a_plain_decomposition(bins):
    probs, targets = random_pair(60, 3, seed=17)
    parts = np.zeros(3)
    for forecast, outcome in zip(probs.numpy().T, targets.numpy().T, strict=True):
        order = forecast.argsort()
        parts[2] += np.var(outcome)
        for members in np.split(order, bins):
            f, o, weight = forecast[members], outcome[members], 1 / bins
            parts[0] += weight * (f.mean() - o.mean()) ** 2
            parts[1] += weight * (
                (o.mean() - outcome.mean()) ** 2 + 2 * np.cov(f, o, ddof=0)[0, 1] - np.var(f)
            )
    np.testing.assert_allclose(
        torch.stack(functional.brier_decomposition(probs, targets, bins)), parts, atol=1e-12
    )


# Laws


@law
@given(pairs())
def test_every_score_keeps_its_bounds(pair):
    probs, targets = pair
    assert functional.soft_nll(probs, targets) >= functional.entropy(targets).mean() - 1e-12
    assert (
        functional.item_kl(probs, targets) >= functional.item_brier(probs, targets) / 2 - 1e-12
    ).all()
    assert 0 <= functional.soft_brier(probs, targets) <= 2
    assert 0 <= functional.hard_accuracy(probs, targets) <= 1
    assert 0 <= functional.smooth_ece(probs, targets) <= 1
    for against in ("majority", "annotators"):
        assert 0 <= functional.equal_mass_ece(probs, targets, against=against) <= 1
    for kind in ("spearman", "pearson"):
        value = functional.entropy_correlation(probs, targets, kind)
        assert value.isnan() or -1 <= value <= 1


@law
@given(pairs())
def test_divergence_is_zero_only_between_equals(pair):
    probs, targets = pair
    assert functional.kl_divergence(targets, targets).item() == 0
    assert functional.soft_brier(targets, targets).item() == 0
    different = (probs - targets).abs().amax(1) > 1e-9
    assert (functional.item_kl(probs, targets) > 0)[different].all()
    assert (functional.item_brier(probs, targets) > 0)[different].all()


@law
@given(pairs())
def test_js_is_symmetric_and_lies_between_zero_for_equals_and_log_2_for_strangers(pair):
    probs, others = pair
    js = functional.item_js(probs, others)
    assert torch.equal(js, functional.item_js(others, probs))
    assert (functional.item_js(probs, probs) == 0).all()
    assert (js >= 0).all()
    assert (js <= math.log(2) + 1e-15).all()
    assert torch.equal(js > 0, (probs != others).any(1))
    strangers = (probs * others == 0).all(1)
    np.testing.assert_allclose(js[strangers], math.log(2), rtol=1e-15)


def test_nll_is_kl_plus_the_entropy_of_people():
    probs, targets = random_pair(100, 4, seed=18)
    expected = functional.kl_divergence(probs, targets) + functional.entropy(targets).mean()
    assert functional.soft_nll(probs, targets).item() == pytest.approx(expected.item(), rel=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_order_of_items_does_not_matter(name):
    probs, targets = random_pair(50, 4, seed=19)
    order = torch.from_numpy(np.random.default_rng(20).permutation(50))
    torch.testing.assert_close(
        SCORES[name](probs[order], targets[order]), SCORES[name](probs, targets), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("name", SCORES)
def test_order_of_items_does_not_matter_where_predictions_tie(name):
    probs, targets = random_votes(50, 4, votes=3, seed=21), random_votes(50, 4, votes=7, seed=22)
    orders = np.random.default_rng(23).permuted(np.tile(np.arange(50), (5, 1)), axis=1)
    for order in torch.from_numpy(orders):
        torch.testing.assert_close(
            SCORES[name](probs[order], targets[order]),
            SCORES[name](probs, targets),
            rtol=0,
            atol=1e-12,
        )


@pytest.mark.parametrize("name", SCORES)
def test_order_of_classes_does_not_matter(name):
    probs, targets = random_pair(50, 4, seed=24)
    order = [2, 0, 3, 1]
    torch.testing.assert_close(
        SCORES[name](probs[:, order], targets[:, order]),
        SCORES[name](probs, targets),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("name", ["soft_nll", "kl_divergence", "soft_brier", "spearman", "pearson"])
def test_order_of_classes_does_not_matter_where_entropies_tie(name):
    probs, targets = random_votes(60, 5, votes=9, seed=25), random_votes(60, 5, votes=8, seed=26)
    order = [2, 0, 4, 3, 1]
    torch.testing.assert_close(
        SCORES[name](probs[:, order], targets[:, order]),
        SCORES[name](probs, targets),
        rtol=0,
        atol=1e-12,
    )


@pytest.mark.parametrize("name", SCORES)
def test_float32_predictions_give_float64_scores(name):
    probs, targets = (table.float() for table in random_pair(50, 4, seed=27))
    score = SCORES[name](probs, targets)
    assert score.dtype == torch.float64
    torch.testing.assert_close(
        score, SCORES[name](probs.double(), targets.double()), rtol=0, atol=1e-12
    )
