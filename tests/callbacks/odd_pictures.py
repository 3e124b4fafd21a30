"""A probe with a number of its own and two pictures, one of which cannot be drawn."""

from functools import partial
from pathlib import Path

from matplotlib.figure import Figure

from callbacks.probe import Probe, ProbeResult


def draw_nothing(folder: Path) -> Figure:
    """Says what was on disk when it was called."""
    raise ZeroDivisionError(
        f"after {sorted(path.name for path in folder.glob('*.json'))}\nnothing was left"
    )


def draw_formula() -> Figure:
    figure = Figure()
    figure.suptitle(r"$\frac{$")
    return figure


class OddPictures(Probe):
    def measure(self, classifier, data) -> ProbeResult:
        assert self.folder is not None
        pictures = {
            "nothing": partial(draw_nothing, self.folder),
            "formula": draw_formula,
            "empty": Figure,
        }
        return ProbeResult(
            {"odd": 42.0},
            pictures,
            tables={"odd_table": [1, 2]},
            notes=["OddPictures: it was here."],
        )
