"""How much noise the sampling of labels puts into the gradient of the last layer, item by item: in
closed form and by Monte Carlo.

For an item with penultimate features h, predictions q and a sampled label y, the gradient of
cross-entropy with respect to the last layer's weights and bias is the outer product of q - e_y and
(h, 1). Over y ~ p its total variance (the trace of its covariance) is therefore (1 - |p|²)(|h|² +
1): Proposition 1 of "Same Target, Different Basins" with the last layer's Jacobian.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from callbacks.figures.figure_text import TITLE, as_typed
from callbacks.probe import Probe, ProbeResult
from callbacks.uncertainty_figures import BLUE, GREY, ORANGE
from core.errors import InputError
from core.randomness import generator
from core.ranks import gather_over_ranks
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from metrics import functional

# numbers in a table of [items, classes, classes]; it bounds the Monte Carlo estimate's memory
CHUNK = 2**22


def exact_variance(target_probs: Tensor, squared_norm: Tensor) -> Tensor:
    """The closed form, of each item.

    `squared_norm` is that of its features, plus 1 where the last layer has a bias.

    >>> exact_variance(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([3.0, 3.0])).tolist()
    [1.5, 0.0]
    """
    p = target_probs.double()
    return (p * (1 - p)).sum(-1) * squared_norm.double()


def sampled_variance(
    probs: Tensor, target_probs: Tensor, squared_norm: Tensor, draws: int, seed: int
) -> Tensor:
    """The unbiased sample variance of the gradients of `draws` labels per item, drawn from the
    annotator distribution.

    An item has only as many different gradients as there are classes, so the labels are drawn as
    counts, and each gradient is kept without its factor (h, 1), which is the same for all of them:
    memory depends neither on the number of draws nor on that of features.

    >>> people = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
    >>> sampled_variance(people, people, torch.tensor([3.0, 3.0]), draws=100_000, seed=0).tolist()
    [1.5..., 0.0]
    """
    annotator_probs = target_probs.double().cpu()
    # numpy refuses rows that exceed 1 by float32's rounding
    annotator_probs = (annotator_probs / annotator_probs.sum(-1, keepdim=True)).numpy()
    drawn = generator(seed, "gradient-variance").multinomial(draws, annotator_probs)
    counts = torch.from_numpy(drawn).to(probs.device)
    items = max(1, CHUNK // probs.shape[1] ** 2)
    chunks = zip(probs.split(items), counts.split(items), strict=True)
    parts = [_variance_of_counts(*chunk) for chunk in chunks]
    return torch.cat(parts) * squared_norm.double()


def _variance_of_counts(probs: Tensor, counts: Tensor) -> Tensor:
    """Total variance of the gradient with respect to the logits, over labels that were drawn so
    many times.
    """
    labels = torch.eye(probs.shape[1], dtype=torch.float64, device=probs.device)
    gradients = probs.double()[:, None] - labels  # [items, label, logit]
    draws = counts.sum(1, keepdim=True)
    mean = ((counts / draws)[..., None] * gradients).sum(1, keepdim=True)
    return (counts * (gradients - mean).square().sum(2)).sum(1) / (draws[:, 0] - 1)


class GradientVariance(Probe):
    """Label-sampling variance of the last-layer gradient of the test items, in both ways, and how
    it goes with annotators' entropy.
    """

    def __init__(self, draws: int = 200):
        """
        Args:
            draws: Labels per item of the Monte Carlo estimate. The paper does not state their
                number.
        """
        if draws < 2:
            raise InputError(
                f"GradientVariance's draws is {draws}; it must be at least 2, because one draw "
                "has no variance."
            )
        self.draws = draws

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """The variance of the test items in both ways, and how it goes with entropy."""
        probs, annotator_probs, squared_norm = last_layer(classifier, data, data.rows("test"))
        entropy = functional.entropy(annotator_probs)
        exact = exact_variance(annotator_probs, squared_norm)
        sampled = sampled_variance(probs, annotator_probs, squared_norm, self.draws, data.seed)
        rho, rho_mc = (functional.correlation(entropy, v, "spearman") for v in (exact, sampled))
        metrics = {
            "gradient_variance": exact.mean().item(),
            "gradient_variance_spearman": rho.item(),
            "gradient_variance_mc": sampled.mean().item(),
            "gradient_variance_mc_spearman": rho_mc.item(),
            "gradient_variance_gap": relative_gap(sampled, exact),
        }
        crowd = " (simulated annotators)" if data.simulated else ""
        title = f"{data.name}{crowd}: test items"
        picture = partial(draw_variance, entropy, exact, sampled, self.draws, title)
        return ProbeResult(metrics, {"gradient_variance": picture})


@torch.no_grad()
def last_layer(
    classifier: AnnotatorClassifier, data: VoteDataModule, rows: np.ndarray
) -> tuple[Tensor, Tensor, Tensor]:
    """Predictions, annotator distributions and |h|² (plus 1 with a bias) of these items, in the
    order of the table, on every rank.
    """
    network = classifier.network
    if not isinstance(network.head, nn.Linear):
        raise InputError(
            f"GradientVariance: {type(network).__name__} is a network with no named penultimate "
            f"layer (its head is {type(network.head).__name__}); "
            "it needs one whose head is a single linear layer."
        )
    parts = []
    for batch in data.evaluation_batches(rows, classifier.device):
        features = network.features(classifier.prepared(batch.inputs))
        probs = network.head(features).double().softmax(-1)
        squared = features.double().square().sum(-1) + (network.head.bias is not None)
        parts.append((batch.index.cpu(), probs.cpu(), batch.targets.cpu(), squared.cpu()))
    index, *values = (gather_over_ranks(torch.cat(column)) for column in zip(*parts, strict=True))
    probs, annotator_probs, squared_norm = (column[index.argsort()] for column in values)
    return probs, annotator_probs, squared_norm


def relative_gap(sampled: Tensor, exact: Tensor) -> float:
    """The root mean square difference over items, as a share of the root mean square of the closed
    form; 0 where neither varies.

    >>> relative_gap(torch.tensor([1.1, 0.0]), torch.tensor([1.0, 0.0]))
    0.1...
    """
    return ((sampled - exact).norm() / exact.norm().clamp_min(torch.finfo(exact.dtype).tiny)).item()


def draw_variance(
    entropy: Tensor, exact: Tensor, sampled: Tensor, draws: int, title: str
) -> Figure:
    """Variance against the annotators' entropy: the closed form of every item, and the means of
    both ways by bin of entropy.
    """
    figure = Figure(figsize=(4.8, 4.0), layout="constrained", dpi=150)
    axes = figure.add_subplot()
    dots: dict[str, Any] = {"s": 8, "alpha": 0.35, "linewidths": 0, "rasterized": True}
    axes.scatter(entropy, exact, color=BLUE, label="item, closed form", **dots)
    bin_of = np.digitize(entropy, np.linspace(0, entropy.max().item() + 1e-9, 9)) - 1
    filled = [bin_of == b for b in range(8) if (bin_of == b).sum() >= 5]
    line = {"linewidth": 1.5, "marker": "o", "markersize": 4}
    crosses = {"linestyle": "", "marker": "x", "markersize": 7, "markeredgewidth": 1.5}
    for values, label, color, style in (
        (exact, "mean, closed form", ORANGE, line),
        (sampled, f"mean, {draws} draws", GREY, crosses),
    ):
        rho = functional.correlation(entropy, values, "spearman").item()
        x, y = ([side[mask].mean() for mask in filled] for side in (entropy, values))
        axes.plot(x, y, color=color, label=f"{label}; Spearman {rho:.3f}", **style)
    axes.set(
        xlabel="annotators' entropy (nats)",
        ylabel="variance of the last-layer gradient\nover sampled labels",
    )
    axes.set_ylim(0, 1.25 * exact.max().item() or 1.0)  # room for the legend
    axes.set_title(as_typed(title, TITLE), fontsize=9)
    axes.legend(loc="upper left", frameon=False, fontsize=8)
    return figure
