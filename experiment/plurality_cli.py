"""The command line of one run: LightningCLI, with a folder, checkpoints and callbacks that follow
from the config.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lightning import Trainer
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities.exceptions import SIGTERMException

from callbacks.records.known_data import know_data
from callbacks.records.training_record import TrainingRecord, write_training
from callbacks.results import read_results
from core.atomic_io import naming
from core.compat import read_whole_numbers_first
from core.errors import InputError
from core.file_names import check_folder, check_run_name
from core.folder_lock import folder_lock, is_writable, remove_if_empty
from core.interruption import Interrupted, is_first_process
from datamodules import VoteDataModule
from datamodules.vote_datamodule import check_name
from experiment.checkpoints import CheckpointFiles
from experiment.identity import all_options, run_folder, run_name
from experiment.option_parser import Parser, add_options_of_tests
from experiment.processes.ddp_launcher import wait_for_processes, watch_processes
from experiment.processes.own_signals import keep_own_signals
from experiment.run_callbacks import add_calibrators, run_callbacks
from experiment.run_checkpoints import best_checkpoint, check_checkpoint
from experiment.run_state import finished_training, where_to_continue, why_unfinished
from experiment.training_end import (
    how_it_ended,
    interrupted,
    is_best,
    preview_folder,
    refuse_clocks,
    several_processes,
    why_preview,
)
from lightning_modules import AnnotatorClassifier
from lightning_modules.threads import use_threads_for

# What a command does with a run, for whoever has to wait for it
DOING = {"fit": "trains this run", "test": "tests this run", "predict": "predicts with this run"}


class PluralityCLI(LightningCLI):
    """LightningCLI with data linked to model, and a run directory that follows from the config."""

    run_dir: Path
    training: TrainingRecord | None = None  # how the run's training ended, where it has

    def __init__(self, *args: Any, **kwargs: Any):
        typed = kwargs.get("args")
        words, every = sys.argv[1:] if typed is None else typed, super().subcommands()
        self._subcommands = {word: every[word] for word in words[:1] if word in every} or every
        with ExitStack() as self._held:  # what this command holds against others, until it ends
            super().__init__(*args, **kwargs)

    def subcommands(self) -> dict[str, set[str]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The one that was typed: a parser for each takes a while to make."""
        return self._subcommands

    def _run_subcommand(self, subcommand: str) -> None:
        with naming(self.run_dir):
            super()._run_subcommand(subcommand)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Link what the data and the model share, and add options of our own."""
        for shared in ("num_classes", "input_shape", "ordinal"):
            parser.link_arguments(f"data.{shared}", f"model.{shared}", apply_on="instantiate")
        parser.link_arguments("seed_everything", "data.init_args.seed")
        parser.link_arguments("seed_everything", "model.seed")
        add_options_of_tests(parser)
        read_whole_numbers_first(parser)

    def _set_seed(self) -> None:
        seed = self.config[str(self.subcommand)].seed_everything
        if isinstance(seed, bool) or not 0 <= seed < 2**32:
            raise InputError(
                f"seed_everything is {seed}; it must be a whole number from 0 to {2**32 - 1}, so "
                "that a run can be repeated."
            )
        super()._set_seed()

    def _parse_ckpt_path(self) -> None:
        """Leave the model to the config; LightningCLI would silently take a checkpoint's."""

    def before_instantiate_classes(self) -> None:
        """Find the run's folder, how far it came, and the checkpoint that this command takes."""
        config = self.config[str(self.subcommand)]
        runs, name = Path(config.trainer.default_root_dir or "runs"), run_name(config.as_dict())
        check_name((config.data.get("init_args") or {}).get("name"))
        check_run_name(name)
        check_folder(runs, "trainer.default_root_dir")
        self.run_dir = run_folder(runs, config.as_dict(), name)
        # The checkpoint is no part of the run's config: what is kept beside the results must not
        # tie a later test to it.
        self.ckpt_path, config.ckpt_path = config.ckpt_path, None
        wanted, config.preview = config.preview, False
        config.trainer.callbacks = add_calibrators(config.trainer.callbacks, config.calibrate)
        config.calibrate = None  # it is among the callbacks now, also in what is kept of the config
        refuse_clocks(config.trainer.callbacks)
        self._hold()
        self.training = finished_training(self.run_dir)
        self.preview = why_preview(config, self.ckpt_path, self.run_dir, str(self.subcommand))
        if self.subcommand == "fit":
            named, self.ckpt_path = self.ckpt_path, None
            if not self.preview and not self.training:
                max_steps = config.trainer.max_steps
                self.ckpt_path = where_to_continue(self.run_dir, named, max_steps)
            return
        if self.ckpt_path is None or is_best(self.ckpt_path, self.run_dir):
            self._refuse_unfinished(wanted)
        if not is_writable(self.run_dir):
            self.preview = self.preview or f"{self.run_dir} cannot be written"
        self.ckpt_path = self.ckpt_path or str(best_checkpoint(self.run_dir))
        check_checkpoint(Path(self.ckpt_path))

    def _hold(self) -> None:
        """One command at a time works on a run.

        The first process holds it for all that train it together; a run that cannot be written
        needs no holding.
        """
        if not is_first_process() or self.subcommand not in DOING:
            return
        if self.subcommand == "fit" or is_writable(self.run_dir):
            doing, wait = DOING[str(self.subcommand)], not several_processes()
            self._held.enter_context(folder_lock(self.run_dir, doing, wait=wait))
            # a command that was refused leaves nothing behind
            self._held.callback(remove_if_empty, self.run_dir)

    def _refuse_unfinished(self, wanted: bool) -> None:
        """Only a finished training has a result; --preview looks at another all the same."""
        planned = self.config[str(self.subcommand)].trainer.max_epochs
        how = why_unfinished(self.run_dir, self.training, planned)
        if not how:
            return
        if not wanted:
            raise InputError(
                f"{self.run_dir} {how}; to look at it all the same, add --preview true."
            )
        self.preview = self.preview or f"this run {how}"

    def _prepare_subcommand_kwargs(self, subcommand: str) -> dict[str, Any]:
        kwargs = super()._prepare_subcommand_kwargs(subcommand)
        # a checkpoint is data: nothing in it is ever executed
        kwargs |= {"ckpt_path": self.ckpt_path, "weights_only": True}
        # `Results` prints the table, and `PredictionTable` keeps what was predicted
        spared = {"test": {"verbose": False}, "predict": {"return_predictions": False}}
        return {**kwargs, **spared.get(subcommand, {})}

    def instantiate_trainer(self, **kwargs) -> Trainer:
        """A Trainer with the run's own folder, logger, callbacks and way to write checkpoints."""
        if self.subcommand != "fit" or self.preview:
            self.save_config_callback = None
        out = preview_folder(self.run_dir) if self.preview else None
        tries_fit = bool(self.preview) and self.subcommand == "fit"
        config = self.config[str(self.subcommand)]
        self.trainer_defaults["callbacks"] = run_callbacks(
            config, self.run_dir, self.preview, out, keeps_data=not tries_fit
        )
        root = out if out and tries_fit else self.run_dir
        logger = TensorBoardLogger(out or self.run_dir, name="", version="")
        trainer = super().instantiate_trainer(
            default_root_dir=root, logger=logger, max_time=None, **kwargs
        )
        trainer.strategy.checkpoint_io = CheckpointFiles()
        watch_processes(trainer)
        keep_own_signals(trainer)
        return trainer

    def fit(self, model: AnnotatorClassifier, **kwargs) -> None:
        """Train, unless this very run is already trained: nothing is done twice.

        How it ended is recorded last of all.
        """
        options = all_options(self.config[str(self.subcommand)].as_dict())
        if self.preview:
            self.trainer.fit(model, **kwargs)
            self._print(f"this was no training: {self.preview}")
            return
        if self.training is not None:
            self.datamodule.prepare_data()
            self.datamodule.setup()
            know_data(self.run_dir, self.datamodule, options, write=False)
            done = "done" if read_results(self.run_dir) else self.training.in_words()
            self._print(f"this run is {done}: {self.run_dir}; delete that folder to train it again")
            return
        if self.trainer.strategy.root_device.type == "cpu":
            use_threads_for(model.network, self.datamodule.input_shape, self.datamodule.batch_size)
        try:
            self.trainer.fit(model, **kwargs)
        except (Interrupted, SIGTERMException) as stop:
            raise interrupted(stop, self.trainer) from stop
        self.training = how_it_ended(self.trainer)
        if self.training is None:
            raise InputError(
                f"{self.run_dir} was stopped before its end by a callback that is not "
                "EarlyStopping, so it is not finished; derive that callback from "
                "EarlyStopping, or leave it out."
            )
        if self.trainer.is_global_zero:
            write_training(self.run_dir, self.training)
        # the other processes may be about to test what is finished only now
        self.trainer.strategy.barrier()
        ended = (
            f"diverged: {self.training.reason}"
            if self.training.diverged
            else f"best checkpoint: {best_checkpoint(self.run_dir)}"
        )
        self._print(f"{self.training.in_words()}; {ended}")

    def _print(self, sentence: str) -> None:
        if self.trainer.is_global_zero:
            print(sentence)


def run_command(args: list[str] | None = None) -> PluralityCLI:
    """Do fit, validate, test or predict; `args` defaults to what the user typed."""
    cli = make_cli(PluralityCLI, args)
    wait_for_processes(cli.trainer)
    return cli


def make_cli(cli: type[PluralityCLI], args: list[str] | None) -> PluralityCLI:
    """The command line with this project's classes and defaults; it runs the command at once."""
    return cli(
        AnnotatorClassifier,
        VoteDataModule,
        subclass_mode_data=True,
        auto_configure_optimizers=False,
        seed_everything_default=0,
        save_config_kwargs={"overwrite": True},
        parser_class=Parser,
        # probes differentiate in a test, which inference mode would forbid
        trainer_defaults={
            "use_distributed_sampler": False,
            "log_every_n_steps": 1,
            "inference_mode": False,
        },
        args=args,
    )
