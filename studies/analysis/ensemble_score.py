"""A score of a cell's seeds as one model, beside what they score one by one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from studies.analysis.ensemble import Ensemble


@dataclass(frozen=True)
class EnsembleScore:
    """One score of one ensemble."""

    ensemble: Ensemble = field(repr=False)
    value: float
    alone: float  # of single seeds on the same items, as a mean
    seeds: float  # the mean of the seeds, each on its own test items

    @classmethod
    def of(cls, ensemble: Ensemble, metric: str, seeds: float) -> "EnsembleScore":
        """What an ensemble scores whose seeds have this mean."""
        alone = seeds if ensemble.whole else ensemble.alone(metric)
        return cls(ensemble, ensemble.score(metric), alone, seeds)

    @property
    def on_all_items(self) -> float:
        """The seeds' mean and what their ensemble gains over them on the same items.

        Floor and ceiling are of all items that seeds tested, and an ensemble may be judged on some
        of them alone. So this, and not its own score, is what its skill is of.
        """
        return self.seeds + self.value - self.alone


def members_in_words(ensembles: Sequence[Ensemble]) -> str:
    """How many members the means of items are over, as `10` or `2 to 5`."""
    least = min(int(ensemble.tested.min()) for ensemble in ensembles)
    most = max(int(ensemble.tested.max()) for ensemble in ensembles)
    return str(most) if least == most else f"{least} to {most}"
