"""Many seeds per method, paired across methods by seed. Differences are always a - b."""

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata, ttest_rel

from core.errors import InputError, name_rows
from core.randomness import generator
from studies.analysis.signed_ranks import tails

LARGEST = 1e150  # a number whose square, and sums of such squares, are numbers
Alternative = Literal["two-sided", "less", "greater"]
Better = Literal["lower", "higher"]


class Summary(NamedTuple):
    """What a table shows of one method."""

    mean: float
    sd: float
    n: int


class Test(NamedTuple):
    """A test's result.

    `minimum_p` is the smallest p that `n` pairs can give (NaN where there is no such bound).
    """

    __test__ = False  # or pytest takes the name for a class of tests

    statistic: float
    p: float
    minimum_p: float
    n: int


def summary(values: ArrayLike) -> Summary:
    """Mean and sample standard deviation (n - 1 in the denominator) over seeds; one seed has no SD,
    so it is NaN.

    >>> summary([1.0, 2.0, 3.0])
    Summary(mean=2.0, sd=1.0, n=3)
    >>> summary([0.1]).sd
    nan
    """
    return _summary(_values("values", values, least=1))


def paired_t(a: ArrayLike, b: ArrayLike) -> Test:
    """Two-sided paired t-test: is the mean difference 0?

    It takes differences to be roughly normal, which few seeds cannot show.

    Without any spread, of which scipy makes NaN and warnings, the limit is given: p = 1 where all
    differences are 0, p = 0 (statistic ±inf) where they are another constant.

    >>> paired_t([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    Test(statistic=1.73..., p=0.22..., minimum_p=nan, n=3)
    """
    differences, effect = _differences(a, b), effect_size(a, b)
    n = len(differences)
    if effect == 0 or math.isinf(effect):
        return Test(effect, float(effect == 0), math.nan, n)
    result = ttest_rel(differences, np.zeros(n))
    return Test(float(result.statistic), float(result.pvalue), math.nan, n)


def paired_wilcoxon(a: ArrayLike, b: ArrayLike, alternative: Alternative = "two-sided") -> Test:
    """Wilcoxon signed-rank test: does the sign of the difference favour one side, large differences
    counting more?

    `less` asks whether a is smaller than b, `greater` whether it is larger. The statistic is the
    sum of the positive differences' ranks. Tied magnitudes share their mean rank, and the
    distribution is that of these very ranks under all 2^n signs, which scipy's exact one is not;
    `studies.analysis.signed_ranks` says up to how many pairs it is exact.

    Zero differences favour neither side and are dropped before ranking. `n` counts what is left,
    and `minimum_p` (2^-n one-sided, 2^(1-n) two-sided) follows from that n and not from all pairs:
    it is what the test could reach at best on these differences, so it never promises more than
    they hold. Where nothing is left, p and `minimum_p` are 1.

    >>> paired_wilcoxon([1, 2, 3, 4, 5], [2, 4, 6, 8, 10], alternative="less")
    Test(statistic=0.0, p=0.03125, minimum_p=0.03125, n=5)
    """
    if alternative not in ("two-sided", "less", "greater"):
        raise InputError(f"alternative is {alternative}; it must be two-sided, less or greater.")
    differences = _differences(a, b)
    differences = differences[differences != 0]
    twice_ranks = np.rint(2 * rankdata(np.abs(differences))).astype(int)
    observed = int(twice_ranks[differences > 0].sum())
    less, greater = tails(twice_ranks, observed)
    p = {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}[alternative]
    minimum_p = min(2.0 ** (int(alternative == "two-sided") - len(differences)), 1.0)
    return Test(observed / 2, min(max(p, minimum_p), 1.0), minimum_p, len(differences))


def holm(p_values: ArrayLike) -> np.ndarray:
    """Holm's step-down adjusted p-values, in the order given: reject those below alpha, and any
    false rejection has chance alpha at most.

    NaN says that there was no test: it stays NaN and does not enlarge the family. It is written
    here because scipy has none, and that of statsmodels knows no NaN.

    >>> holm([0.25, 0.125, np.nan]).tolist()
    [0.25, 0.25, nan]
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1:
        raise InputError(f"p_values has shape {p.shape}; a family must be one list of p-values.")
    outside = np.flatnonzero((p < 0) | (p > 1))
    if len(outside):
        raise InputError(
            f"p_values is outside 0 to 1 in {name_rows(outside)}; a p-value is a probability, or "
            "NaN where there was no test."
        )
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    adjusted = np.full_like(p, np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted


def direction_agreement(a: ArrayLike, b: ArrayLike, better: Better) -> tuple[int, int]:
    """In how many seeds a is better than b, out of all seeds.

    A tie is no win for a, nor for b when asked the other way round.

    >>> direction_agreement([1, 2, 3], [2, 2, 4], better="lower"), direction_agreement([2, 2, 4],
    ...     [1, 2, 3], better="lower")
    ((2, 3), (0, 3))
    """
    if better not in ("lower", "higher"):
        raise InputError(f"better is {better}; it must be lower or higher.")
    differences = _differences(a, b)
    return int(np.count_nonzero(differences < 0 if better == "lower" else differences > 0)), len(
        differences
    )


def bootstrap_interval(
    a: ArrayLike,
    b: ArrayLike | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> tuple[float, float]:
    """Bootstrap interval of the mean of a, or of the mean difference a - b: no normality needed,
    and skewed scores give skewed intervals.

    It is the bias-corrected and accelerated (BCa) interval of Efron (1987). Resamples whose mean is
    the sample's count half as below it, which matters for few seeds. Where all values are equal the
    interval is that one point. It is written here because scipy's `bootstrap` tells equal means
    apart by their rounding, and answers NaN where all values are equal.

    No bootstrap knows more than its sample: a nominal 95 % covers about 93 % of the time with 20
    normal values, but only about 85 % with 5.

    >>> low, high = bootstrap_interval([1.0, 2.0, 3.0, 4.0])
    >>> 1.0 <= low < 2.5 < high <= 4.0
    True
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; it must lie between 0 and 1.")
    if resamples < 100:
        raise InputError(f"resamples is {resamples}; it must be at least 100.")
    values = _values("a", a, least=2) if b is None else _differences(a, b)
    mean, sd, n = _summary(values)
    if sd == 0:
        return mean, mean
    centred = (values - mean) / sd
    rng, step = generator(seed, "bootstrap"), max(1, 2**17 // n)  # at once: what a cache holds
    shifts = np.concatenate(
        [
            centred[rng.integers(n, size=(min(step, resamples - start), n))].mean(1)
            for start in range(0, resamples, step)
        ]
    )
    shifts[np.abs(shifts) < 1e-12] = 0
    bias = ndtri((np.mean(shifts < 0) + np.mean(shifts <= 0)) / 2)
    acceleration = (centred**3).sum() / (6 * (centred**2).sum() ** 1.5)
    tail = (1 - confidence) / 2
    nominal = bias + ndtri([tail, 1 - tail])
    # |acceleration| is at most 1/6, so the limit on the denominator only acts on confidences that
    # are all but 1.
    corrected = bias + nominal / np.maximum(1 - acceleration * nominal, 1e-9)
    low, high = mean + sd * np.quantile(shifts, ndtr(corrected))
    return float(low), float(high)


def effect_size(a: ArrayLike, b: ArrayLike) -> float:
    """Cohen's d_z: the mean difference in units of the differences' SD, so that scores with other
    units can be compared.

    0 where all differences are 0, ±inf where they are another constant. No small-sample correction:
    it would scale all comparisons over equally many seeds by the same factor, and the t statistic
    would no longer be d_z times sqrt(n).

    >>> effect_size([1, 2, 3], [0, 0, 0]), effect_size([1, 2], [1, 2]), effect_size([1, 2], [2, 3])
    (2.0, 0.0, -inf)
    """
    mean, sd, _ = _summary(_differences(a, b))
    if sd == 0:
        return math.copysign(math.inf, mean) if mean else 0.0
    return mean / sd


def _values(name: str, values: ArrayLike, least: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name} has shape {array.shape}; it must be one value per seed.")
    if len(array) < least:
        raise InputError(
            f"{name} has {len(array)} value{'s' * (len(array) != 1)}; it must have at least "
            f"{least}."
        )
    broken = np.flatnonzero(~np.isfinite(array))
    if len(broken):
        raise InputError(
            f"{name} is NaN or infinite in {name_rows(broken)}; it must be finite for every seed."
        )
    return array


def _summary(values: np.ndarray) -> Summary:
    shifted = values - values[0]  # so that equal values have an SD of exactly 0
    sd = shifted.std(ddof=1) if len(values) > 1 else math.nan
    return Summary(float(values[0] + shifted.mean()), float(sd), len(values))


def _differences(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """a - b per seed, freed of rounding: 0.3 - 0.2 and 0.2 - 0.1 are equal, as are all sizes within
    1e-12 of their scores.
    """
    a, b = _values("a", a, least=2), _values("b", b, least=2)
    if len(a) != len(b):
        raise InputError(
            f"a has {len(a)} values and b has {len(b)}; pairs need one of each for every seed."
        )
    differences = a - b
    magnitudes = np.abs(differences)
    order = np.argsort(magnitudes)
    ascending = np.append(0.0, magnitudes[order])
    slack = 1e-12 * np.append(0.0, np.maximum(np.abs(a), np.abs(b))[order])
    starts = np.append(True, np.diff(ascending) > np.maximum(slack[1:], slack[:-1]))
    distinct = ascending[starts]
    return np.sign(differences) * distinct[np.searchsorted(distinct, magnitudes, side="right") - 1]
