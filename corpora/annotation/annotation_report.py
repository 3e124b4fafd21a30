"""What people's judgements came to, in a few lines: who was left out, how often images were judged,
and what goes together with doubt.
"""

import numpy as np

from corpora.annotation.aggregation import (
    CORRELATED,
    Aggregate,
    annotations_per_image,
    correlations,
)
from corpora.annotation.judgements import Judgements


def annotation_lines(raw: Judgements, kept: Judgements, result: Aggregate) -> list[str]:
    """Of the judgements as they came, those of attentive annotators, and what follows from
    these.
    """
    failed = len(raw.inattentive)
    unanimous = (result.uncertainty.max(1) == 1).mean()
    histogram = ", ".join(
        f"{images:,} x {number}" for number, images in annotations_per_image(kept).items()
    )
    return [
        f"{len(result):,} images, {len(kept):,} annotations by {len(kept.annotators):,} "
        f"annotators; {failed:,} failed an attention check and are left out",
        f"images x annotations: {histogram}",
        f"unanimous (NoHLV): {unanimous:.1%}; no digit (NaN) by majority: "
        f"{(result.majority == result.uncertainty.shape[1] - 1).mean():.1%}",
        f"mean uncertainty: {result.mean_uncertainty.mean():.3f}; unsure proportion: "
        f"{result.unsure_proportion.mean():.3f}",
        "Pearson correlations over images of "
        + ", ".join(f"({place}) {name}" for place, name in enumerate(CORRELATED, 1))
        + ":",
        *_matrix(correlations(result)),
    ]


def _matrix(values: np.ndarray) -> list[str]:
    """The lower half; a dash for what cannot be known.

    >>> _matrix(np.array([[1.0, 0.5], [0.5, 1.0]]))
    ['  (1)   1.000', '  (2)   0.500   1.000']
    """
    rows = []
    for place, row in enumerate(values):
        numbers = ("       -" if np.isnan(value) else f"{value:8.3f}" for value in row[: place + 1])
        rows.append(f"  ({place + 1})" + "".join(numbers))
    return rows
