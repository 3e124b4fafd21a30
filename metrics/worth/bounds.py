"""The floor and the ceiling of one score, and where between the two a model stands."""

import math
from dataclasses import dataclass

WIDE = 0.05  # of floor - ceiling: a wider interval is one that votes are too few to narrow


@dataclass(frozen=True)
class Bounds:
    """What one score of some items can be.

    The floor is None where a constant is no measure of it, as of calibration. The ceiling is None
    where it is not known, or where the score is not defined on these items.
    """

    floor: float | None
    ceiling: float | None = None
    low: float | None = None  # the least and the largest ceiling that the votes allow
    high: float | None = None

    @property
    def uncertain(self) -> bool:
        """Whether votes are too few for the ceiling to be a number: it is then an interval."""
        if self.ceiling is None or self.low is None or self.high is None:
            return False
        room = abs((self.floor or 0.0) - self.ceiling)
        return self.high - self.low > WIDE * room

    def skill(self, score: float) -> float | None:
        """Where a score stands: 0 at the floor, 1 at the ceiling.

        None where there is no floor, where the ceiling is not known, or where it may be as low as
        the floor for all that the votes say.

        >>> Bounds(floor=4.0, ceiling=0.0, low=0.0, high=0.0).skill(3.0)
        0.25
        """
        ends = self._ends()
        if ends is None or not math.isfinite(score):
            return None
        floor, ceiling, *_ = ends
        return (floor - score) / (floor - ceiling)

    def skill_range(self, score: float) -> tuple[float, float] | None:
        """The least and the largest skill, over all ceilings that the votes allow.

        >>> Bounds(floor=4.0, ceiling=1.0, low=0.0, high=2.0).skill_range(3.0)
        (0.25, 0.5)
        """
        ends = self._ends()
        if ends is None or not math.isfinite(score):
            return None
        floor, _, low, high = ends
        least, most = sorted((floor - score) / (floor - end) for end in (low, high))
        return least, most

    def record(self, score: float) -> dict[str, float | None]:
        """All of it as `results.json` says it, beside the score."""
        return {
            "floor": self.floor,
            "ceiling": self.ceiling,
            "low": self.low,
            "high": self.high,
            "skill": self.skill(score),
        }

    def _ends(self) -> tuple[float, float, float, float] | None:
        """Floor, ceiling and its interval, where there is room between floor and ceiling."""
        if self.floor is None or self.ceiling is None or self.low is None or self.high is None:
            return None
        if self.low <= self.floor <= self.high:
            return None
        return self.floor, self.ceiling, self.low, self.high


def ceiling_in_words(bounds: Bounds, digits: int = 4) -> str:
    """A number, an interval where votes are too few for one, or a dash.

    >>> ceiling_in_words(Bounds(4.0, 1.0, 0.5, 2.0), digits=1), ceiling_in_words(Bounds(4.0))
    ('0.5 to 2.0', '-')
    """
    if bounds.ceiling is None:
        return "-"
    if bounds.uncertain:
        return f"{bounds.low:.{digits}f} to {bounds.high:.{digits}f}"
    return f"{bounds.ceiling:.{digits}f}"


def skill_in_words(bounds: Bounds, score: float) -> str:
    """In per cent: a number, an interval where the ceiling is one, or a dash.

    >>> skill_in_words(Bounds(4.0, 1.0, 0.0, 2.0), 3.0), skill_in_words(Bounds(None, 0.1), 0.2)
    ('25 to 50 %', '-')
    """
    skill, ends = bounds.skill(score), bounds.skill_range(score)
    if skill is None or ends is None:
        return "-"
    if bounds.uncertain:
        least, most = (f"{100 * end:.0f}" for end in ends)
        return f"{least} %" if least == most else f"{least} to {most} %"
    return f"{round(100 * skill, 1) + 0.0:.1f} %"  # no -0.0
