"""What was measured, by script: its runs on the last two days on which it ran."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.row import Row, from_json, to_json

DAYS = 2


@dataclass(frozen=True)
class Run:
    """One run of one script."""

    date: str  # 2026-11-18 10:02
    machine: str
    versions: str
    load: float  # the load average before it
    others: float  # cores that others kept busy while it ran
    seconds: float
    rows: tuple[Row, ...]


Record = dict[str, list[Run]]


def read(path: Path) -> Record:
    """The runs of every script, oldest first; none where nothing was measured yet."""
    if not path.exists():
        return {}
    content: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return {
        script: [Run(**{**run, "rows": tuple(map(from_json, run["rows"]))}) for run in runs]
        for script, runs in content.items()
    }


def write(path: Path, record: Record) -> None:
    """Write the record, a line for each row."""
    content = {
        script: [asdict(run) | {"rows": [to_json(row) for row in run.rows]} for run in runs]
        for script, runs in sorted(record.items())
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def add(record: Record, script: str, run: Run) -> Record:
    """The record with one run more; of this script, runs of earlier days than the last two go."""
    runs = [*record.get(script, []), run]
    kept = sorted({each.date.split()[0] for each in runs})[-DAYS:]
    return record | {script: [each for each in runs if each.date.split()[0] in kept]}


def ratios(runs: list[Run], row: Row) -> list[float]:
    """The ratios of one comparison in every run on record that measured it."""
    same = (
        each for run in runs for each in run.rows if (each.what, each.peer) == (row.what, row.peer)
    )
    return [each.ratio for each in same]
