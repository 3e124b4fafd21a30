"""Prediction sets as a probe: how large a set must be to hold what people say, and where."""

import numpy as np
import pyarrow as pa
from scipy.special import softmax

from callbacks.post_hoc.held_out import HeldOutLogits, halves_in_words, held_out_parts
from callbacks.probe import Probe, ProbeResult
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from metrics.prediction_sets import (
    DRAWS,
    check_options,
    majority_threshold,
    set_threshold,
)
from metrics.prediction_sets import PredictionSets as Sets
from metrics.registry import STRATA


class PredictionSets(Probe):
    """`set_coverage`, the share of annotators' votes that lie in the sets, and `set_size`, how many
    classes these hold, over all test items, over unanimous (`_nohlv`) and other ones (`_hlv`) and
    those of high disagreement (`_high`); the sets themselves in prediction_sets.parquet.

    Thresholds come from validation items, by Monte Carlo conformal prediction. Beside them stand
    those of usual conformal prediction, which takes the majority for the truth (`_majority`). Where
    a dataset's test items serve for validation, too, each half has the threshold of the other.
    """

    def __init__(self, alpha: float = 0.1, draws: int = DRAWS) -> None:
        """
        Args:
            alpha: The share of votes that may lie outside of the sets.
            draws: Labels that are drawn from each validation item's votes.
        """
        check_options(alpha, draws)
        self.alpha, self.draws = alpha, draws

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Predict all held-out items once; thresholds from some, sets of the others."""
        assert data.corpus is not None
        parts, votes = held_out_parts(data), data.corpus.votes
        seen = HeldOutLogits(classifier, data, parts)
        rows = np.concatenate([part.judged for part in parts])
        by_votes, by_majority = [], []
        for part in parts:
            fitted = softmax(seen.of(part.fitted), 1), votes.take(part.fitted).probs
            judged = softmax(seen.of(part.judged), 1)
            least = set_threshold(*fitted, self.alpha, data.seed, self.draws)
            by_votes.append(Sets.of(judged, least).members)
            by_majority.append(Sets.of(judged, majority_threshold(*fitted, self.alpha)).members)
        target_probs = votes.take(rows).probs
        sets, usual = (Sets(np.concatenate(found)) for found in (by_votes, by_majority))
        coverage = sets.coverage(target_probs)
        unanimous = data.annotator_votes.unanimous[rows]
        strata = dict(zip(STRATA, (unanimous, ~unanimous), strict=True))
        strata["high"] = data.annotator_votes.high_disagreement()[rows]
        metrics = {"set_coverage": coverage.mean(), "set_size": sets.size.mean()}
        for stratum, mask in strata.items():
            if mask.any():
                metrics[f"set_coverage_{stratum}"] = coverage[mask].mean()
                metrics[f"set_size_{stratum}"] = sets.size[mask].mean()
        metrics["set_coverage_majority"] = usual.coverage(target_probs).mean()
        metrics["set_size_majority"] = usual.size.mean()
        return ProbeResult(
            {name: float(value) for name, value in metrics.items()},
            items={"prediction_sets": set_table(rows, sets, coverage)},
            notes=halves_in_words(parts, type(self).__name__),
        )


def set_table(rows: np.ndarray, sets: Sets, coverage: np.ndarray) -> pa.Table:
    """A row for each item: its number, the classes of its set, how many these are, and the share of
    votes for them.

    >>> sets = Sets(np.array([[True, True], [False, True]]))
    >>> set_table(np.array([7, 3]), sets, np.array([1.0, 0.9])).to_pylist()[0]
    {'index': 3, 'classes': [1], 'size': 1, 'coverage': 0.9}
    """
    order = rows.argsort()
    ends = np.concatenate([[0], sets.size[order].cumsum()])
    classes = pa.ListArray.from_arrays(ends.astype(np.int32), sets.members[order].nonzero()[1])
    columns = {"classes": classes, "size": sets.size[order], "coverage": coverage[order]}
    return pa.table({"index": rows[order], **columns})
