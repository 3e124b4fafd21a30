"""The one door, which only wires: `cli.py --help` lists its commands."""

import atexit
import logging
import sys
import threading
import warnings
from typing import TYPE_CHECKING

from core.interruption import DIVERGED, Interrupted, interrupt_on_signals
from core.parent_process import die_with_first_process
from core.platforms import let_waiting_threads_sleep, refuse_other_systems
from core.terminal import check_command, wants_help
from experiment import command_help
from experiment.processes.end_together import end_interrupted, leave_group, tell_and_end

if TYPE_CHECKING:
    from experiment.plurality_cli import PluralityCLI

COMMANDS = {
    **{command: what for command, (what, _) in command_help.COMMANDS.items()},
    "study": "many runs as one thing: plan, run, report, evaluate",
    "corpus": "which images to ask people about, and what they said: build, annotate",
}


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
    """Imports are part of the work: they take seconds, in which somebody may press Ctrl-C.

    Help, and a word that is no command, wait for none of them.
    """
    command, rest = (words[0], words[1:]) if words else ("", [])
    if command in ("", "-h", "--help"):
        print(help_text())
        return None if command else sys.exit(2)
    if not command.startswith("-"):
        check_command(command, list(COMMANDS), "cli.py")
    _quiet()
    if command == "corpus":
        from corpora.command import corpus_command

        return corpus_command(rest)
    if command == "study":
        from studies.study_command import study_command

        return study_command(rest)
    if not command.startswith("-") and wants_help(rest):
        if rest[-1:] != ["all"]:
            print(command_help.help_text(command))
            return None if rest else sys.exit(2)
        words = ["fit" if command in ("describe", "score") else command, "--help"]
    elif command == "describe":
        from experiment.describe_command import describe_command

        return describe_command(rest)
    elif command == "score":
        from studies.scoring.command import score_command

        return score_command(rest)
    from experiment.plurality_cli import run_command

    return run_command(words)


def help_text() -> str:
    """Every command in a line."""
    return "\n".join(
        [
            "usage: cli.py COMMAND [options]",
            "",
            "Train and judge classifiers on what annotators actually said.",
            "",
            *(f"  {command:10}{what}" for command, what in COMMANDS.items()),
            "",
            "  python cli.py fit --config configs/digits.yaml",
            "  python cli.py test --config configs/digits.yaml",
            "  python cli.py study plan configs/studies/digits.yaml",
            "",
            "cli.py COMMAND --help explains one of them.",
        ]
    )


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
    let_waiting_threads_sleep()
    die_with_first_process()
    interrupt_on_signals()
    threading.excepthook = _tell_of_thread
    atexit.register(leave_group)
    main()
