"""The parser of a run's options: a mistake is one sentence, and a file must be plain YAML."""

import sys
from pathlib import Path

from lightning.pytorch.callbacks import Callback
from lightning.pytorch.cli import LightningArgumentParser
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from core.compat import known_options
from core.errors import OptionError, parse_error
from datamodules import Delivery, VoteDataModule
from datamodules.embedders import Embedder
from experiment.config_files import check_config, check_value
from lightning_modules.networks import Network

# Options whose value is the name of a class
CHOICES = {
    "data": VoteDataModule,
    "delivery": Delivery,
    "base": Delivery,
    "embedder": Embedder,
    "network": Network,
    "optimizer": Optimizer,
    "scheduler": LRScheduler,
    "callbacks": Callback,
}


def add_options_of_tests(parser: LightningArgumentParser) -> None:
    """What is looked at when a run is tested; no part of its config."""
    parser.add_argument(
        "--preview",
        type=bool,
        default=False,
        help="Look at a run whose training has not ended; what is found is no result.",
    )
    parser.add_argument(
        "--calibrate",
        type=str | list[str] | None,
        default=None,
        help="Also score what calibrators make of the model: temperature, vector or dirichlet, "
        "fitted on validation items to the votes' distributions, or with _votes or _majority at "
        "the end to those. Short for the callback Calibrators.",
    )


class Parser(LightningArgumentParser):
    """Reports a wrong option as one sentence instead of a page of usage.

    An option is what it says: a name that is cut short is none.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message, ex=None):
        """Raise the sentence, where argparse would print it and leave."""
        raise OptionError(
            parse_error(
                message, CHOICES, [option.removeprefix("--") for option in known_options(self)]
            )
        ) from ex

    def parse_args(self, args=None, *more, **kwargs):
        """Parse what was typed, once its values are known to be plain YAML."""
        for word in sys.argv[1:] if args is None else args:
            check_value(str(word).rpartition("=")[2])
        return super().parse_args(args, *more, **kwargs)

    def parse_path(self, path, *args, **kwargs):
        """Parse a file of --config, and name it in what is said of it."""
        check_config(Path(path))
        try:
            return super().parse_path(path, *args, **kwargs)
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from error
