"""From raw yes/no/unsure judgements to what is known of each image: soft labels, majority, and how
unsure people were.

Every annotator's answers become a distribution over eleven labels, the ten digits and "NaN" for who
rejects them all; an image's soft label is the mean over its annotators. Equally weighted, an unsure
counts as much as a yes; uncertainty weighted, half as much.

>>> answers = np.array([[YES, UNSURE, NO, NO, NO, NO, NO, NO, NO, NO]])
>>> annotator_labels(answers, unsure=1.0)[0, :2].tolist()
[0.5, 0.5]
>>> annotator_labels(answers, unsure=0.5)[0, :2].round(3).tolist()
[0.667, 0.333]
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import entr
from scipy.stats import rankdata

from core.errors import InputError
from corpora.annotation.judgements import DIGITS, NO, UNSURE, YES, Judgements

CLASS_NAMES = (*"0123456789", "NaN")  # NaN: no digit at all
CORRELATED = (
    "milliseconds",
    "mean uncertainty",
    "unsure proportion",
    "entropy, equally weighted",
    "entropy, uncertainty weighted",
)


@dataclass(frozen=True)
class Aggregate:
    """What annotators said about each image, in the order of the judgements' images."""

    images: np.ndarray  # ids [N]
    equal: np.ndarray  # soft labels [N, 11], unsure counts 1
    uncertainty: np.ndarray  # soft labels [N, 11], unsure counts 1/2
    majority: np.ndarray  # class [N]
    # share of the ten digits that an annotator is unsure about, mean over annotators, [N]
    mean_uncertainty: np.ndarray
    unsure_proportion: np.ndarray  # share of annotators who are unsure about any digit, [N]
    annotations: np.ndarray  # how many there are, [N]
    milliseconds: np.ndarray  # mean over the annotations that have a time, [N]; NaN where none has

    def __len__(self) -> int:
        return len(self.images)


def aggregate(judgements: Judgements) -> Aggregate:
    """All that follows from the judgements for each image."""
    unsure = judgements.answers == UNSURE
    uncertainty = soft_labels(judgements, unsure=0.5)
    return Aggregate(
        images=judgements.images,
        equal=soft_labels(judgements, unsure=1.0),
        uncertainty=uncertainty,
        majority=majority(uncertainty),
        # of ten digits: nobody can be unsure about the eleventh label
        mean_uncertainty=image_means(unsure.mean(1), judgements),
        unsure_proportion=image_means(unsure.any(1), judgements),
        annotations=np.bincount(judgements.image, minlength=len(judgements.images)),
        milliseconds=_mean_times(judgements),
    )


def annotator_labels(answers: np.ndarray, unsure: float) -> np.ndarray:
    """Each annotator's distribution [P, 11] from answers [P, 10]; an unsure weighs `unsure` and a
    yes 1.

    >>> annotator_labels(np.full((1, 10), NO), unsure=1.0)[0].tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    if not 0 < unsure <= 1:
        raise InputError(
            f"the weight of an unsure is {unsure}; it must be above 0 and at most 1, the weight "
            "of a yes."
        )
    weight = np.zeros((len(answers), DIGITS + 1))
    weight[:, :DIGITS] = (answers == YES) + unsure * (answers == UNSURE)
    weight[:, DIGITS] = (answers == NO).all(1)
    return weight / weight.sum(1, keepdims=True)


def soft_labels(judgements: Judgements, unsure: float) -> np.ndarray:
    """The mean of its annotators' distributions for each image, [N, 11]."""
    return image_means(annotator_labels(judgements.answers, unsure), judgements)


def image_means(values: np.ndarray, judgements: Judgements) -> np.ndarray:
    """The mean over each image's annotations of values [P, ...]."""
    total = np.zeros((len(judgements.images), *values.shape[1:]))
    np.add.at(total, judgements.image, values)
    number = np.bincount(judgements.image, minlength=len(total))
    return total / number.reshape(-1, *[1] * (values.ndim - 1))


def majority(labels: np.ndarray) -> np.ndarray:
    """The likeliest class of each soft label; of those that differ by rounding alone, the one with
    the lowest number.

    >>> majority(np.array([[1 / 3, 0.1 + 0.2 + 1 / 30, 1 / 3]])).tolist()
    [0]
    """
    return labels.round(12).argmax(1)


def annotations_per_image(judgements: Judgements) -> dict[int, int]:
    """How many images have how many annotations: the histogram, fewest first."""
    number, images = np.unique(
        np.bincount(judgements.image, minlength=len(judgements.images)), return_counts=True
    )
    return dict(zip(number.tolist(), images.tolist(), strict=True))


def correlations(result: Aggregate, method: str = "pearson") -> np.ndarray:
    """How response time, both uncertainties and both entropies go together over images: a matrix
    [5, 5] in the order of `CORRELATED`.

    Images without a time are left out where others have one. NaN stands for what cannot be known:
    of a time that is never given, or of a quantity that is the same for every image. The paper does
    not say which correlation its table shows: pearson or spearman.
    """
    if method not in ("pearson", "spearman"):
        raise InputError(f"the correlation is {method}; it must be pearson or spearman.")
    entropies = (entr(labels).sum(1) for labels in (result.equal, result.uncertainty))
    columns = np.stack(
        [result.milliseconds, result.mean_uncertainty, result.unsure_proportion, *entropies]
    )
    timed = ~np.isnan(result.milliseconds)
    columns = columns[:, timed] if timed.any() else columns
    if method == "spearman":
        columns = rankdata(columns, axis=1, nan_policy="propagate")
    deviation = columns - columns.mean(1, keepdims=True)
    deviation[np.ptp(columns, axis=1) == 0] = np.nan
    length = np.sqrt((deviation**2).sum(1))
    return (deviation @ deviation.T) / np.outer(length, length)


def _mean_times(judgements: Judgements) -> np.ndarray:
    timed = ~np.isnan(judgements.milliseconds)
    share = image_means(timed, judgements)
    total = image_means(np.where(timed, judgements.milliseconds, 0), judgements)
    return np.divide(total, share, out=np.full(len(total), np.nan), where=share > 0)
