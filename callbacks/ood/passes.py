"""One pass over a dataset, from which all OOD scores are made: logits, penultimate features and,
where it is asked for, ODIN's score.
"""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from callbacks.ood.detectors import ODIN
from core.errors import InputError
from core.ranks import rank_and_ranks
from datamodules import VoteDataModule
from datamodules.loading import TensorLoader
from datamodules.order import BatchOrder
from datamodules.preparation import Standardize
from lightning_modules import AnnotatorClassifier


class Outputs(NamedTuple):
    """What a pass leaves of each item."""

    logits: Tensor
    features: Tensor
    odin: Tensor  # zeros where ODIN is not asked for
    # the item's number in its dataset; hides tuple.index
    index: Tensor  # pyright: ignore[reportIncompatibleMethodOverride]


def check_halves(network: nn.Module) -> None:
    """Refuse a network whose penultimate features have no name."""
    features, head = getattr(network, "features", None), getattr(network, "head", None)
    if not callable(features) or not isinstance(head, nn.Module):
        raise InputError(
            f"{type(network).__name__} does not name its penultimate layer; OOD scores need "
            "`features(inputs)` and a module `head`, as Network has them."
        )


def one_pass(
    classifier: AnnotatorClassifier,
    loader: Iterable[tuple[Tensor, Tensor]],
    odin: ODIN | None = None,
) -> Outputs:
    """Run a classifier over the batches of a loader.

    ODIN takes its gradient from this very pass and adds one pass after its step.
    """
    network, parts = classifier.network, []
    for inputs, index in loader:
        inputs = classifier.prepared(inputs.to(classifier.device)).detach()
        with torch.set_grad_enabled(odin is not None):
            inputs.requires_grad_(odin is not None)
            features = network.features(inputs)
            logits = network.head(features)
        score = torch.zeros(len(index), dtype=torch.float64, device=inputs.device)
        if odin is not None:
            with torch.no_grad():
                score = odin.score(network(odin.step(inputs, logits)))
        parts.append((logits.detach(), features.detach().float(), score, index.to(inputs.device)))
    return Outputs(*(torch.cat(part) for part in zip(*parts, strict=True)))


def foreign_loader(stored: Tensor, data: VoteDataModule) -> TensorLoader:
    """Batches of inputs from elsewhere, as `data.ood_inputs` gives them, prepared as the data are.

    In a DDP run, this rank's share.
    """
    corpus = data.corpus
    assert corpus is not None
    if not isinstance(corpus.inputs, Tensor):
        raise InputError(
            f"{type(data).__name__} reads its inputs one by one, so how to prepare other images "
            "like them is not known; OODScores needs data in memory."
        )
    items = torch.arange(len(stored))
    order = BatchOrder(items, data.batch_size, data.seed, False, *rank_and_ranks())
    # images come as bytes, whatever the data are stored as
    scale = corpus.scale if stored.is_floating_point() else 255
    return TensorLoader(Standardize(stored, corpus.mean, corpus.std, scale), order)
