"""The figures of a comparison show every pair, the means and the items behind them."""

import math

import numpy as np

from studies.analysis.comparison.comparison import Comparison, PairLine, PairValue
from studies.analysis.comparison.loss_barrier import LossLine
from studies.figures.representation_figures import draw_barriers, draw_similarities


def drawn(values: list[PairValue], lines: list[PairLine]) -> Comparison:
    return Comparison(
        "Digits", True, "LeNet", None, "data.delivery", ["a", "b"], 100, 0.9, values, lines, []
    )


def test_the_barrier_figure_shows_every_seed_and_the_mean_barriers():
    lines = [
        PairLine(("a", "b"), 0, 50, LossLine([0, 0.5, 1], [1.0, 4.0, 1.0], [1.0, 2.0, 1.0])),
        PairLine(("a", "b"), 1, 60, LossLine([0, 0.5, 1], [1.0, 2.0, 1.0], [1.0, 1.5, 1.0])),
    ]
    figure = draw_barriers(drawn([], lines), {"a": "soft", "b": "SLS"}.__getitem__)
    (axes,) = figure.axes
    assert axes.get_legend_handles_labels()[1] == [
        "plain: mean barrier 2.000 over 2 seeds",
        "BatchNorm re-estimated: mean barrier 0.750 over 2 seeds",
    ]
    assert [list(line.get_ydata()) for line in axes.lines][:3] == [[1, 4, 1], [1, 2, 1], [1, 3, 1]]
    assert "50 to 60 items that neither run trained on\nSIMULATED" in figure.get_suptitle()
    assert (axes.get_title(), axes.get_xlabel()) == ("soft (0) to SLS (1)", "share of the way")
    assert draw_barriers(drawn([], [])) is None


def test_the_similarity_figure_shows_every_pair_and_the_means():
    values = [
        PairValue("cka", ("a", "a"), (0, seed), 0.5 + seed / 10, 40 + seed) for seed in (1, 2, 3)
    ]
    values += [
        PairValue("cka", ("a", "b"), (0, 0), 0.9, 90),
        PairValue("cka", ("b", "b"), (0, 1), math.nan, 40),
    ]
    figure = draw_similarities(drawn(values, []), "cka")
    (axes,) = figure.axes
    names = [text.get_text() for text in axes.get_yticklabels()]
    assert names == ["within a\n3 pairs, 41 to 43 items", "a and b, one seed\n1 pair, 90 items"], (
        "what is undefined is not drawn"
    )
    np.testing.assert_allclose(axes.collections[0].get_offsets()[:, 0], [0.6, 0.7, 0.8])
    assert [text.get_text() for text in axes.texts] == ["0.700", "0.900"]
    assert draw_similarities(drawn(values, []), "grad_cam") is None
