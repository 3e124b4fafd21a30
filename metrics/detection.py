"""How well a score tells items from elsewhere (OOD) from those of the data itself: pure functions
of (scores inside, scores outside).

Both are vectors (tensors, numpy arrays or lists), one score per item, and a *higher score means
more OOD*. Items of equal score are treated alike, so no result depends on an order.

>>> inside, outside = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0.35, 0.5, 0.6])
>>> round(auroc(inside, outside).item(), 4)
0.9167
"""

import torch
from torch import Tensor

from core.errors import InputError, name_rows
from metrics.inputs import Values, as_double


def auroc(inside: Values, outside: Values) -> Tensor:
    """The probability that a random OOD item scores above a random item of the data, where a tie
    counts half. 0.5 is chance, 1 is perfect.

    >>> auroc(torch.tensor([1.0, 1.0]), torch.tensor([1.0])).item()
    0.5
    """
    known, foreign = _scores("inside", inside).sort().values, _scores("outside", outside)
    below, not_above = (
        torch.searchsorted(known, foreign),
        torch.searchsorted(known, foreign, right=True),
    )
    return (below + not_above).double().mean() / (2 * len(known))


def aupr(inside: Values, outside: Values) -> Tensor:
    """Average precision with OOD as the positive class: over OOD items, the mean share of OOD among
    all that score at least as high.

    This is the area under the precision-recall curve as a sum of steps, as in scikit-learn's
    `average_precision_score`; joining its points by straight lines, as is also done, promises more
    than any threshold gives. Chance is the share of OOD items.

    >>> aupr(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2.5, 4.0])).item()  # (1/1 + 2/3) / 2
    0.8333333333333333
    """
    known, foreign = (
        _scores("inside", inside).sort().values,
        _scores("outside", outside).sort().values,
    )
    result = len(foreign) - torch.searchsorted(foreign, foreign)
    false_alarms = len(known) - torch.searchsorted(known, foreign)
    return (result.double() / (result + false_alarms)).mean()


def fpr95(inside: Values, outside: Values) -> Tensor:
    """The share of OOD items that pass for data at the lowest threshold that lets at least 95 % of
    the data pass. 0 is perfect, 0.95 is chance.

    An item passes where its score is at most the threshold. (With OOD as the class to be detected
    some libraries report the other error, the share of data refused where 95 % of OOD items are: a
    different number.)

    >>> fpr95(torch.arange(100.0), torch.tensor([50.0, 94.0, 95.0, 200.0])).item()
    0.5
    """
    known, foreign = _scores("inside", inside), _scores("outside", outside)
    kept = -(-19 * len(known) // 20)  # 95 %, rounded up, in whole numbers
    threshold = known.kthvalue(kept).values
    return (foreign <= threshold).double().mean()


def _scores(name: str, values: Values) -> Tensor:
    scores = as_double(values, name)
    if scores.ndim != 1 or not len(scores):
        raise InputError(
            f"{name} has shape {list(scores.shape)}; it must be a vector of at least one score."
        )
    finite = scores.isfinite()
    if not finite.all():
        raise InputError(
            f"{name} has scores that are not finite numbers in "
            f"{name_rows((~finite).nonzero()[:, 0].cpu().numpy())}; each item needs one."
        )
    return scores
