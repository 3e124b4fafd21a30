"""Which score of test items a metric of results.json is."""

from metrics.registry import STRATA, Score, registered


def score_of(metric: str) -> tuple[Score | None, str]:
    """The registered score that a metric is, and the stratum of items that it is of.

    >>> score, stratum = score_of("kl_hlv")
    >>> score.name, stratum, score_of("hessian_max")[0]
    ('kl', 'hlv', None)
    """
    scores = registered()
    if metric in scores:
        return scores[metric], ""
    for stratum in STRATA:
        name = metric.removesuffix(f"_{stratum}")
        if name != metric and name in scores:
            return scores[name], stratum
    return None, ""
