"""Which parts of an image speak for a class: Grad-CAM maps (Selvaraju et al. 2017), a panel of
them, and how alike those of two networks are.
"""

from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from callbacks.figures.grad_cam_panel import draw_panel
from callbacks.probe import Probe, ProbeResult
from core.errors import InputError
from core.ranks import gather_over_ranks, rank_and_ranks
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import Network
from lightning_modules.preserve_state import preserve_state

CHUNK = 256  # items whose activations are held at once


class GradCAM(Probe):
    """Draws what a network looks at in the test items on which annotators agree least, and in some
    on which they all agree.
    """

    def __init__(
        self,
        items: int = 8,
        layer: str | None = None,
        explain: Literal["majority", "predicted"] = "majority",
    ):
        """
        Args:
            items: How many test items the panel shows.
            layer: The module whose output maps are looked at, by its dotted name in the network;
                None for the network's own choice.
            explain: The class that the maps speak for, which the paper does not state: the
                annotators' majority, so that all runs explain the same, or the one that the network
                predicts.
        """
        if items < 2:
            raise InputError(
                f"GradCAM's items is {items}; it must be at least 2, one that annotators disagree "
                "on and one that they agree on."
            )
        if explain not in ("majority", "predicted"):
            raise InputError(f"GradCAM's explain is {explain}; it must be majority or predicted.")
        self.items, self.layer, self.explain = items, layer, explain

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Draw the panel of the test items that tell most."""
        layer = spatial_layer(classifier.network, self.layer)
        rows = panel_rows(data, self.items)
        inputs, maps, probs = self._look(classifier.network, layer, data, rows)
        assert data.corpus is not None
        mean, std = (
            torch.tensor(values, device=inputs.device).reshape(-1, 1, 1)
            for values in (data.corpus.mean, data.corpus.std)
        )
        crowd = " (simulated annotators)" if data.simulated else ""
        picture = partial(
            draw_panel,
            (inputs * std + mean).cpu(),
            maps.cpu(),
            data.annotator_probs[torch.from_numpy(rows)].cpu(),
            probs.cpu(),
            rows,
            f"{data.name}{crowd}: Grad-CAM of {name_of(classifier.network, layer)}, for the "
            + ("annotators' majority class" if self.explain == "majority" else "predicted class"),
        )
        blank = int((maps.flatten(1).amax(1) == 0).sum())
        note = (
            f"GradCAM: of the {len(rows)} maps shown, {blank} are zero everywhere: nothing at "
            "that layer speaks for the class."
        )
        return ProbeResult(figures={"grad_cam": picture}, notes=[note] if blank else [])

    def _look(
        self, network: Network, layer: nn.Module, data: VoteDataModule, rows: np.ndarray
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Inputs, maps and predictions of these items, in their order, on every rank."""
        # repeated where there are fewer items than ranks
        shared = np.resize(rows, max(len(rows), rank_and_ranks()[1]))
        parts = []
        weight = next(network.parameters())
        device = weight.device
        # one batch: no rank is left without an item, of which captum makes no map
        batches = data.evaluation_batches(shared, device, len(shared))
        for inputs, annotator_probs, index in batches:
            inputs = inputs.to(weight.dtype)
            with torch.no_grad():
                probs = network(inputs).double().softmax(-1)
            classes = (annotator_probs if self.explain == "majority" else probs).argmax(-1)
            maps = grad_cam_maps(network, layer, inputs, classes)
            parts.append((index.to(device), inputs, maps, probs))
        index, inputs, maps, probs = (
            gather_over_ranks(torch.cat(part)) for part in zip(*parts, strict=True)
        )
        place = (index == torch.from_numpy(rows).to(index.device)[:, None]).int().argmax(1)
        return inputs[place], maps[place], probs[place]


def grad_cam_maps(network: nn.Module, layer: nn.Module, inputs: Tensor, classes: Tensor) -> Tensor:
    """Maps [N, h, w] of what at a layer's output speaks for the given class of each item; 0 where
    nothing does.

    The channels of that output are weighted by the mean gradient of the class's logit and summed.
    The network is left as it was found. Layers that are followed by an operation in place are safe:
    captum hands on a copy of the layer's output.
    """
    from captum.attr import LayerGradCam

    with preserve_state(network):
        network.requires_grad_(False)  # only what follows the layer is differentiated
        method = LayerGradCam(network, layer)
        maps = [
            method.attribute(part, target=chosen, relu_attributions=True)
            for part, chosen in zip(inputs.split(CHUNK), classes.split(CHUNK), strict=True)
        ]
    result = torch.cat([part.detach() for part in maps])  # pyright: ignore[reportAttributeAccessIssue]
    if result.ndim != 4:
        raise InputError(
            f"Grad-CAM's layer is {name_of(network, layer)}, whose output is no map (channels, "
            "height, width); name another with the option layer."
        )
    return result[:, 0]


def map_correlations(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's correlation over places of each item's two maps, [N, h, w] each; NaN where a map is
    the same at all places.

    >>> maps = torch.tensor([[[0.0, 1.0], [2.0, 3.0]], [[0.0, 0.0], [0.0, 0.0]]])
    >>> map_correlations(maps, 3 - maps).round(decimals=9).tolist()
    [-1.0, nan]
    """
    a, b = a.flatten(1).double(), b.flatten(1).double()
    constant = (a.amin(1) == a.amax(1)) | (b.amin(1) == b.amax(1))
    a, b = a - a.mean(1, keepdim=True), b - b.mean(1, keepdim=True)
    correlations = ((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))).clamp(-1, 1)
    return correlations.masked_fill(constant, torch.nan)


def spatial_layer(network: Network, name: str | None) -> nn.Module:
    """The layer that a user named, or the network's own choice."""
    if name is not None:
        try:
            return network.get_submodule(name)
        except AttributeError as error:
            known = ", ".join(list(dict(network.named_modules()))[1:6])
            raise InputError(
                f"Grad-CAM's layer is {name}, which {type(network).__name__} does not have; its "
                f"modules are {known} and so on."
            ) from error
    if network.spatial is None:
        raise InputError(
            f"Grad-CAM knows no layer of {type(network).__name__} that gives maps; name one with "
            "the option layer."
        )
    return network.spatial


def name_of(network: nn.Module, layer: nn.Module) -> str:
    """A layer as a reader finds it: the network's class and the layer's dotted name."""
    path = next(name for name, module in network.named_modules() if module is layer)
    return f"{type(network).__name__}.{path}"


def panel_rows(data: VoteDataModule, items: int) -> np.ndarray:
    """Test items to show: half of them those of the highest annotator entropy, the others spread
    evenly over the unanimous ones.
    """
    assert data.corpus is not None
    rows, votes = data.corpus.splits["test"], data.corpus.votes
    disputed = rows[np.argsort(-votes.entropy[rows], kind="stable")][: (items + 1) // 2]
    agreed = np.setdiff1d(rows[votes.unanimous[rows]], disputed)
    spread = np.linspace(0, len(agreed) - 1, min(items // 2, len(agreed))).astype(int)
    return np.concatenate([disputed, agreed[spread]])
