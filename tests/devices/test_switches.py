"""bfloat16 and torch.compile: each learns as the plain run does, comes to nearly its scores, and
leaves a checkpoint that a plain run takes.
"""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest
import torch

from cli import main
from core.errors import InputError
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from tests.devices.both import OPTIONS
from tests.finished import read_preview

SHORT = [*OPTIONS, "--trainer.max_epochs", "6", "--model.optimizer.lr", "0.005"]
BFLOAT16 = ["--trainer.precision", "bf16-mixed"]
COMPILE = ["--model.compile", "true"]
# Relative, of losses and scores after six epochs: bfloat16 has three digits, and each step builds
# on the one before it. Compiled kernels only sum in another order.
COARSE, FINE = 0.05, 1e-4

# a checkpoint may be tested in another run than its own
pytestmark = pytest.mark.filterwarnings("ignore:The dirpath has changed")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return short_training([], tmp_path_factory.mktemp("plain"))


def short_training(switch: list[str], folder: Path) -> Path:
    """Train with a switch, and test the checkpoint without it."""
    run = main(["fit", *SHORT, *switch, "--trainer.default_root_dir", str(folder / "fit")]).run_dir
    checkpoint = ["--ckpt_path", str(run / "checkpoints" / "best.ckpt")]
    tested = main(
        ["test", *SHORT, *checkpoint, "--trainer.default_root_dir", str(folder / "test")]
    ).run_dir
    shutil.copy(run / "history.json", tested)
    assert (run.name == tested.name) == (not switch), (
        "a switch that changes rounding is another run, and its default is no part of a name"
    )
    return tested


def loss_of(run: Path) -> list[float]:
    return [epoch["train/loss"] for epoch in json.loads((run / "history.json").read_text())]


def check(switch: list[str], tolerance: float, plain: Path, folder: Path) -> None:
    run = short_training(switch, folder)
    losses = loss_of(run)
    assert losses[-1] < 0.8 * losses[0]
    assert losses == pytest.approx(loss_of(plain), rel=tolerance)
    ours, theirs = read_preview(run), read_preview(plain)
    for name in ("soft_nll", "kl", "soft_brier"):
        assert ours["metrics"][name] == pytest.approx(theirs["metrics"][name], rel=tolerance), name


def test_bfloat16(plain: Path, tmp_path: Path):
    check(BFLOAT16, COARSE, plain, tmp_path)


def test_compile_without_code_generation(
    plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """All of torch.compile but the compiler: tracing, batches of other sizes, the backward pass."""
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    check(COMPILE, FINE, plain, tmp_path)
    assert compiled


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("g++") is None, reason="torch.compile needs a C++ compiler, and there is no g++"
)
def test_compile(plain: Path, tmp_path: Path):
    check(COMPILE, FINE, plain, tmp_path)


def test_a_compiled_network_is_the_plain_one_in_evaluation_and_in_checkpoints(
    monkeypatch: pytest.MonkeyPatch,
):
    compiled, plain = (
        AnnotatorClassifier((1, 8, 8), 10, SimpleFFN, compile=compile) for compile in (True, False)
    )
    assert list(compiled.state_dict()) == list(plain.state_dict())
    monkeypatch.setattr(compiled, "compiled", lambda inputs: "compiled")
    inputs = torch.ones(2, 1, 8, 8)
    assert compiled.train()(inputs) == "compiled"
    assert torch.equal(compiled.eval()(inputs), plain.eval()(inputs))


def test_without_a_compiler_the_switch_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(InputError, match=r"model.compile needs a C\+\+ compiler"):
        AnnotatorClassifier((1, 8, 8), 10, SimpleFFN, compile=True).on_fit_start()
