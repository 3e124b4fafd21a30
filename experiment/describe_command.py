"""`python cli.py describe --config …`: what was understood of a dataset's votes, before anything is
trained on them.
"""

from pathlib import Path

from core.atomic_io import open_atomically
from core.errors import InputError
from core.terminal import CommandParser
from datamodules import VoteDataModule, VoteTable
from datamodules.custom.describe import describe
from datamodules.votes.labels import escaped
from experiment.build import build
from experiment.configuration import resolve


def describe_command(options: list[str]) -> None:
    """Takes the options of `fit`, and `--figure FILE` for a picture of what scores can be; nothing
    is embedded, trained or otherwise written.
    """
    parser = CommandParser("cli.py describe")
    parser.add_argument("--figure", type=Path)
    figure, rest = parser.parse_known_args(options)
    data: VoteDataModule = build(resolve(rest)["data"])
    for line in describe(data):
        print(escaped(line))
    if figure.figure:
        crowd = " (simulated annotators)" if data.simulated else ""
        draw_figure(data.summarize().votes, f"{data.name}{crowd}", figure.figure)
        print(f"Floor, ceiling and budget are drawn in {figure.figure}")


def draw_figure(votes: VoteTable, name: str, path: Path) -> None:
    """Floor and ceiling by votes per item, and what a budget of votes buys, as a picture."""
    from callbacks.figures.worth_figure import SHOWN, draw_worth
    from metrics import registered
    from metrics.worth import spendings

    if votes.counts is None:
        raise InputError(
            f"--figure needs counts of votes, and {votes.source} has only probabilities; leave it "
            "out."
        )
    each = float(votes.counts.sum(1).mean())
    title = f"{name}: {len(votes):,} items, {each:.1f} votes each (dotted)"
    with open_atomically(path) as stream:
        ways = spendings(votes.counts, scores=[registered()[name] for name in SHOWN])
        draw_worth(ways, each, title).savefig(stream, format="png")
