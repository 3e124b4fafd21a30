"""How alike two networks represent the same items, whatever the order, rotation or scale of their
features.
"""

import math

import torch
from torch import Tensor

from core.errors import InputError


def linear_cka(x: Tensor, y: Tensor) -> float:
    """Linear centred kernel alignment (Kornblith et al. 2019) of two sets of features, [N, D] and
    [N, E], of the same N items.

    It is 1 where one is a rotation and rescaling of the other. The products are taken in feature
    space, so the cost is linear in the items. Where items are not many more than features,
    unrelated features score above 0 as well (Gaussian ones of width 512 reach 0.56 on 400 items and
    0.20 on 2,000), so that values are comparable only between sets of about one size. NaN where
    either side is the same for all items.

    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0]])
    >>> round(linear_cka(x, 5 * x.flip(1)), 12)
    1.0
    """
    if len(x) != len(y):
        raise InputError(
            f"the features to compare are of {len(x)} and {len(y)} items; both must be of the "
            "same items."
        )
    if len(x) == 0 or any(torch.equal(side.amin(0), side.amax(0)) for side in (x, y)):
        return math.nan
    x, y = (side.double() - side.double().mean(0) for side in (x, y))
    return float((x.T @ y).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm()))
