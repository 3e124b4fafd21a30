"""The embedded default, which needs no download: scanned digits, labelled by a *simulated* crowd.

The digits are real, and made ambiguous by blending pairs.
"""

import numpy as np
import torch

from core.randomness import generator
from corpora.annotation.crowd import YesNoUnsureCrowd, class_evidence
from datamodules.corpus import Corpus
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.splitting import stratified_split
from datamodules.votes.table import VoteTable


class Digits(VoteDataModule):
    """scikit-learn's 1,797 scanned digits (8 x 8) and blends of them, with SIMULATED annotators.

    Digits are paired at random into families. A family is two digits and two blends of them. All
    four fall into the same split, so that no test image was blended from a training digit.
    """

    num_classes = 10
    input_shape = (1, 8, 8)
    class_names = tuple("0123456789")
    simulated = True

    def __init__(self, annotators: int = 10, crowd_seed: int = 0, **kwargs):
        """
        Args:
            annotators: How many simulated annotators judge each image.
            crowd_seed: Of the pairs, the blends and the crowd. It is apart from the run's seed, so
                that all runs see the same data.
        """
        super().__init__(**kwargs)
        self.annotators, self.crowd_seed = annotators, crowd_seed

    def load(self) -> Corpus:
        """Digits and blends, judged by the crowd and split by families."""
        images, evidence, classes = blended_digits(self.crowd_seed)
        judged = YesNoUnsureCrowd(self.annotators).judge(evidence, self.crowd_seed)
        votes = VoteTable(judged, source="the simulated crowd")
        families = stratified_split(classes, [0.7, 0.15, 0.15], self.seed)
        first = len(classes) * np.arange(4)[:, None]  # row of the first digits, of the second, …
        rows = [(first + part).ravel() for part in families]
        stored = torch.from_numpy(images)[:, None]
        seen = stored[torch.from_numpy(rows[0])] / 16
        return Corpus(
            inputs=stored,
            votes=votes,
            splits=dict(zip(("train", "val", "test"), map(np.sort, rows), strict=True)),
            mean=(float(seen.mean()),),
            std=(float(seen.std()),),
            scale=16,
        )


def blended_digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images [4 F, 8, 8], their class evidence [4 F, 10], and the class of F families.

    A family has the class of its first digit. Rows 0 to F-1 are the families' first digits, then
    come the second digits and the two blends.
    """
    from sklearn.datasets import load_digits  # takes half a second: only who wants digits waits

    digits, labels = (np.asarray(values) for values in load_digits(return_X_y=True))
    rng = generator(seed, "digit-pairs")
    first, second = rng.permutation(len(digits))[: len(digits) // 2 * 2].reshape(2, -1)
    share = rng.uniform(0.3, 0.7, size=(2, len(first), 1))
    blends = share * digits[first] + (1 - share) * digits[second]
    images = np.concatenate([digits[first], digits[second], *blends]).astype(np.float32)
    # Whoever judges an image knows other digits than those in it: its family is not compared with.
    own = np.tile(np.stack([first, second], axis=1), (4, 1))
    evidence = class_evidence(images, digits.astype(np.float32), labels, own)
    return images.reshape(-1, 8, 8), evidence, labels[first]
