"""How far a model's predictions of the same items move from one epoch to the next."""

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from core.errors import InputError
from metrics import per_item
from metrics.inputs import Values, distributions_of_items


def prediction_drift(
    before: Values, now: Values, strata: Mapping[str, Tensor | np.ndarray]
) -> dict[str, float]:
    """Mean Jensen-Shannon divergence (nats) between two tables of predictions, by stratum; a
    stratum is a mask of items.

    A stratum without items has no mean and is left out; that of a model that diverged, whose
    predictions are NaN, is NaN.

    >>> import torch
    >>> before, now = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> prediction_drift(before, now,
    ...     {"still": torch.tensor([True, False]), "moved": torch.tensor([False, True])})
    {'still': 0.0, 'moved': 0.6931471805599453}
    """
    moved = per_item.js(*distributions_of_items({"before": before, "now": now}, nan_ok=True))
    for name, mask in strata.items():
        if not str(mask.dtype).endswith("bool") or tuple(mask.shape) != tuple(moved.shape):
            raise InputError(
                f"strata has {name} of shape {list(mask.shape)} and type {mask.dtype}; it must be "
                "a mask, True or False for each item."
            )
    return {name: moved[mask].mean().item() for name, mask in strata.items() if mask.any()}
