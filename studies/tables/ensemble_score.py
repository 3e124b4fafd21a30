"""A score of a cell's seeds as one model, beside what they score one by one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from studies.analysis.ensemble import Ensemble
from studies.tables.cell_worth import CellWorth


@dataclass(frozen=True)
class EnsembleScore:
    """One score of one ensemble."""

    ensemble: Ensemble = field(repr=False)
    value: float
    alone: float  # of single seeds on the same items, as a mean
    skill: float

    @classmethod
    def of(
        cls, ensemble: Ensemble, metric: str, mean: float, worth: CellWorth | None
    ) -> "EnsembleScore":
        """What an ensemble scores; its seeds have this mean, and what that is worth.

        Where seeds tested different items, floor and ceiling are of all of them, and the ensemble
        is judged on some. Its skill is therefore that of its seeds, and what it gains over them on
        the same items.
        """
        value = ensemble.score(metric)
        alone = mean if ensemble.whole else ensemble.alone(metric)
        skill = worth.skill_with(alone - value) if worth else math.nan
        return cls(ensemble, value, alone, skill)


def members_in_words(ensembles: Sequence[Ensemble]) -> str:
    """How many members the means of items are over, as `10` or `2 to 5`."""
    least = min(int(ensemble.tested.min()) for ensemble in ensembles)
    most = max(int(ensemble.tested.max()) for ensemble in ensembles)
    return str(most) if least == most else f"{least} to {most}"
