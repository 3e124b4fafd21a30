"""Raw judgements and the images that they are of, to one parquet file in the columns of
soft-digits.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from core.errors import InputError
from corpora.annotation.aggregation import CLASS_NAMES, aggregate
from corpora.annotation.annotation_report import annotation_lines
from corpora.annotation.crowd_models import crowd_labels
from corpora.annotation.judgements import Judgements, read_judgements
from corpora.annotation.soft_digits_table import (
    SoftDigitsTable,
    label_table,
    pixels,
    split_words,
    write_soft_digits,
)
from datamodules.io.tables import read_table, refuse
from datamodules.votes.table import VoteTable

COLUMNS = ("image", "images", "original_labels", "split", "source")


def annotate(
    raw: Path, items: Path, out: Path, models: Sequence[str] = (), seed: int = 0
) -> list[str]:
    """Write `out`, which SoftDigits reads as `data.published`, and return what the judgements came
    to, in a few lines.

    Args:
        raw: The judgements (`read_judgements` says in which columns); who failed an attention check
            is left out.
        items: A parquet file with the id that judgements call an image by (image), the picture
            (images), original_labels, split and source.
        models: dawid_skene, mace or both, for further labels by crowd-kit.
        seed: Of these models.
    """
    everyone = read_judgements(raw)
    judgements = everyone.attentive()
    result = aggregate(judgements)
    table = read_table(items, COLUMNS)
    rows = _rows_of(judgements, [str(name).strip() for name in table["image"]], raw, items)
    chosen = {column: [values[row] for row in rows] for column, values in table.items()}
    made = {
        "majority": np.eye(len(CLASS_NAMES))[result.majority],
        "equal": result.equal,
        "uncertainty": result.uncertainty,
    }
    made |= {model: crowd_labels(judgements, model, seed) for model in models}
    labels = {
        name: VoteTable.from_probs(probs, source=f"{raw}, {name} labels,")
        for name, probs in made.items()
    }
    annotated = SoftDigitsTable(
        images=pixels(chosen["images"], items),
        labels={
            "original": label_table(chosen["original_labels"], f"{items}, column original_labels,"),
            **labels,
        },
        human_uncert_mean=result.mean_uncertainty,
        pct_ann_unsure=result.unsure_proportion,
        split=split_words(chosen["split"], items),
        source=np.array(chosen["source"]),
        simulated=False,
    )
    write_soft_digits(out, annotated)
    return annotation_lines(everyone, judgements, result)


def _rows_of(judgements: Judgements, names: list[str], raw: Path, items: Path) -> np.ndarray:
    """Where each judged image is among the items, which may hold images that nobody judged."""
    ids, first = np.unique(np.array(names), return_index=True)
    again = np.setdiff1d(np.arange(len(names)), first)
    refuse(again, items, "an image id that was there before", "every image needs its own")
    place = np.searchsorted(ids, judgements.images).clip(max=len(ids) - 1)
    absent = judgements.images[ids[place] != judgements.images]
    if len(absent):
        raise InputError(
            f"{raw} judges the image {absent[0]}, which {items} does not have; every judged image "
            "must be there."
        )
    return first[place]
