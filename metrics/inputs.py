"""What scores are given: torch tensors, numpy arrays or lists, and one sentence where they are not
distributions.

>>> check(*as_tables([[0.9, 0.1]], [[30, 20]]))
Traceback (most recent call last):
core.errors.InputError: target_probs looks like counts, whole numbers that sum to up to 50 in row 0;
divide each row by its sum.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from core.errors import InputError, name_rows

Values = Tensor | ArrayLike

# How far a row's sum may be from 1: what bfloat16 rounds off (up to 1/256), and three decimals over
# ten classes (up to 0.005).
TOLERANCE = 5e-3
NAMES = ("probs", "target_probs")
RIGHT = "each row must hold numbers of 0 or more that sum to 1"


def as_tensor(values: Values, name: str = "the input") -> Tensor:
    """Tensors as they are; anything else is copied, in double precision or int64, because torch
    shares no memory with arrays that are read-only or reversed.

    >>> as_tensor([[0.5, 0.5]]).dtype
    torch.float64
    """
    if isinstance(values, Tensor):
        if values.is_complex():
            raise InputError(f"{name} holds {values.dtype} values; they must be real numbers.")
        return values
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(
            f"{name} has rows of different lengths; every row needs one number per class."
        ) from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} holds {array.dtype} values; they must be real numbers.")
    return torch.from_numpy(
        array.astype(np.float64 if array.dtype.kind == "f" else np.int64, order="C")
    )


def as_double(values: Values, name: str = "the input") -> Tensor:
    """The same in double precision."""
    return as_tensor(values, name).double()


def as_floats(given: Mapping[str, Values], device: torch.device | None = None) -> list[Tensor]:
    """All as floating point tensors.

    Only what is no tensor yet is brought to the device, or to that of the others.
    """
    device = device or next(
        (values.device for values in given.values() if isinstance(values, Tensor)), None
    )
    tensors = [
        as_tensor(v, name) if isinstance(v, Tensor) else as_tensor(v, name).to(device)
        for name, v in given.items()
    ]
    return [tensor if tensor.is_floating_point() else tensor.double() for tensor in tensors]


def as_tables(
    probs: Values, target_probs: Values, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """Both as floating point tables of one shape [N, K]."""
    model, annotator_probs = as_floats(dict(zip(NAMES, (probs, target_probs), strict=True)), device)
    for name, table in zip(NAMES, (model, annotator_probs), strict=True):
        if table.ndim != 2 or table.shape[1] < 2:
            raise InputError(
                f"{name} has shape {list(table.shape)}; it must be a table [items, classes] of "
                "two classes or more."
            )
    if model.shape != annotator_probs.shape:
        shapes = (
            f"probs has shape {list(model.shape)} and target_probs {list(annotator_probs.shape)}"
        )
        raise InputError(f"{shapes}; both must have the same items and classes.")
    return model, annotator_probs


def distributions(probs: Values, target_probs: Values) -> tuple[Tensor, Tensor]:
    """Both as tables of distributions; an InputError where they are not."""
    tables = as_tables(probs, target_probs)
    check_rows(len(tables[0]))
    check(*tables)
    return tables


def distributions_of_items(given: Mapping[str, Values], nan_ok: bool = False) -> list[Tensor]:
    """All as distributions over the last dimension, of one shape: [..., N, K] may stand beside [N,
    K]. There may be no items.
    """
    tensors = as_floats(given)
    for name, tensor in zip(given, tensors, strict=True):
        if tensor.ndim == 0 or tensor.shape[-1] < 2:
            raise InputError(
                f"{name} has shape {list(tensor.shape)}; its last dimension must hold two classes "
                "or more."
            )
    largest = max((tensor.shape for tensor in tensors), key=len)
    if any(tensor.shape != largest[len(largest) - tensor.ndim :] for tensor in tensors):
        shapes = " and ".join(
            f"{name} of shape {list(tensor.shape)}"
            for name, tensor in zip(given, tensors, strict=True)
        )
        raise InputError(
            f"{shapes} do not fit together; they must have the same items and classes, and one of "
            "them may have more dimensions in front."
        )
    for name, tensor in zip(given, tensors, strict=True):
        check_one(name, tensor, nan_ok)
    return [tensor.expand(largest) for tensor in tensors]


def check_rows(number: float) -> None:
    """Refuse to score no items at all."""
    if not number:
        raise InputError("probs and target_probs have no rows; a score needs at least one item.")


def check(probs: Tensor, target_probs: Tensor, nan_ok: bool = False) -> None:
    """Look at both tables and refuse what is no distribution; `nan_ok` lets predictions of NaN
    pass.
    """
    check_one("probs", probs, nan_ok)
    check_one("target_probs", target_probs)


def check_one(name: str, table: Tensor, nan_ok: bool = False) -> None:
    """Three numbers tell whether a closer look is needed."""
    if not table.numel():
        return
    sums = table.sum(-1, dtype=torch.float64)
    least, most = sums.aminmax()
    if least.item() - 1 >= -TOLERANCE and most.item() - 1 <= TOLERANCE and table.amin().item() >= 0:
        return  # no comparison holds of NaN
    wrong = ((sums - 1).abs() > TOLERANCE) | (table.amin(-1) < 0) | sums.isnan()
    if nan_ok:
        wrong &= ~table.isnan().any(-1)
    if wrong.any():
        where = f" in {name_rows(wrong.nonzero()[:, 0].cpu().numpy())}" if table.ndim == 2 else ""
        _refuse(name, evidence(table[~table.isnan().any(-1)] if nan_ok else table).tolist(), where)


def evidence(table: Tensor) -> Tensor:
    """What tells a distribution from counts and logits, in four numbers of which the largest count,
    over batches and ranks: the lowest entry and the lowest excess of a row's sum over 1 (both
    negated), the highest excess, and the largest fraction. They stay on the device: nothing waits
    for them.
    """
    table = table.detach().double()
    least, most = table.sum(-1).aminmax()
    return torch.stack([-table.amin(), 1 - least, most - 1, table.frac().amax()])


def check_evidence(both: Tensor, nan_ok: bool = False) -> None:
    """The same as `check` after the fact, by the `evidence` of all that was seen of probs and of
    target_probs.
    """
    for name, result in zip(NAMES, both.tolist(), strict=True):
        if not (nan_ok and name == "probs" and math.isnan(result[2])):  # a model that diverged
            _refuse(name, result, "")


def _refuse(name: str, result: Sequence[float], where: str) -> None:
    lowest, least, most, fraction = -result[0], -result[1], result[2], result[3]
    if most == -math.inf:  # nothing was seen
        return
    if not all(map(math.isfinite, result)):
        raise InputError(f"{name} has values that are not finite numbers{where}; {RIGHT}.")
    off = least < -TOLERANCE or most > TOLERANCE
    if lowest < 0 and off:
        raise InputError(
            f"{name} looks like logits, numbers down to {lowest:g} that do not sum to 1{where}; "
            "apply softmax to each row."
        )
    if lowest < 0:
        raise InputError(f"{name} has negative numbers{where}; {RIGHT}.")
    if most > TOLERANCE and fraction == 0:
        raise InputError(
            f"{name} looks like counts, whole numbers that sum to up to {1 + most:g}{where}; "
            "divide each row by its sum."
        )
    if off:
        sums = " to ".join(dict.fromkeys(f"{1 + excess:g}" for excess in (least, most)))
        raise InputError(f"{name} does not sum to 1{where}: row sums are {sums}; {RIGHT}.")
