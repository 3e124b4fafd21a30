"""How correlations grow with the weight of a pair, against scipy's of the same pairs and one
more.
"""

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from metrics.worth.respects import pearson_slope, spearman_slope


@pytest.mark.parametrize("ties", [False, True], ids=["no ties", "half of y is 0"])
@pytest.mark.parametrize(
    ("slope", "correlation"), [(pearson_slope, pearsonr), (spearman_slope, spearmanr)]
)
def test_slopes_are_what_one_more_pair_would_change(slope, correlation, ties):
    rng = np.random.default_rng(0)
    x = rng.random(400)
    y = x + rng.normal(0, 0.3, 400)
    y = np.where(y < np.median(y), 0, y) if ties else y
    before = correlation(x, y).statistic
    change = [
        correlation(np.append(x, x[pair]), np.append(y, y[pair])).statistic - before
        for pair in range(400)
    ]
    found = slope(x, y, np.full(400, 1 / 400))
    assert np.corrcoef(found, change)[0, 1] > 0.999
