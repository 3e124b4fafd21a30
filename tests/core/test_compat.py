"""Private names of other libraries are still there and still mean what we take them for.

Each failure says what would break in Plurality.
"""

import argparse
import inspect
import os
import re
import subprocess
import sys
from importlib import import_module
from types import SimpleNamespace
from typing import Optional, Union

import pytest
import torch
from jsonargparse import ArgumentParser
from lightning import LightningModule, Trainer
from torch import nn

from core import compat
from core.compat import NAMES, OVERRIDDEN, OverriddenMethod, PrivateName
from experiment.processes.own_signals import OwnSignals


def test_importing_it_imports_no_library():
    probe = "import sys; import core.compat; print(*{'torch', 'lightning'} & set(sys.modules))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run([sys.executable, "-c", probe], env=environment, capture_output=True)
    assert (process.stdout.decode().strip(), process.returncode) == ("", 0)


def arguments(callable_: object) -> str:
    """The names of a callable's arguments, as `PrivateName.signature` has them."""
    return f"({', '.join(inspect.signature(callable_).parameters)})"  # pyright: ignore[reportArgumentType]


def operator_schema(name: str) -> str:
    """How torch's operator is called, without what it says about memory."""
    schema = str(getattr(torch.ops.aten, name).default._schema)
    return re.sub(r"\(\w!\)", "", schema.removeprefix(f"aten::{name}"))


@pytest.mark.parametrize("public", NAMES)
def test_a_private_name_is_there_and_is_called_as_we_call_it(public: str):
    entry: PrivateName = NAMES[public]
    message = f"{entry.module}.{entry.name} has changed: {entry.breaks}"
    assert hasattr(import_module(entry.module), entry.name), message
    value = getattr(compat, public)
    if entry.module == "torch":
        assert operator_schema(entry.name).startswith(entry.signature), message
    elif entry.signature:
        assert arguments(value) == entry.signature, message


@pytest.mark.parametrize("entry", OVERRIDDEN, ids=lambda entry: entry.name)
def test_a_private_method_that_we_override_is_there_and_is_still_called(entry: OverriddenMethod):
    message = f"{entry.module}.{entry.owner}.{entry.name} has changed: {entry.breaks}"
    owner = getattr(import_module(entry.module), entry.owner)
    assert entry.name in vars(owner), message
    assert arguments(vars(owner)[entry.name]) == entry.signature, message
    assert f"self.{entry.name}(" in inspect.getsource(owner), message


def test_another_name_is_refused():
    with pytest.raises(AttributeError, match=r"core\.compat has no attribute nothing"):
        compat.nothing  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]


def a_trainer(**options) -> Trainer:
    return Trainer(accelerator="cpu", logger=False, enable_checkpointing=False, **options)


def test_a_trainer_takes_another_launcher():
    trainer, launcher = a_trainer(), SimpleNamespace()
    compat.set_launcher(trainer, launcher)  # pyright: ignore[reportArgumentType]
    assert trainer.strategy.launcher is launcher, (
        "a strategy no longer keeps its launcher in `_launcher`: the processes of a run would not "
        "end together"
    )


def test_a_launcher_starts_the_other_processes():
    called = compat.SubprocessScriptLauncher.launch
    assert "self._call_children_scripts()" in inspect.getsource(called), (
        "Lightning's launcher starts processes by another method than `_call_children_scripts`: "
        "runs on several devices would wait for processes that were never started"
    )
    assert arguments(compat.SubprocessScriptLauncher._call_children_scripts) == "(self)"


def test_a_trainer_sets_its_signal_handlers_by_another_connector():
    trainer = a_trainer()
    connector = OwnSignals(trainer)
    compat.set_signal_connector(trainer, connector)
    connector.received_sigterm = True
    assert trainer.received_sigterm, (
        "a trainer no longer asks `_signal_connector`: SIGTERM would end a training with code 0"
    )
    assert "self._signal_connector.register_signal_handlers()" in inspect.getsource(Trainer), (
        "a trainer no longer registers handlers by `_signal_connector`: SIGTERM would end a "
        "training with code 0"
    )


def test_a_module_tells_whether_it_has_a_trainer():
    module, trainer = LightningModule(), a_trainer()
    message = "`LightningModule._trainer` has changed: checkpoints of double precision would be "
    message += "rounded, or could not be loaded without a trainer"
    assert compat.attached_trainer(module) is None, message
    module.trainer = trainer
    assert compat.attached_trainer(module) is trainer, message


def test_a_run_that_is_continued_from_the_end_of_an_epoch_begins_the_next():
    loop = a_trainer(max_steps=5).fit_loop
    message = "Lightning's loops restart in another way: a run with max_steps that is continued "
    message += "from the end of an epoch would count the next epoch as the same"
    loop.epoch_progress.increment_ready()
    loop.epoch_progress.increment_started()
    loop.epoch_progress.increment_processed()
    loop.restarting = True
    loop.update_restart_stage()
    assert loop.restarted_on_epoch_end, message
    loop.restarting = False
    assert loop.restarting, "with max_steps `restarting` can be set now: compat need not do it"
    compat.end_restart_at_epoch_end(loop)
    assert not loop.restarting, message
    assert not loop.epoch_loop.restarting, message
    assert not loop.restarted_on_epoch_end, message
    assert loop.epoch_progress.current.completed == 1, message


def test_a_loop_that_was_not_restarted_is_left_alone():
    loop = a_trainer(max_steps=5).fit_loop
    compat.end_restart_at_epoch_end(loop)
    assert loop.epoch_progress.current.completed == 0


def test_a_whole_number_stays_one_whatever_order_typing_has_seen_first():
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--batches", type=Optional[Union[float, int]])  # noqa: UP007, UP045
    assert any(hasattr(action, "_typehint") for action in parser._actions), (
        "jsonargparse keeps an option's type elsewhere than in `_typehint`: limit_train_batches=1 "
        "could mean all batches"
    )
    compat.read_whole_numbers_first(parser)
    assert type(parser.parse_args(["--batches", "1"]).batches) is int
    assert parser.parse_args(["--batches", "0.5"]).batches == 0.5


def test_options_of_a_parser_and_of_its_commands_are_known():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--runs")
    parser.add_subparsers().add_parser("fit", add_help=False).add_argument("--config")
    assert compat.known_options(parser) == ["--runs", "--config"], (
        "argparse keeps its options elsewhere: a mistyped one would be told without the nearest"
    )


def test_layers_with_statistics_are_batch_norms():
    layers = (nn.BatchNorm1d(2), nn.BatchNorm2d(2), nn.BatchNorm3d(2), nn.SyncBatchNorm(2))
    assert all(isinstance(layer, compat.BatchNorm) for layer in layers), NAMES["BatchNorm"].breaks
    assert not isinstance(nn.LayerNorm(2), compat.BatchNorm), NAMES["BatchNorm"].breaks


def test_threads_and_exit_functions_come_to_their_end():
    script = (
        "import atexit, os, threading, time\n"
        "from core.compat import run_exit_functions\n"
        "atexit.register(print, 'registered', flush=True)\n"
        "def work():\n    time.sleep(0.2)\n    print('thread', flush=True)\n"
        "threading.Thread(target=work).start()\n"
        "run_exit_functions()\n"
        "os._exit(7)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True)
    assert (process.stdout.decode().split(), process.returncode) == (["thread", "registered"], 7), (
        "`threading._shutdown` or `atexit._run_exitfuncs` has changed: jobs of a study would end "
        "before their last words are written"
    )


@pytest.mark.parametrize(("there", "check"), [(False, "0"), (True, "1")])
def test_a_gpu_is_looked_for_once_where_there_is_none(
    there: bool, check: str, monkeypatch: pytest.MonkeyPatch
):
    import lightning.fabric

    assert f'os.environ["{compat.NVML_CHECK}"] = "1"' in inspect.getsource(lightning.fabric), (
        "Lightning no longer has torch ask NVML for GPUs: `look_for_gpus_once` may go"
    )
    monkeypatch.setenv(compat.NVML_CHECK, "1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    compat.look_for_gpus_once()
    assert os.environ[compat.NVML_CHECK] == check
