"""Commands as a person types them, for what is printed and for a copy's README.md."""

import os
import shlex
from pathlib import Path

RUNS = Path("runs")  # where runs are kept unless --runs says otherwise


def typed_command(word: str, study: Path | str, runs: Path | str, *rest: str) -> str:
    """`cli.py study` with a folder of runs that is named where it has to be, and with paths that a
    shell takes for one word each.

    >>> typed_command("run", "my studies/a.yaml", "runs")
    "python cli.py study run 'my studies/a.yaml'"
    >>> typed_command("plan", "a.yaml", "../elsewhere")
    'python cli.py study plan a.yaml --runs ../elsewhere'
    """
    named = [] if is_default(runs) else ["--runs", str(runs)]
    return shlex.join(["python", "cli.py", "study", word, str(study), *named, *rest])


def is_default(runs: Path | str) -> bool:
    """Whether a folder of runs is the one that needs no naming."""
    return os.path.abspath(runs) == os.path.abspath(RUNS)
