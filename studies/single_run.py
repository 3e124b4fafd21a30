"""One run: LightningCLI with data linked to model, and a directory, checkpoints and callbacks that follow from the config."""

from pathlib import Path
from typing import Any, Union

import yaml
from lightning import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import TensorBoardLogger
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from callbacks import History, PredictionTable, Results, UncertaintyFigures
from callbacks.results import read_results
from datamodules import Delivery, VoteDataModule
from datamodules.embedders import Embedder
from errors import InputError, OptionError, parse_error
from kept_files import remove_rests
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import Network
from plain_yaml import NotPlain, load_plain
from studies.checkpoints import CheckpointFiles
from studies.runs import best_checkpoint, check_checkpoint, checkpoint_to_continue, run_name

# Options whose value is the name of a class
CHOICES = {
    "data": VoteDataModule,
    "delivery": Delivery,
    "base": Delivery,
    "embedder": Embedder,
    "network": Network,
    "optimizer": Optimizer,
    "scheduler": LRScheduler,
}


class Parser(LightningArgumentParser):
    """Reports a wrong option as one sentence instead of a page of usage."""

    def error(self, message, ex=None):
        raise OptionError(parse_error(message, CHOICES)) from ex

    def parse_path(self, path, *args, **kwargs):
        """A file of --config, which must be plain YAML before anything else looks at it."""
        try:
            content = load_plain(Path(path).read_text())
        except (OSError, ValueError, yaml.YAMLError) as error:
            why = error if isinstance(error, NotPlain) else type(error).__name__
            raise OptionError(f"{path} cannot be read as a config ({why}); it must be a YAML file of options.") from error
        if not isinstance(content, dict):
            raise OptionError(f"{path} holds no options; a config has entries such as data, model and trainer.")
        try:
            return super().parse_path(path, *args, **kwargs)
        except OptionError as error:
            raise OptionError(f"{path}: {error}") from error


class PluralityCLI(LightningCLI):
    """LightningCLI with data linked to model, and a run directory that follows from the config."""

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        parser.link_arguments("data.num_classes", "model.num_classes", apply_on="instantiate")
        parser.link_arguments("data.input_shape", "model.input_shape", apply_on="instantiate")
        parser.link_arguments("seed_everything", "data.init_args.seed")
        parser.link_arguments("seed_everything", "model.seed")
        # typing takes Optional[int | float] for whichever order of the two was first seen in a process: 1 batch would become 1.0, which means all.
        for action in parser._actions:
            if getattr(action, "_typehint", None) == Union[int, float, None]:  # noqa: UP007
                action._typehint = Union[int, float, None]  # noqa: UP007  # pyright: ignore[reportAttributeAccessIssue]

    def _set_seed(self) -> None:
        seed = self.config[str(self.subcommand)].seed_everything
        if isinstance(seed, bool) or not 0 <= seed < 2**32:
            raise InputError(f"seed_everything is {seed}; it must be a whole number from 0 to {2**32 - 1}, so that a run can be repeated.")
        super()._set_seed()

    def _parse_ckpt_path(self) -> None:
        """Leave the model to the config: LightningCLI would silently replace it by what a checkpoint says."""

    def before_instantiate_classes(self) -> None:
        config = self.config[str(self.subcommand)]
        self.run_dir = Path(config.trainer.default_root_dir or "runs") / run_name(config.as_dict())
        # The checkpoint is no part of the run's config: what is kept beside the results must not tie a later test to it.
        self.ckpt_path, config.ckpt_path = config.ckpt_path, None
        if self.ckpt_path is not None or self.subcommand != "fit":
            self.ckpt_path = self.ckpt_path or str(best_checkpoint(self.run_dir))
            check_checkpoint(Path(self.ckpt_path), to_continue=self.subcommand == "fit")
        elif not self.is_done():
            remove_rests(self.run_dir)
            for signalled in self.run_dir.glob("hpc_ckpt_*.ckpt"):  # Lightning's, of mid-epoch, from which a run would not continue exactly
                signalled.unlink(missing_ok=True)
            self.ckpt_path = checkpoint_to_continue(self.run_dir)

    def _prepare_subcommand_kwargs(self, subcommand: str) -> dict[str, Any]:
        kwargs = super()._prepare_subcommand_kwargs(subcommand)
        kwargs |= {"ckpt_path": self.ckpt_path, "weights_only": True}  # a checkpoint is data: nothing in it is ever executed
        return {**kwargs, "verbose": False} if subcommand == "test" else kwargs  # `Results` prints the table

    def instantiate_trainer(self, **kwargs) -> Trainer:
        if self.subcommand != "fit":
            self.save_config_callback = None
        folder = best_checkpoint(self.run_dir).parent
        checkpoints = {"dirpath": folder, "auto_insert_metric_name": False, "enable_version_counter": False}
        self.trainer_defaults["callbacks"] = [
            ModelCheckpoint(filename="best", monitor="val/loss", **checkpoints),
            # whatever the rhythm of validation: only at an epoch's end is there nothing of it that a checkpoint does not hold
            ModelCheckpoint(filename="last", save_on_train_epoch_end=True, **checkpoints),
            History(),
            UncertaintyFigures(),
            PredictionTable(),
            Results(),
        ]
        logger = TensorBoardLogger(self.run_dir, name="", version="")
        trainer = super().instantiate_trainer(default_root_dir=self.run_dir, logger=logger, **kwargs)
        trainer.strategy.checkpoint_io = CheckpointFiles()
        return trainer

    def fit(self, model: AnnotatorClassifier, **kwargs) -> None:
        """Train, unless this very run is already trained and tested: nothing is done twice."""
        done = self.is_done()
        if not done:
            self.trainer.fit(model, **kwargs)
        if self.trainer.is_global_zero:
            told = (
                f"this run is done: {self.run_dir}; delete that folder to train it again"
                if done
                else f"best checkpoint: {best_checkpoint(self.run_dir)}"
            )
            print(told)

    def is_done(self) -> bool:
        return read_results(self.run_dir) is not None


def run_command(args: list[str] | None = None) -> PluralityCLI:
    """fit, validate, test or predict, as on the command line; `args` defaults to what the user typed."""
    return make_cli(PluralityCLI, args)


def make_cli(cli: type[PluralityCLI], args: list[str] | None) -> PluralityCLI:
    return cli(
        AnnotatorClassifier,
        VoteDataModule,
        subclass_mode_data=True,
        auto_configure_optimizers=False,
        seed_everything_default=0,
        save_config_kwargs={"overwrite": True},
        parser_class=Parser,
        # probes differentiate in a test, which inference mode would forbid
        trainer_defaults={"use_distributed_sampler": False, "log_every_n_steps": 1, "inference_mode": False},
        args=args,
    )
