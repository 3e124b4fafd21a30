"""What commands cost before they do anything: CPU seconds (user and system, one thread) of whole
processes, against those of `import torch` and `import lightning` in the same rounds.

    python -m benchmarks.startup        about two minutes
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lightning import Callback

from benchmarks.row import Row, main

ROOT, ROUNDS = Path(__file__).parents[1], 3
DIGITS = ["fit", "--config", "configs/digits.yaml"]
AT_ONCE = {
    "cli.py --help": ["--help"],
    "cli.py fit --help": ["fit", "--help"],
    "cli.py study plan --help": ["study", "plan", "--help"],
    "cli.py corpus annotate --help": ["corpus", "annotate", "--help"],
    "a mistyped command": ["fot"],
    "a mistyped study key": ["study", "plan", "{typo}"],
}
AFTER_LIGHTNING = {  # and how many seconds more than `import lightning` each may take
    "a mistyped option": ([*DIGITS, "--trainer.max_epoch", "3"], 2.0),
    "study plan of 100 runs": (["study", "plan", "{study}", "--runs", "{runs}"], 2.0),
    "fit to its first step": (
        [*DIGITS, "--trainer.default_root_dir", "{runs}", "--trainer.callbacks+", "{callback}"],
        1.5,
    ),
}
STUDY = """\
name: hundred
configs: [configs/digits.yaml]
grids:
  main:
    data.delivery: [SoftLabels, MajorityVote, Multipass, StochasticLabelSampling, Mixup]
    seed_everything: [{seeds}]
"""


class EndAfterFirstStep(Callback):
    """Ends the process as soon as it has trained on one batch."""

    changes_training = False

    def on_train_batch_end(self, *args: object, **kwargs: object) -> None:
        os._exit(0)


def cpu_seconds(words: list[str], code: int = 0) -> float:
    """User and system time of a Python process with these arguments, which must end like this."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rows() -> Iterator[Row]:
    """Each command against its bound; the cheapest of alternating rounds counts."""
    commands = AT_ONCE | {name: words for name, (words, _) in AFTER_LIGHTNING.items()}
    spent: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        study, typo = Path(folder, "study.yaml"), Path(folder, "typo.yaml")
        study.write_text(STUDY.format(seeds=", ".join(map(str, range(20)))))
        typo.write_text(study.read_text() + "reprt: {}\n")
        for number in range(ROUNDS):
            places = {"study": study, "typo": typo, "runs": Path(folder, str(number))}
            filled = {name: str(path) for name, path in places.items()}
            filled["callback"] = "benchmarks.startup.EndAfterFirstStep"
            for package in ("torch", "lightning"):
                spent.setdefault(package, []).append(cpu_seconds(["-c", f"import {package}"]))
            for name, words in commands.items():
                typed = ["cli.py", *(word.format(**filled) for word in words)]
                spent.setdefault(name, []).append(cpu_seconds(typed, 2 * ("mistyped" in name)))
    least = {name: min(seconds) for name, seconds in spent.items()}
    note = f"CPU seconds, least of {ROUNDS}"
    for name in AT_ONCE:
        yield Row(name, "at most 1.5 s", least[name], 1.5, 1.0, note)
        yield Row(name, "import torch", least[name], least["torch"], 1.0, note)
    for name, (_, more) in AFTER_LIGHTNING.items():
        bound = least["lightning"] + more
        yield Row(name, f"import lightning and {more} s", least[name], bound, 1.0, note)


if __name__ == "__main__":
    main(rows)
