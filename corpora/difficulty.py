"""Easy, ambiguous or hard: where each item lies on the data map of a small network that is watched
while it learns (Swayamdipta et al. 2020).
"""

from dataclasses import dataclass

import numpy as np
import torch

from core.errors import InputError
from corpora.short_training import predicted, trained
from lightning_modules.networks import Network, SimpleFFN
from metrics.cartography import DataMap, data_map, item_values

REGIONS = ("easy", "ambiguous", "hard")
NONE = len(REGIONS)  # the code of an item in no region


@dataclass(frozen=True)
class Regions:
    """Bounds on the map.

    The paper draws its regions by such bounds, too; their values are lost in the text that these
    were written from.
    """

    epochs: int = 5  # of training and of the map; lost, too
    ambiguous_variability: float = 0.2  # this or more is ambiguous, whatever the confidence
    easy_confidence: float = 0.9  # of the others, this or more is easy
    hard_confidence: float = 0.4  # and this or less is hard

    def __post_init__(self):
        if self.epochs < 2:
            raise InputError(f"epochs of a data map is {self.epochs}; variability needs 2 or more.")
        if not 0 <= self.hard_confidence < self.easy_confidence <= 1:
            raise InputError(
                f"hard_confidence is {self.hard_confidence} and easy_confidence "
                f"{self.easy_confidence}; the first must be the smaller, both from 0 to 1."
            )
        if not 0 < self.ambiguous_variability <= 0.5:
            raise InputError(
                f"ambiguous_variability is {self.ambiguous_variability}; it must be above 0 and "
                "at most 0.5, the most there can be."
            )

    def of(self, confidence: np.ndarray, variability: np.ndarray) -> np.ndarray:
        """The number of each item's region in `REGIONS`, or `NONE`.

        >>> Regions().of(np.array([0.95, 0.5, 0.1, 0.6]), np.array([0.05, 0.3, 0.1, 0.1])).tolist()
        [0, 1, 2, 3]
        """
        easy, hard = confidence >= self.easy_confidence, confidence <= self.hard_confidence
        return np.select(
            [variability >= self.ambiguous_variability, easy, hard], [1, 0, 2], NONE
        ).astype(np.int8)


def watched_map(images: np.ndarray, labels: np.ndarray, epochs: int, seed: int) -> DataMap:
    """The map of items over the epochs of a small network that learns their distributions [N, K].

    The network has one hidden layer.
    """
    annotator_probs, digits = torch.from_numpy(labels), torch.from_numpy(labels.argmax(1))
    record = []

    def watch(network: Network) -> None:
        values = item_values(predicted(network, images), annotator_probs, digits)
        record.append(values.float().numpy())

    trained(SimpleFFN, images, labels, epochs, seed, watch)
    return data_map([np.stack(record)])
