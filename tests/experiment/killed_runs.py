"""A process that starts runs, kills them and starts them again: `killed_runs.py PLAN.json`.

It imports everything once and forks, so that a run that is killed costs no new start of Python.
What the child does is what the command line (or `python -m studies.launch.job`) does. The plan is a
list of entries: commands, or the file of a job; the folder of its runs; a file for its output; and
the moments at which it is killed, each an event, how often it has to come in that process, and a
delay in seconds: without one the process kills itself there and then (in a write, with half of the
file written), with one it is killed from outside that much later. A file can be damaged after that.
After the last moment the run is started once more and has to end by itself, unless the entry has
`ends: false`.
"""

import hashlib
import json
import mmap
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import sklearn.datasets  # noqa: F401  # which is imported late, and so would be by every child
import torch
import torch.utils.tensorboard

import experiment.checkpoints
import studies.launch.pack_job
from cli import main
from core.atomic_io import SUFFIX
from lightning_modules import AnnotatorClassifier
from lightning_modules.packed.packed_classifier import PackedClassifier
from lightning_modules.packed.packed_network import PackedNetwork
from studies.launch.job import do_job
from tests.waiting import HANGS

FURTHER = 20  # events after which a run that is to be killed from outside waits for it
PHASES = ("start", "training", "validation", "checkpoint", "epoch end", "results")


class Moment(NamedTuple):
    # one of PHASES, or "fsync NAME", "replace NAME" (before it) and "replaced NAME" (after it) of a
    # file
    event: str
    count: int
    delay: float | None = None
    damage: tuple[str, str, float] | None = (
        # afterwards: a file's name, whether to "cut" it or to "flip" a bit, and at which share of
        # its length
        None
    )


def damage(folder: Path, name: str, how: str, share: float) -> None:
    """What a disk may do to a file, if it is there."""
    for path in folder.rglob(name):
        content = bytearray(path.read_bytes())
        at = int(share * len(content))
        if how == "flip":
            content[at] ^= 1
        path.write_bytes(content[:at] if how == "cut" else content)


class Watch:
    """In the child: notes what the run is at, where the parent can read it, and kills or asks to be
    killed at the moment that was chosen.
    """

    def __init__(self, moment: Moment | None):
        # whether to be killed, and the number of the phase
        self.moment, self.shared = (
            moment,
            mmap.mmap(-1, 2),
        )
        self.seen, self.left = 0, FURTHER

    @property
    def phase(self) -> str:
        return PHASES[self.shared[1]]

    def note(self, event: str) -> None:
        if event in PHASES:
            self.shared[1] = PHASES.index(event)
        if self.shared[0]:
            self.left -= 1
            while (
                self.left < 0
            ):  # a parent that has to wait for a core must not find a run that has ended
                signal.pause()
        if self.moment and event == self.moment.event:
            self.seen += 1
            if self.seen == self.moment.count:
                if self.moment.delay is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                self.shared[0] = 1

    def follow(self) -> None:
        """Wrap what a run does, in this process only."""
        for owner, name, phase in (
            (AnnotatorClassifier, "training_step", "training"),
            (PackedNetwork, "backward", "training"),
            (AnnotatorClassifier, "validation_step", "validation"),
            (PackedClassifier, "_evaluate", "validation"),
            (AnnotatorClassifier, "on_train_epoch_end", "epoch end"),
            (experiment.checkpoints, "write_checkpoint", "checkpoint"),
            (studies.launch.pack_job, "write_checkpoint", "checkpoint"),
            (studies.launch.pack_job, "write_member", "results"),
        ):
            setattr(owner, name, self._noted(getattr(owner, name), phase))
        fsync, replace = os.fsync, os.replace

        def noted_fsync(file: int) -> None:
            event = "fsync " + Path(os.readlink(f"/proc/self/fd/{file}")).name.removesuffix(
                SUFFIX
            ).rsplit(".", 1)[0].removeprefix(".")
            if self.moment and self.moment.event == event and self.seen + 1 == self.moment.count:
                os.ftruncate(file, os.fstat(file).st_size // 2)
            self.note(event)
            fsync(file)

        def noted_replace(source: Any, target: Any) -> None:
            self.note(f"replace {Path(target).name}")
            replace(source, target)
            self.note(f"replaced {Path(target).name}")

        os.fsync, os.replace = noted_fsync, noted_replace

    def _noted(self, function: Any, phase: str) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            self.note(phase)
            return function(*args, **kwargs)

        return noted


def digest(value: Any) -> bytes:
    """Of nested plain data with tensors, to the last bit."""
    if isinstance(value, torch.Tensor):
        return hashlib.sha256(
            str((value.dtype, tuple(value.shape))).encode() + value.contiguous().numpy().tobytes()
        ).digest()
    if isinstance(value, dict):
        value = [[key, part] for key, part in value.items()]
    if isinstance(value, list | tuple):
        return hashlib.sha256(b"".join(digest(part) for part in value)).digest()
    return hashlib.sha256(repr(value).encode()).digest()


def do_pack(job: Path) -> None:
    """A pack that saves its state after every epoch, and notes its digest in STATES beside it: a
    pack leaves no optimizer state behind.
    """
    studies.launch.pack_job.SAVE_EVERY = 0.0
    fit = PackedClassifier.fit

    def noting_fit(self: PackedClassifier, after_epoch: Any) -> None:
        def noted(pack: PackedClassifier) -> None:
            with open(job.with_suffix(".states"), "a") as states:
                states.write(f"{pack.epoch} {digest(pack.state_dict()).hex()}\n")
            after_epoch(pack)

        fit(self, noted)

    PackedClassifier.fit = noting_fit
    assert not do_job(job)


def start(entry: dict[str, Any], watch: Watch) -> int:
    """Fork a child that does what the entry says; returns its number."""
    child = os.fork()
    if child:
        return child
    try:
        with open(entry["log"], "ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        watch.follow()
        watch.note("start")
        do_pack(Path(entry["job"])) if "job" in entry else [
            main(command) for command in entry["commands"]
        ]
        sys.stdout.flush()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def run(entry: dict[str, Any]) -> list[str]:
    """Do an entry to its end; returns the phases in which it was killed.

    One that ended before its moment came is "ended".
    """
    phases = []
    for moment in [
        *(Moment(*moment) for moment in entry["moments"]),
        *([None] if entry.get("ends", True) else []),
    ]:
        watch = Watch(moment)
        child = start(entry, watch)
        began = time.monotonic()
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            if time.monotonic() - began > HANGS:
                os.kill(child, signal.SIGKILL)
                sys.exit(f"{entry['log']}: a run hangs:\n{Path(entry['log']).read_text()}")
            if watch.shared[0]:
                time.sleep(moment.delay or 0.0)
                os.kill(child, signal.SIGKILL)
                break
            time.sleep(0.0002 if moment else 0.01)
        _, status = os.waitpid(child, 0)
        if moment and moment.damage:
            damage(Path(entry["folder"]), *moment.damage)
        if os.WIFSIGNALED(status):
            phases.append(watch.phase)
        elif os.waitstatus_to_exitcode(status):
            sys.exit(f"{entry['log']}: a run failed:\n{Path(entry['log']).read_text()}")
        elif moment:
            phases.append("ended")
    return phases


if __name__ == "__main__":
    torch.set_num_threads(1)
    plan = json.loads(Path(sys.argv[1]).read_text())
    for entry in plan:
        began, spent = time.monotonic(), sum(os.times()[2:4])
        phases = run(entry)
        cost = {
            "seconds": round(time.monotonic() - began, 1),
            "of a core": round(sum(os.times()[2:4]) - spent, 1),
        }
        print(json.dumps({"folder": entry["folder"], "killed in": phases, **cost}), flush=True)
