"""What all parts of a report have in common: a name, and the runs that they show."""

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from studies.schema.calibrate_factor import CALIBRATE, RAW
from studies.schema.grid_options import Factor, Grid, Where
from studies.schema.levels import nothing_left_over
from studies.schema.options import FileName, Title, option

if TYPE_CHECKING:
    from studies.analysis.collect import Record


@dataclass(frozen=True)
class Part:
    """A table, a figure or a comparison, of some runs of a grid."""

    example: ClassVar[str] = ""  # an entry of the YAML, for the reference
    # what its runs must have written besides results.json, so that it can be refused before they
    # train
    needs_predictions: ClassVar[bool] = False
    needs_callback: ClassVar[str] = ""
    # whether it is made of runs' own predictions, weights or epochs, not of results.json alone
    of_model: ClassVar[bool] = False

    name: str = option(FileName(), "names its files")
    title: str = option(Title(), "what stands above it; its name by default", default="")
    grid: str = option(Grid(), "whose runs; the study's first grid by default", default="")
    where: dict[str, list] = option(
        Where(), "only these runs; what is not said is not restricted", default={}
    )
    # of every factor, after `where`
    levels: dict[str, list] = field(default_factory=dict, repr=False)
    planned_units: int = 1  # how many seeds a mean has when all runs are finished

    def select(self, records: "list[Record]") -> "list[Record]":
        """The runs that it shows, of those of its grid."""
        return [
            r
            for r in records
            if all(r.factors[factor] in levels for factor, levels in self.where.items())
        ]

    @property
    def factors(self) -> list[str]:
        """The factors that it shows, in the order of its options."""
        chosen = [f.name for f in fields(self) if isinstance(f.metadata.get("kind"), Factor)]
        return [factor for name in chosen if (factor := getattr(self, name))]

    def check(self, key: str, reading: Any) -> None:
        """Refuse what its options say together, after each was checked by itself."""
        nothing_left_over(reading.checks, self.levels, set(self.factors), reading.paired, key)
        own = self.of_model or self.needs_predictions or self.needs_callback
        if own and self.levels.get(CALIBRATE, [RAW]) != [RAW]:
            reading.checks.wrong(
                key,
                "is made of what models predict themselves, before any calibrator; say where: "
                f"{{{CALIBRATE}: {RAW}}}",
            )
