"""One run: LightningCLI with data linked to model, and a directory, checkpoints and callbacks that follow from the config."""

from pathlib import Path
from typing import Any, Union

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
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import Network
from studies.runs import best_checkpoint, check_checkpoint, last_checkpoint, run_name

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
        if self.ckpt_path is None and self.subcommand == "fit":
            last = last_checkpoint(self.run_dir)
            self.ckpt_path = str(last) if last.exists() else None
        elif self.ckpt_path is None:
            self.ckpt_path = str(best_checkpoint(self.run_dir))
        if self.ckpt_path is not None:
            check_checkpoint(Path(self.ckpt_path))

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
            ModelCheckpoint(filename="last", **checkpoints),
            History(),
            UncertaintyFigures(),
            PredictionTable(),
            Results(),
        ]
        logger = TensorBoardLogger(self.run_dir, name="", version="")
        return super().instantiate_trainer(default_root_dir=self.run_dir, logger=logger, **kwargs)

    def fit(self, model: AnnotatorClassifier, **kwargs) -> None:
        """Train, unless this very run is already trained and tested: nothing is done twice."""
        if read_results(self.run_dir) is None:
            self.trainer.fit(model, **kwargs)
            print(f"best checkpoint: {best_checkpoint(self.run_dir)}")
        else:
            print(f"this run is done: {self.run_dir}; delete that folder to train it again")


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
