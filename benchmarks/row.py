"""A comparison as benchmarks measure it, and the way in which a script gives its own."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """One comparison with one peer, both measured in the same run.

    `ours` and `theirs` are in `unit`, and less is better. The ratio says how many times less ours
    is; `limit` is the least ratio that is wanted, None where nothing was promised. A bound that is
    no ratio is a peer as well: `Row("report of 10,000 runs", "at most 30 s", 12.0, 30.0, 1.0)`.
    What could not be measured here is `math.nan`, and stays blank.

    >>> Row("an epoch of labels", "torch.multinomial", 0.0002, 0.003, limit=10).ratio
    15.0
    """

    what: str
    peer: str
    ours: float
    theirs: float
    limit: float | None
    note: str = ""
    unit: str = "s"

    @property
    def ratio(self) -> float:
        """How many times less ours is."""
        return self.theirs / self.ours

    @property
    def verdict(self) -> str:
        """The limit, and whether it is kept."""
        if self.limit is None:
            return ""
        if math.isnan(self.ratio):
            return times(self.limit)
        return f"{times(self.limit)} {'reached' if self.ratio >= self.limit else 'NOT reached'}"

    def __str__(self) -> str:
        sides = (amount(side, self.unit) for side in (self.ours, self.theirs))
        said = (times(self.ratio), self.verdict, self.note)
        return f"{self.what}: {next(sides)}; {self.peer}: {next(sides)}; " + "; ".join(
            filter(None, said)
        )


def amount(value: float, unit: str) -> str:
    """A measured value to read, in three figures.

    >>> amount(0.00123, "s"), amount(1234567, "items"), amount(math.nan, "MB")
    ('1.23 ms', '1,230,000 items', '')
    """
    if math.isnan(value):
        return ""
    if unit == "s" and value < 1:
        value, unit = (value * 1e3, "ms") if value >= 1e-3 else (value * 1e6, "µs")
    figures = float(f"{value:.3g}")
    return f"{figures:,.0f} {unit}" if figures >= 100 else f"{figures:g} {unit}"


def times(ratio: float) -> str:
    """A ratio to read.

    >>> times(1.183), times(17.2), times(253.4), times(math.nan)
    ('1.18x', '17x', '253x', '')
    """
    if math.isnan(ratio):
        return ""
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


def to_json(row: Row) -> dict[str, object]:
    """A row as JSON holds it: null where nothing was measured."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in asdict(row).items()
    }


def from_json(values: dict[str, Any]) -> Row:
    """The row of `to_json`."""
    blank = {side: math.nan for side in ("ours", "theirs") if values[side] is None}
    return Row(**{**values, **blank})


def main(rows: Callable[[], Iterable[Row]]) -> None:
    """Print a script's rows as they come, of one thread unless the script says otherwise; `--json
    FILE` writes them there as well.
    """
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, help="a file that the rows are written to")
    path = parser.parse_args().json
    measured = []
    for row in rows():
        print(row, flush=True)
        measured.append(row)
    if path:
        path.write_text(json.dumps([to_json(row) for row in measured]))
