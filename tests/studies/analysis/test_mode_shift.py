"""The mode-shift control: the two parts against plain loops, exact sums, and the table as people
read it.
"""

from fractions import Fraction

import numpy as np
import pytest

from core.errors import InputError
from core.randomness import generator
from studies.analysis.mode_shift import mode_shift


@pytest.mark.parametrize("seeds", [1, 6])
def test_the_parts_are_those_of_a_loop_and_sum_to_the_gain_exactly(seeds: int):
    rng = generator(seeds, "test-mode-shift")
    before, after = rng.integers(4, size=(2, seeds, 97))
    old, annotator_probs = rng.dirichlet(np.ones(4), (2, 97))
    shift = mode_shift(before, after, old, annotator_probs, annotator_probs)
    gains = {True: Fraction(0), False: Fraction(0)}
    for run in range(seeds):
        for item in range(97):
            truth = annotator_probs[item].argmax()
            gain = int(after[run, item] == truth) - int(before[run, item] == truth)
            gains[bool(old[item].argmax() != truth)] += Fraction(gain, seeds * 97)
    assert Fraction(shift.changed.net, seeds * 97) == gains[True]
    assert Fraction(shift.kept.net, seeds * 97) == gains[False]
    assert shift.all.net == shift.changed.net + shift.kept.net
    truth = annotator_probs.argmax(1)
    assert shift.gain(shift.all) == pytest.approx(
        (after == truth).mean() - (before == truth).mean(), abs=1e-15
    )
    assert (shift.changed.items, shift.kept.items) == (
        (old.argmax(1) != truth).sum(),
        (old.argmax(1) == truth).sum(),
    )


def test_labels_that_only_became_softer_explain_nothing_by_their_mode():
    hard, soft = (
        np.eye(3)[[0, 1, 2, 0]],
        [[0.6, 0.4, 0], [0.1, 0.9, 0], [0, 0.2, 0.8], [0.5, 0.5, 0]],
    )
    shift = mode_shift([0, 0, 2, 1], [0, 1, 2, 0], hard, soft, truth=[0, 1, 2, 0])
    assert (shift.changed.items, shift.gain(shift.changed), shift.gain(shift.kept)) == (0, 0.0, 0.5)


def test_items_that_do_not_match_are_refused():
    with pytest.raises(
        InputError, match=r"predictions \[1, 2\] and \[1, 2\], labels of 3 and 2 items"
    ):
        mode_shift([0, 1], [0, 1], [0, 1, 1], [0, 1], [0, 1])
    with pytest.raises(InputError, match="as many seeds"):
        mode_shift([[0, 1], [0, 1]], [0, 1], [0, 1], [0, 1], [0, 1])
