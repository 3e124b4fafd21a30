"""Scores of classes that are in an order: they join where a datamodule says `ordinal = True`."""

from functools import partial

from metrics import functional, ordinal, per_item
from metrics.registry import Score, add

_OfItems = partial(Score, better="lower", per_item=True, batched=True, ordinal=True)

for _score in (
    _OfItems(
        "wasserstein",
        per_item.wasserstein,
        "Wasserstein-1 to annotators",
        unit="classes",
        floor=ordinal.median_steps,
        reference="Werman, Peleg and Rosenfeld 1985",
    ),
    _OfItems(
        "rps",
        per_item.rps,
        "Ranked probability score",
        floor="mean",
        reference="Epstein 1969, Murphy 1971; not divided by classes - 1",
    ),
    _OfItems(
        "rating_mae",
        per_item.rating_error,
        "Mean absolute error of the mean rating",
        unit="classes",
        floor=ordinal.median_rating,
        reference="of mean ratings, as sources do not say of which",
    ),
    Score(
        "rating_alpha",
        functional.rating_alpha,
        "Krippendorff's alpha of mean ratings",
        "higher",
        undefined="all mean ratings of model and annotators are the same",
        ordinal=True,
        floor="zero",
        reference="Krippendorff 2011, interval data",
    ),
):
    add(_score)
