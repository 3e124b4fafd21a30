"""A simulated crowd of yes/no/unsure annotators.

Whatever is trained on its votes must be reported as simulated.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from core.errors import InputError
from core.randomness import generator

BLOCK = 4096  # images compared at once with all examples, for memory's sake


@dataclass(frozen=True)
class YesNoUnsureCrowd:
    """Annotators who say yes, no or unsure to every class.

    A yes counts as two votes and an unsure as one.

    Each sees the same evidence through noise of its own: a class that holds most of its belief gets
    a yes, one that holds some an unsure. Who would reject every class is unsure about the
    likeliest, so that each annotator casts at least one vote.

    >>> YesNoUnsureCrowd(annotators=5).judge(np.array([[9.0, 0.0, 0.0]]), seed=0).tolist()
    [[10, 0, 0]]
    """

    annotators: int = 10
    noise: float = 0.7
    yes_above: float = 0.5
    unsure_above: float = 0.2

    def __post_init__(self):
        if self.annotators < 1:
            raise InputError(f"the crowd has {self.annotators} annotators; it needs at least 1.")

    def judge(self, evidence: np.ndarray, seed: int) -> np.ndarray:
        """Vote counts [N, K] from log-evidence [N, K]."""
        belief = self._belief(evidence, seed)
        votes = self._answers(belief).astype(np.int64)
        likeliest = belief.argmax(2)[..., None]
        at_least_one = np.maximum(np.take_along_axis(votes, likeliest, 2), 1)
        np.put_along_axis(votes, likeliest, at_least_one, 2)
        return votes.sum(1)

    def answers(self, evidence: np.ndarray, seed: int) -> np.ndarray:
        """What each annotator says to each class, [N, annotators, K]: 0 no, 1 unsure, 2 yes.

        An annotator who rejects every class says no to all of them here.

        >>> crowd = YesNoUnsureCrowd(annotators=1, noise=0)
        >>> crowd.answers(np.log([[0.6, 0.3, 0.1]]), seed=0).tolist()
        [[[2, 1, 0]]]
        """
        return self._answers(self._belief(evidence, seed))

    def _belief(self, evidence: np.ndarray, seed: int) -> np.ndarray:
        items, classes = evidence.shape
        noise = generator(seed, "crowd").normal(
            scale=self.noise, size=(items, self.annotators, classes)
        )
        return softmax(evidence[:, None] + noise, axis=2)

    def _answers(self, belief: np.ndarray) -> np.ndarray:
        return (belief > self.unsure_above).astype(np.int8) + (belief > self.yes_above)


def class_evidence(
    images: np.ndarray,
    known: np.ndarray,
    labels: np.ndarray,
    own: np.ndarray,
    neighbours: int = 3,
    sharpness: float = 8.0,
) -> np.ndarray:
    """How much each image looks like each class: the nearness of its nearest known examples of that
    class, [N, K].

    `own[i]` are the known examples that image i was made of; they are not compared with. Sharpness
    sets how quickly evidence falls with distance.
    """
    nearest, closest = [], []
    for start in range(0, len(images), BLOCK):
        some = images[start : start + BLOCK]
        distance = np.sqrt(
            np.maximum((some**2).sum(1)[:, None] + (known**2).sum(1) - 2 * some @ known.T, 0)
        )
        np.put_along_axis(distance, own[start : start + BLOCK], np.inf, 1)
        of_class = [
            np.sort(distance[:, labels == label], axis=1)[:, :neighbours].mean(1)
            for label in np.unique(labels)
        ]
        nearest.append(np.stack(of_class, axis=1))
        closest.append(distance.min(1))
    return -sharpness * np.concatenate(nearest) / np.median(np.concatenate(closest))
