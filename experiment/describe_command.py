"""`python cli.py describe --config …`: what was understood of a dataset's votes, before anything is
trained on them.
"""

from datamodules.custom.describe import describe
from datamodules.votes.labels import escaped
from experiment.build import build
from experiment.configuration import resolve


def describe_command(options: list[str]) -> None:
    """Takes the options of `fit`; nothing is embedded, trained or written."""
    for line in describe(build(resolve(options)["data"])):
        print(escaped(line))
