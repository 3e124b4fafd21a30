"""What a classifier says of all items of a split, and its mean scores on them, over all ranks."""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.ranks import gather_over_ranks
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier, Prediction
from lightning_modules.preserve_state import preserve_state
from metrics import mean_metrics

ITEMS = 512  # of one pass: there is no gradient, so more than a training batch fits


def split_predictions(
    classifier: AnnotatorClassifier, data: VoteDataModule, split: str
) -> Prediction:
    """One pass over a split, in eval mode and without augmentation."""
    parts = []
    with preserve_state(classifier), torch.no_grad():
        for batch in data.evaluation_batches(data.rows(split), classifier.device, ITEMS):
            probs, _, index = classifier.predict(batch)
            parts.append((index, probs.cpu()))
    return gather_predictions(parts, data)


def gather_predictions(parts: Sequence[tuple[Tensor, Tensor]], data: VoteDataModule) -> Prediction:
    """Batches of (index, probs) of all ranks as one, on the CPU and in the order of item numbers:
    one order for any number of ranks.
    """
    index, probs = (
        gather_over_ranks(torch.cat(column)).cpu() for column in zip(*parts, strict=True)
    )
    order = index.argsort()
    return Prediction(probs[order], data.annotator_probs.cpu()[index[order]], index[order])


def split_scores(
    classifier: AnnotatorClassifier, data: VoteDataModule, split: str
) -> dict[str, torch.Tensor]:
    """Mean scores of a classifier on one split, over all ranks, by names such as `train/kl`."""
    metrics = mean_metrics(f"{split}/").to(classifier.device)
    with preserve_state(classifier), torch.no_grad():
        for batch in data.evaluation_batches(data.rows(split), classifier.device, ITEMS):
            prediction = classifier.predict(batch)
            metrics.update(prediction.probs, prediction.target_probs)
    return metrics.compute()
