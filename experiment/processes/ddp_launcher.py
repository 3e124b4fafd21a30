"""Starts the processes of a run on several devices of one machine, as Lightning does, and has them
end together.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from lightning import Trainer

from core.compat import (
    SubprocessScriptLauncher,
    set_launcher,
    set_num_threads_if_needed,
    start_other_processes,
)
from core.parent_process import FIRST
from experiment.processes.end_together import PATIENCE, check_port, end


class Launcher(SubprocessScriptLauncher):
    """The other processes of a run end with the one that the user started, and it ends with the
    exit code of one that fails.
    """

    def launch(
        self, function: Callable, *args: Any, trainer: Trainer | None = None, **kwargs: Any
    ) -> Any:
        """Start the other processes, watch them, and do this one's part."""
        self.cluster_environment.validate_settings(
            num_devices=self.num_processes, num_nodes=self.num_nodes
        )
        if not self.cluster_environment.creates_processes_externally:
            os.environ[FIRST] = str(os.getpid())
            start_other_processes(self)
            del os.environ[FIRST]
            # Lightning's own watch ends this process with SIGKILL, and so without a code
            threading.Thread(target=self._watch, daemon=True).start()
        set_num_threads_if_needed(num_processes=self.num_processes)
        return function(*args, **kwargs)

    def _watch(self) -> None:
        while not all(process.poll() == 0 for process in self.procs):
            self.end_if_one_failed(PATIENCE)
            time.sleep(0.2)

    def end_if_one_failed(self, patience: float) -> None:
        """After a mistake at once: it has been told.

        What else ended one process, a signal for instance, may be about to end this one too.
        """
        for code in (process.returncode for process in self.procs if process.returncode):
            time.sleep(0 if code == 2 else patience)
            end(code if code > 0 else 128 - code)


def watch_processes(trainer: Trainer) -> None:
    """Have the trainer start the run's processes by `Launcher`, where it starts any."""
    launcher = trainer.strategy.launcher
    if trainer.world_size > 1:
        check_port()
    if type(launcher) is SubprocessScriptLauncher:
        own = Launcher(launcher.cluster_environment, launcher.num_processes, launcher.num_nodes)
        set_launcher(trainer, own)


def wait_for_processes(trainer: Trainer) -> None:
    """To be called when a command has done its work: the other processes of the run would be ended
    with this one.
    """
    launcher = trainer.strategy.launcher
    if isinstance(launcher, Launcher):
        for process in launcher.procs:
            process.wait()
        launcher.end_if_one_failed(0)
