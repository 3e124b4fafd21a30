"""`python cli.py describe --config …`: what was understood of a dataset's votes, before anything is
trained on them.
"""

from pathlib import Path

from core.atomic_io import open_atomically
from core.errors import InputError
from core.terminal import CommandParser
from datamodules import VoteDataModule
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
        _draw(data, figure.figure)
        print(f"Floor, ceiling and budget are drawn in {figure.figure}")


def _draw(data: VoteDataModule, path: Path) -> None:
    from callbacks.figures.worth_figure import draw_worth
    from metrics.worth import spendings

    votes = data.summarize().votes
    if votes.counts is None:
        raise InputError(
            f"--figure needs counts of votes, and {votes.source} has only probabilities; leave it "
            "out."
        )
    crowd = " (simulated annotators)" if data.simulated else ""
    each = float(votes.counts.sum(1).mean())
    title = f"{data.name}{crowd}: {len(votes):,} items, {each:.1f} votes each (dotted)"
    with open_atomically(path) as stream:
        draw_worth(spendings(votes.counts), each, title).savefig(stream, format="png")
