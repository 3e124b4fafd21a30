"""The one door: `cli.py fit|validate|test|predict --config configs/….yaml`, `describe`, `study plan|run|report`, `corpus build|annotate`. It only wires."""

import logging
import sys
import warnings

from datamodules.corpora.command import corpus_command
from errors import mistake_behind
from studies.commands import study_command
from studies.describe import describe_command
from studies.single_run import PluralityCLI, run_command


def main(args: list[str] | None = None) -> PluralityCLI | None:
    """Run one command; a user's mistake ends as one sentence and exit code 2."""
    for chatter in ("lightning.pytorch.utilities.rank_zero", "lightning.fabric.utilities.seed"):
        logging.getLogger(chatter).setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", "The `srun` command is available on your system but is not used")
    warnings.filterwarnings("ignore", "`isinstance\\(treespec, LeafSpec\\)` is deprecated")  # Lightning 2.6 with torch 2.14
    warnings.filterwarnings("ignore", "LightningCLI.s args parameter is intended to run")
    words = sys.argv[1:] if args is None else args
    try:
        if words[:1] == ["study"]:
            return study_command(words[1:])
        if words[:1] == ["corpus"]:
            return corpus_command(words[1:])
        if words[:1] == ["describe"]:
            return describe_command(words[1:])
        return run_command(args)
    except Exception as error:
        mistake = mistake_behind(error)
        if mistake is None:
            raise
        print(f"error: {mistake}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
