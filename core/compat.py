"""Every private name of another library that this project relies on, in one place.

A private name may change in any release of its library. Whoever raises an upper bound in
pyproject.toml reads this file and runs `tests/core/test_compat.py`, which says for each name what
would break. Nothing else in the packages may use such a name; a test finds it.

Libraries are imported when a name is first asked for, so importing this module costs nothing.

>>> from core.compat import SignalConnector
>>> SignalConnector.__name__
'_SignalConnector'
"""

import atexit
import os
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Union

if TYPE_CHECKING:
    from collections.abc import Callable

    from lightning import LightningModule, Trainer
    from lightning.fabric.utilities.distributed import _set_num_threads_if_needed
    from lightning.pytorch.loops.fit_loop import _FitLoop
    from lightning.pytorch.strategies.launchers import _SubprocessScriptLauncher
    from lightning.pytorch.strategies.launchers.launcher import _Launcher
    from lightning.pytorch.trainer.connectors.signal_connector import _SignalConnector
    from torch.nn.modules.batchnorm import _BatchNorm

    SubprocessScriptLauncher = _SubprocessScriptLauncher
    SignalConnector = _SignalConnector
    BatchNorm = _BatchNorm
    set_num_threads_if_needed = _set_num_threads_if_needed
    default_store: Callable[[], Any]
    fused_sgd: Callable[..., None]
    fused_adam: Callable[..., None]
    fused_adamw: Callable[..., None]
    reconstruct_array: Callable[..., Any]


class PrivateName(NamedTuple):
    """A class or function that is private where it is defined."""

    module: str
    name: str
    signature: str  # what we call it with; "" where the name alone matters
    breaks: str  # what would no longer work here without it


class OverriddenMethod(NamedTuple):
    """A private method that one of our classes overrides, because there is no public hook."""

    module: str
    owner: str  # the class that defines it
    name: str
    signature: str
    breaks: str  # what would silently no longer happen if the library stopped calling it


_OPTIMIZER_STEP = "packs would have no optimizer step (lightning_modules/packed)"
_FUSED_ADAM = (
    "(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
    "Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, "
    "float weight_decay, float eps, bool amsgrad, bool maximize"
)

NAMES = {
    "SubprocessScriptLauncher": PrivateName(
        "lightning.pytorch.strategies.launchers",
        "_SubprocessScriptLauncher",
        "(cluster_environment, num_processes, num_nodes)",
        "the processes of a run on several devices would not end together "
        "(experiment/processes/ddp_launcher.py)",
    ),
    "SignalConnector": PrivateName(
        "lightning.pytorch.trainer.connectors.signal_connector",
        "_SignalConnector",
        "(trainer)",
        "SIGTERM would end a training with exit code 0, as if it were complete "
        "(experiment/processes/own_signals.py)",
    ),
    "set_num_threads_if_needed": PrivateName(
        "lightning.fabric.utilities.distributed",
        "_set_num_threads_if_needed",
        "(num_processes)",
        "each process of a run would use all cores (experiment/processes/ddp_launcher.py)",
    ),
    "default_store": PrivateName(
        "torch.distributed.distributed_c10d",
        "_get_default_store",
        "()",
        "every process of a run would tell the same mistake (experiment/processes/end_together.py)",
    ),
    "BatchNorm": PrivateName(
        "torch.nn.modules.batchnorm",
        "_BatchNorm",
        "",
        "loss barriers could not tell which layers keep statistics "
        "(studies/analysis/comparison/loss_barrier.py)",
    ),
    "fused_sgd": PrivateName(
        "torch",
        "_fused_sgd_",
        "(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, "
        "float momentum, float lr, float dampening, bool nesterov, bool maximize, "
        "bool is_first_step",
        _OPTIMIZER_STEP,
    ),
    "fused_adam": PrivateName("torch", "_fused_adam_", _FUSED_ADAM, _OPTIMIZER_STEP),
    "fused_adamw": PrivateName("torch", "_fused_adamw_", _FUSED_ADAM, _OPTIMIZER_STEP),
    "reconstruct_array": PrivateName(
        "numpy._core.multiarray",
        "_reconstruct",
        "",
        "the arrays of CIFAR-10N's file could not be allowed (datamodules/datasets/cifar10n.py)",
    ),
}

_CLI = ("lightning.pytorch.cli", "LightningCLI")
OVERRIDDEN = (
    OverriddenMethod(
        *_CLI,
        "_set_seed",
        "(self)",
        "a seed out of range would be Lightning's error, and reading a config would reseed the "
        "process (experiment/plurality_cli.py, experiment/configuration.py)",
    ),
    OverriddenMethod(
        *_CLI,
        "_parse_ckpt_path",
        "(self)",
        "a checkpoint would silently replace the model that the config describes "
        "(experiment/plurality_cli.py)",
    ),
    OverriddenMethod(
        *_CLI,
        "_run_subcommand",
        "(self, subcommand)",
        "errors would not name the run's folder, and reading a config would train "
        "(experiment/plurality_cli.py, experiment/configuration.py)",
    ),
    OverriddenMethod(
        *_CLI,
        "_prepare_subcommand_kwargs",
        "(self, subcommand)",
        "a checkpoint could execute code, and none would be found to continue from "
        "(experiment/plurality_cli.py)",
    ),
)
# that Lightning sets to 1 when it is imported; torch reads it at each question
NVML_CHECK = "PYTORCH_NVML_BASED_CUDA_CHECK"


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(NAMES[name].module), NAMES[name].name)


def set_launcher(trainer: "Trainer", launcher: "_Launcher") -> None:
    """Have a trainer start its processes by this launcher: a strategy chooses its own, and takes
    no other.
    """
    trainer.strategy._launcher = launcher


def start_other_processes(launcher: "_SubprocessScriptLauncher") -> None:
    """Start all processes of a run but this one, as `launch` does, without Lightning's watch over
    them: it ends this process by SIGKILL and so without an exit code.
    """
    launcher._call_children_scripts()


def set_signal_connector(trainer: "Trainer", connector: "_SignalConnector") -> None:
    """Have a trainer set its signal handlers by this connector; it offers no other way."""
    trainer._signal_connector = connector


def attached_trainer(module: "LightningModule") -> "Trainer | None":
    """The trainer of a module, if it has one; `module.trainer` raises where it has none."""
    return module._trainer


def end_restart_at_epoch_end(loop: "_FitLoop") -> None:
    """Count an epoch at whose end a run is continued as complete.

    With `max_steps` Lightning would go through that end once more, and count the next epoch as the
    same; there its public `restarting` cannot be set to False.
    """
    if loop.restarted_on_epoch_end:
        loop.epoch_progress.increment_completed()
        loop._restarting = loop.epoch_loop.restarting = False
        loop.reset_restart_stage()
        loop.epoch_loop.reset_restart_stage()


def look_for_gpus_once() -> None:
    """Where there is no GPU, spare every optimizer step from looking for one again.

    Optimizers ask torch whether there is one. Lightning has set a variable by which torch opens
    NVML to answer, which takes as long as the step of a small network's optimizer; without it the
    answer is kept.
    """
    import torch

    if not torch.cuda.is_available():
        os.environ[NVML_CHECK] = "0"


def read_whole_numbers_first(parser: Any) -> None:
    """Have options of type int or float or None try int first, for good.

    typing takes `Optional[int | float]` for whichever order of the two was first seen in a process:
    1 batch would become 1.0, which means all. The type of an option that Lightning has added can
    only be changed at its action.
    """
    for action in parser._actions:
        if getattr(action, "_typehint", None) == Union[int, float, None]:  # noqa: UP007
            action._typehint = Union[int, float, None]  # noqa: UP007


def known_options(parser: Any) -> list[str]:
    """The options of a parser and of its commands, as they are typed; argparse lists them nowhere
    else.
    """
    names = list(parser._option_string_actions)
    for action in parser._actions:
        if isinstance(action.choices, dict):
            names += [
                name for command in action.choices.values() for name in known_options(command)
            ]
    return names


def run_exit_functions() -> None:
    """Wait for threads and call what was registered by `atexit`, as Python does at its end.

    There is no public way to do that and no more (see studies/launch/forked_process.py).
    """
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
