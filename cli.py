"""The one door: `cli.py fit|validate|test|predict --config configs/….yaml`, `describe`, `study
plan|run|report|evaluate`, `corpus build|annotate`. It only wires.
"""

import logging
import sys
import threading
import warnings
from typing import TYPE_CHECKING

from core.interruption import DIVERGED, Interrupted, interrupt_on_signals
from core.parent_process import die_with_first_process
from core.platforms import refuse_other_systems
from experiment.processes.end_together import end_interrupted, tell_and_end

if TYPE_CHECKING:
    from experiment.plurality_cli import PluralityCLI


def main(args: list[str] | None = None) -> "PluralityCLI | None":
    """Run one command.

    A user's mistake ends as one sentence and exit code 2, an interruption as one line and the code
    of what interrupted it.
    """
    try:
        done = _run(sys.argv[1:] if args is None else args)
    except Interrupted as stop:
        end_interrupted(stop)
    except Exception as error:
        tell_and_end(error)
        raise
    if done and done.subcommand == "fit" and done.training and done.training.diverged:
        sys.exit(DIVERGED)
    return done


def _run(words: list[str]) -> "PluralityCLI | None":
    """Imports are part of the work: they take seconds, in which somebody may press Ctrl-C."""
    if words[:1] == ["corpus"]:
        from corpora.command import corpus_command

        return corpus_command(words[1:])
    if words[:1] == ["study"]:
        from studies.commands import study_command

        _quiet()
        return study_command(words[1:])
    if words[:1] == ["describe"]:
        from experiment.describe_command import describe_command

        _quiet()
        return describe_command(words[1:])
    from experiment.plurality_cli import run_command

    _quiet()
    return run_command(words)


def _quiet() -> None:
    """Without what libraries say of themselves."""
    for chatter in (
        "pytorch.utilities.rank_zero",
        "pytorch.trainer.connectors.signal_connector",
        "fabric.utilities.seed",
    ):
        logging.getLogger(f"lightning.{chatter}").setLevel(logging.WARNING)
    warnings.filterwarnings(
        "ignore", "The `srun` command is available on your system but is not used"
    )
    # Lightning 2.6 with torch 2.14
    warnings.filterwarnings("ignore", "`isinstance\\(treespec, LeafSpec\\)` is deprecated")
    warnings.filterwarnings("ignore", "LightningCLI.s args parameter is intended to run")


def _tell_of_thread(failed: threading.ExceptHookArgs) -> None:
    """TensorBoard writes in a thread.

    If that fails because of the disk, the same is raised again in the thread that gave it something
    to write.
    """
    from core.errors import closed_disk, full_disk

    if failed.exc_value is None or not (
        full_disk(failed.exc_value) or closed_disk(failed.exc_value)
    ):
        threading.__excepthook__(failed)


if __name__ == "__main__":
    refuse_other_systems()
    die_with_first_process()
    interrupt_on_signals()
    threading.excepthook = _tell_of_thread
    main()
