"""The one door: `python cli.py fit|validate|test|predict --config configs/….yaml`. Everything it does is done elsewhere."""

import logging
import sys
import warnings
from pathlib import Path

from lightning import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import TensorBoardLogger
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from callbacks import PredictionTable, Results, UncertaintyFigures
from datamodules import Delivery, VoteDataModule
from errors import InputError, OptionError, mistake_behind, parse_error
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import Network
from studies.runs import best_checkpoint, last_checkpoint, run_name

# Options whose value is the name of a class
CHOICES = {
    "data": VoteDataModule,
    "delivery": Delivery,
    "base": Delivery,
    "network": Network,
    "optimizer": Optimizer,
    "scheduler": LRScheduler,
}


class Parser(LightningArgumentParser):
    """Reports a wrong option as one sentence instead of a page of usage."""

    def error(self, message, ex=None):
        raise OptionError(parse_error(message, CHOICES)) from ex


class PluralityCLI(LightningCLI):
    """LightningCLI with data linked to model, and a run directory that follows from the config."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.link_arguments("data.num_classes", "model.num_classes", apply_on="instantiate")
        parser.link_arguments("data.input_shape", "model.input_shape", apply_on="instantiate")
        parser.link_arguments("seed_everything", "data.init_args.seed")
        parser.link_arguments("seed_everything", "model.seed")

    def before_instantiate_classes(self) -> None:
        config = self.config[str(self.subcommand)]
        self.run_dir = Path(config.trainer.default_root_dir or "runs") / run_name(config.as_dict())
        config.weights_only = True  # a checkpoint is data: nothing in it is ever executed
        if self.subcommand in ("validate", "test"):
            config.verbose = False  # `Results` prints the table
        if config.ckpt_path is None and self.subcommand == "fit":
            last = last_checkpoint(self.run_dir)
            config.ckpt_path = str(last) if last.exists() else None
        elif config.ckpt_path is None:
            config.ckpt_path = str(best_checkpoint(self.run_dir))
        if config.ckpt_path is not None and not Path(config.ckpt_path).is_file():
            raise InputError(
                f"there is no checkpoint {config.ckpt_path}; run fit with the same options first, or name one with --ckpt_path."
            )

    def instantiate_trainer(self, **kwargs) -> Trainer:
        if self.subcommand != "fit":
            self.save_config_callback = None
        folder = best_checkpoint(self.run_dir).parent
        checkpoints = {"dirpath": folder, "auto_insert_metric_name": False, "enable_version_counter": False}
        self.trainer_defaults["callbacks"] = [
            ModelCheckpoint(filename="best", monitor="val/soft_nll", **checkpoints),
            ModelCheckpoint(filename="last", **checkpoints),
            UncertaintyFigures(),
            PredictionTable(),
            Results(),
        ]
        logger = TensorBoardLogger(self.run_dir, name="", version="")
        return super().instantiate_trainer(default_root_dir=self.run_dir, logger=logger, **kwargs)

    def after_fit(self) -> None:
        print(f"best checkpoint: {best_checkpoint(self.run_dir)}")


def main(args: list[str] | None = None) -> PluralityCLI:
    """Run one command; a user's mistake ends as one sentence and exit code 2."""
    for chatter in ("lightning.pytorch.utilities.rank_zero", "lightning.fabric.utilities.seed"):
        logging.getLogger(chatter).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", "`isinstance\\(treespec, LeafSpec\\)` is deprecated")  # Lightning 2.6 with torch 2.14
    try:
        return PluralityCLI(
            AnnotatorClassifier,
            VoteDataModule,
            subclass_mode_data=True,
            auto_configure_optimizers=False,
            seed_everything_default=0,
            save_config_kwargs={"overwrite": True},
            parser_class=Parser,
            trainer_defaults={"use_distributed_sampler": False, "log_every_n_steps": 1},
            args=args,
        )
    except Exception as error:
        mistake = mistake_behind(error)
        if mistake is None:
            raise
        print(f"error: {mistake}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
