"""Dawid-Skene and MACE, models of whom to trust, as further ways to soft labels.

They come from crowd-kit, the extra `crowd`.
"""

from importlib import import_module
from typing import Any

import numpy as np

from core.errors import InputError
from core.randomness import generator
from corpora.annotation.aggregation import CLASS_NAMES
from corpora.annotation.judgements import DIGITS, NO, Judgements

MODELS = {"dawid_skene": "DawidSkene", "mace": "MACE"}


def crowd_labels(judgements: Judgements, model: str, seed: int) -> np.ndarray:
    """The soft labels [N, 11] that `dawid_skene` or `mace` infers."""
    if model not in MODELS:
        raise InputError(
            f"the model of annotators is {model}; it must be one of {', '.join(MODELS)}."
        )
    try:
        aggregation: Any = import_module("crowdkit.aggregation")
    except ModuleNotFoundError as error:
        raise InputError(
            f'{model} labels need crowd-kit; install it with pip install -e ".[crowd]" -c '
            "constraints.txt."
        ) from error
    import pandas as pd  # crowd-kit's own tables

    # named by words: crowd-kit takes the numbers 0 and 1 for False and True
    names = np.array(CLASS_NAMES)[single_labels(judgements.answers, seed)]
    rows = pd.DataFrame({"task": judgements.image, "worker": judgements.annotator, "label": names})
    options = {"random_state": seed} if model == "mace" else {}
    result = getattr(aggregation, MODELS[model])(**options).fit_predict_proba(rows)
    table = (
        result.reindex(index=range(len(judgements.images)), columns=list(CLASS_NAMES))
        .fillna(0)
        .to_numpy(float)
    )
    return table / table.sum(1, keepdims=True)


def single_labels(answers: np.ndarray, seed: int) -> np.ndarray:
    """One label per annotation, as these models want it: a yes before an unsure, of several alike
    one by chance, NaN where all is no.

    >>> single_labels(np.array([[1, 0, 2, 0, 0, 0, 0, 0, 0, 0], [0] * 10]), seed=0).tolist()
    [2, 10]
    """
    chance = generator(seed, "single-labels").random(answers.shape)
    return np.where((answers == NO).all(1), DIGITS, (answers + chance).argmax(1))
