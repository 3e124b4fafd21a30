"""How far a model's predictions of the same items move from one epoch to the next."""

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from metrics.functional import item_js
from metrics.inputs import Values


def prediction_drift(before: Values, now: Values, strata: Mapping[str, Tensor | np.ndarray]) -> dict[str, float]:
    """Mean Jensen-Shannon divergence (nats) between two tables of predictions, by stratum; a stratum is a mask of items.

    A stratum without items has no mean and is left out.

    >>> import torch
    >>> before, now = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> prediction_drift(before, now, {"still": torch.tensor([True, False]), "moved": torch.tensor([False, True])})
    {'still': 0.0, 'moved': 0.6931471805599453}
    """
    moved = item_js(before, now)
    return {name: moved[mask].mean().item() for name, mask in strata.items() if mask.any()}
