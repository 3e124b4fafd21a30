"""The table of all comparisons, as it is printed and as docs/benchmarks.md shows it."""

from benchmarks.record import Record, Run, ratios
from benchmarks.row import Row, amount, times

HEAD = """# Benchmarks

`{command}` wrote this page. Above 1x we are faster, or need less. Both sides of a row were
measured in one run, with the same cores and threads: one thread unless the row says otherwise, idle
threads asleep, the fastest of alternating rounds. The ratio is that of the last run; the range is
over all runs on record, those of the last two days on which a script ran. The limit is the least
ratio that is wanted. Load is the number of cores that other programs kept busy meanwhile.
[Speed](speed.md) says what the rows mean.

"""
COLUMNS = ("what", "ours", "peer", "peer's", "ratio", "range (days)", "limit", "load", "note")
SCRIPTS = ("script", "run at", "took", "load average before", "others meanwhile", "machine", "with")


def page(record: Record, command: str) -> str:
    """docs/benchmarks.md: all comparisons, then how each script ran."""
    return HEAD.format(command=command) + "\n".join(
        [comparisons(record), "## Runs", "", scripts(record)]
    )


def comparisons(record: Record) -> str:
    """A line for each comparison of the last run of every script."""
    lines = []
    for runs in record.values():
        last = runs[-1]
        for row in last.rows:
            sides = [amount(side, row.unit) for side in (row.ours, row.theirs)]
            lines.append(
                [
                    *(row.what, sides[0], row.peer, sides[1], times(row.ratio)),
                    *(spread(runs, row), row.verdict, f"{last.others:.1f}", row.note),
                ]
            )
    return markdown(COLUMNS, lines)


def spread(runs: list[Run], row: Row) -> str:
    """The least and the largest ratio on record, and on how many days they were measured."""
    measured = sorted(ratio for ratio in ratios(runs, row) if ratio == ratio)
    if not measured:
        return ""
    days = len({run.date.split()[0] for run in runs if ratios([run], row)})
    return f"{times(measured[0])} to {times(measured[-1])} ({days})"


def scripts(record: Record) -> str:
    """A line for each run of each script."""
    lines = [
        [
            *(script, run.date, f"{run.seconds:.0f} s", f"{run.load:.1f}", f"{run.others:.1f}"),
            *(run.machine, run.versions),
        ]
        for script, runs in record.items()
        for run in runs
    ]
    return markdown(SCRIPTS, lines)


def markdown(columns: tuple[str, ...], lines: list[list[str]]) -> str:
    """A table in markdown, its columns of one width each.

    >>> print(markdown(("what", "ratio"), [["labels", "13x"]]), end="")
    | what   | ratio |
    |--------|-------|
    | labels | 13x   |
    """
    widths = [max(map(len, column)) for column in zip(columns, *lines, strict=True)]
    padded = (
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in (columns, *lines)
    )
    head, *body = padded
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join((head, rule, *body)) + "\n"
