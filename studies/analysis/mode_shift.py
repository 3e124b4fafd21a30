"""The mode-shift control: how much of an accuracy gain is due to labels whose most probable class
changed, and how much to their softness.

Where items are labelled anew, a model trained on the new labels can gain accuracy for two reasons:
on some items the most probable class is another one (a mode shift, which new hard labels would have
given as well), and on the others the label only became softer. Every item is of one of the two
kinds, so the net number of items that the second model gets right and the first does not splits
exactly.
"""

from dataclasses import dataclass

import numpy as np

from core.errors import InputError


@dataclass(frozen=True)
class Share:
    """One kind of items: how many there are, and right predictions of them over all runs."""

    items: int
    right_before: int
    right_after: int

    @property
    def net(self) -> int:
        """Right predictions gained, less those lost."""
        return self.right_after - self.right_before


@dataclass(frozen=True)
class ModeShift:
    """The items of both kinds, and how many runs they were counted over."""

    changed: Share  # items whose most probable class differs between the two label sets
    kept: Share
    runs: int

    @property
    def all(self) -> Share:
        """Both kinds together."""
        one, other = self.changed, self.kept
        return Share(
            one.items + other.items,
            one.right_before + other.right_before,
            one.right_after + other.right_after,
        )

    def gain(self, part: Share) -> float:
        """What a part of the items adds to the accuracy over all of them; those of `changed` and
        `kept` are that of `all`.
        """
        return part.net / (self.runs * self.all.items)


def mode_shift(predicted_before, predicted_after, labels_before, labels_after, truth) -> ModeShift:
    """Split the gain in accuracy of one model over another, on the same items.

    Predictions are class numbers, [N] or, of several paired seeds, [seeds, N]. The two label sets
    that the models were trained with, as they label these items, and what is called right (`truth`)
    are class numbers [N] or distributions [N, K], whose most probable class counts (ties: the
    lowest number).

    Of the two items won here, one has another label:

    >>> before, after = [0, 1, 1, 1], [0, 0, 1, 1]
    >>> shift = mode_shift([0, 1, 1, 0], [0, 0, 1, 1], before, after, truth=[0, 0, 1, 1])
    >>> shift.gain(shift.all), shift.gain(shift.changed), shift.gain(shift.kept)
    (0.5, 0.25, 0.25)
    """
    before, after = (np.atleast_2d(values) for values in (predicted_before, predicted_after))
    one, other, right = (_classes(values) for values in (labels_before, labels_after, truth))
    shapes = {before.shape[1], after.shape[1], len(one), len(other), len(right)}
    if len(shapes) > 1 or len(before) != len(after) or not len(right):
        raise InputError(
            f"mode_shift: there are predictions {list(before.shape)} and {list(after.shape)}, "
            f"labels of {len(one)} and {len(other)} items and the truth of {len(right)}; all must "
            "be of the same items, and both predictions of as many seeds."
        )
    changed = one != other
    hits = before == right, after == right
    parts = [
        Share(int(mask.sum()), *(int(hit[:, mask].sum()) for hit in hits))
        for mask in (changed, ~changed)
    ]
    return ModeShift(*parts, runs=len(before))


def _classes(labels) -> np.ndarray:
    values = np.asarray(labels)
    return values.argmax(1) if values.ndim == 2 else values
