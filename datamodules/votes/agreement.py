"""How far annotators agree, with each other and one by one, from counts and single votes."""

from dataclasses import dataclass

import numpy as np

from datamodules.votes.annotations import AT_ONCE, Annotations

FEWEST = 10  # votes on items that others judged, too: an annotator with fewer is not judged
FAR = 3.0  # standard deviations below the median annotator
RARE = 1e-3  # the chance of always giving one label, below which it is suspicious


def krippendorff_alpha(counts: np.ndarray, interval: bool = False) -> float:
    """Krippendorff's alpha from counts [N, K]: for nominal data, or for `interval` data, where
    classes are numbers at equal distances and near ones disagree less.

    1 is perfect agreement, 0 that of chance.

    Items with one vote pair with nothing and are left out, as he does. NaN where there is nothing
    to compare: no item has two votes, or all votes name one class.

    >>> round(krippendorff_alpha(np.array([[2, 0], [0, 2], [1, 1]])), 4)  # 1 - (1/3) / (3/5)
    0.4444
    """
    differences = _squared_differences if interval else _differing_pairs
    observed, of_class = 0.0, np.zeros(counts.shape[1])
    for start in range(0, len(counts), step := max(1, AT_ONCE // counts.shape[1])):
        part = counts[start : start + step].astype(np.float64)
        votes = part.sum(1)
        part, votes = part[votes > 1], votes[votes > 1]
        observed += float((differences(part) / (votes - 1)).sum())
        of_class += part.sum(0)
    if np.count_nonzero(of_class) < 2:
        return float("nan")
    by_chance = differences(of_class[None])[0]  # of any two votes, whatever their items
    return float(1 - observed * (of_class.sum() - 1) / by_chance)


def _differing_pairs(counts: np.ndarray) -> np.ndarray:
    """Of each row, the ordered pairs of votes for different classes."""
    return counts.sum(1) ** 2 - (counts**2).sum(1)


def _squared_differences(counts: np.ndarray) -> np.ndarray:
    """Of each row, the squared distance of classes, summed over ordered pairs of votes."""
    rating = np.arange(counts.shape[1], dtype=np.float64)
    return 2 * (counts.sum(1) * (counts @ rating**2) - (counts @ rating) ** 2)


@dataclass(frozen=True)
class AnnotatorRecords:
    """How each annotator voted, one entry of each array per annotator."""

    votes: np.ndarray  # how many they gave
    compared: np.ndarray  # votes on items that someone else judged
    agreement: np.ndarray  # share of others' votes that were the same; NaN where nothing compares
    favourite: np.ndarray  # the class they chose most
    favourite_share: np.ndarray  # of their votes


def annotator_records(annotations: Annotations, counts: np.ndarray) -> AnnotatorRecords:
    """One pass over all votes; `counts` are those of all of them, each annotator's own included."""
    num_annotators, classes = len(annotations.names), counts.shape[1]
    compared, same = np.zeros((2, num_annotators))
    total = counts.sum(1, dtype=np.int64)
    for start in range(0, len(annotations.item), AT_ONCE):
        item, label, who = (column[start : start + AT_ONCE] for column in annotations[:3])
        others = total[item] - 1
        share = (counts[item, label] - 1) / np.maximum(others, 1)
        compared += np.bincount(who, others > 0, num_annotators)
        same += np.bincount(who, np.where(others > 0, share, 0.0), num_annotators)
    given = np.zeros((num_annotators, classes), np.int64)
    np.add.at(given, (annotations.annotator, annotations.label), 1)
    votes = given.sum(1)
    agreement = np.divide(same, compared, out=np.full(num_annotators, np.nan), where=compared > 0)
    favourite, share = given.argmax(1), given.max(1) / np.maximum(votes, 1)
    return AnnotatorRecords(votes, compared.astype(np.int64), agreement, favourite, share)


def far_below(records: AnnotatorRecords) -> tuple[np.ndarray, float, float]:
    """Annotators who agree with others far less than most do; with the median and spread they are
    compared to.

    An annotator is judged from FEWEST compared votes on, and is far below if their agreement is
    more than FAR standard deviations below the median of all who are judged. The standard deviation
    is the larger of two: the spread over annotators (1.4826 x the median absolute deviation), and
    the error of a mean of as many votes at the median agreement. So few votes, or a very even
    crowd, accuse nobody.
    """
    judged = np.flatnonzero(records.compared >= FEWEST)
    if len(judged) < 3:
        return np.empty(0, int), float("nan"), float("nan")
    agreement, votes = records.agreement[judged], records.compared[judged]
    median = float(np.median(agreement))
    spread = 1.4826 * float(np.median(np.abs(agreement - median)))
    chance = (median * votes + 1) / (votes + 2)  # never quite 0 or 1
    error = np.sqrt(chance * (1 - chance) / votes)
    return judged[agreement < median - FAR * np.maximum(spread, error)], median, spread


def one_label_only(records: AnnotatorRecords, shares: np.ndarray) -> np.ndarray:
    """Annotators of at least FEWEST votes who always gave one label, against all odds.

    That is where votes at random, by the label's share of all votes, would have done so with a
    chance below RARE.
    """
    chance = shares[records.favourite] ** records.votes
    always = (records.votes >= FEWEST) & (records.favourite_share == 1)
    return np.flatnonzero(always & (chance < RARE))
