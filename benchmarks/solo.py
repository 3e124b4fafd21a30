"""One run alone: a step of `cli.py fit`, against stock Lightning with the same logging and a plain
PyTorch loop.

All sides train the same network on the same 1,797 digits in memory, in batches of 64, with Adam and
one thread each, and know the epoch's mean loss at its end. Ours is the whole command: checkpoints,
history, TensorBoard, dropout that is a function of the step. Stock Lightning has a DataLoader,
`self.log` and its default callbacks, and every optimizer step looks for a GPU through NVML, as
Lightning sets it; the plain loop has none of that. Measured is an epoch's training without its
validation, of each side the fastest epoch of all rounds.

    OMP_NUM_THREADS=1 python -m benchmarks.solo        about a minute
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F
from lightning import Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.packed_peer import StockClassifier
from benchmarks.row import Row, main
from benchmarks.step_times import StepTimes
from core.compat import NVML_CHECK
from datamodules import Digits
from experiment.plurality_cli import run_command
from lightning_modules.networks import Network, ResNet18, SimpleFFN

ROOT = Path(__file__).parents[1]
BATCH, EPOCHS, ROUNDS = 64, 5, 2
QUIET: dict[str, Any] = {"enable_progress_bar": False, "enable_model_summary": False}


def ours(network: str, width: int | None, folder: str) -> float:
    """Seconds of a step of the command."""
    words = ["fit", "--config", str(ROOT / "configs/digits.yaml"), "--model.network", network]
    words += ["--model.network.width", str(width)] if width else []
    words += ["--trainer.max_epochs", str(EPOCHS), "--trainer.accelerator", "cpu"]
    words += [f"--trainer.{option}=false" for option in QUIET]
    words += ["--trainer.callbacks+=benchmarks.step_times.StepTimes"]
    StepTimes.seconds.clear()
    with redirect_stdout(StringIO()):
        run_command([*words, "--trainer.default_root_dir", folder])
    return min(StepTimes.seconds[1:])


def stock(network: Network, data: Digits, folder: str) -> float:
    """Seconds of a step of stock Lightning."""
    os.environ[NVML_CHECK] = "1"  # as Lightning has it
    inputs, targets = tensors(data)
    train = DataLoader(TensorDataset(inputs, targets), BATCH, shuffle=True)
    StepTimes.seconds.clear()
    trainer = Trainer(
        max_epochs=EPOCHS,
        accelerator="cpu",
        logger=TensorBoardLogger(folder),
        callbacks=[StepTimes()],
        default_root_dir=folder,
        limit_val_batches=0,
        **QUIET,
    )
    trainer.fit(StockClassifier(network), train)
    return min(StepTimes.seconds[1:])


def plain(network: Network, data: Digits, fused: bool) -> float:
    """Seconds of a step of a loop."""
    os.environ[NVML_CHECK] = "0"  # as it is without Lightning
    inputs, targets = tensors(data)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=fused)
    fastest = float("inf")
    for _ in range(EPOCHS):
        start, total, batches = perf_counter(), torch.zeros(()), torch.randperm(len(inputs))
        for batch in batches.split(BATCH):
            optimizer.zero_grad()
            loss = F.cross_entropy(network(inputs[batch]), targets[batch])
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
        fastest = min(fastest, (perf_counter() - start) / -(-len(inputs) // BATCH))
    return fastest


def tensors(data: Digits) -> tuple[torch.Tensor, torch.Tensor]:
    """Training inputs as the network sees them, and their targets."""
    rows = data.rows("train")
    inputs = torch.cat([seen for seen, _ in data.loader(rows, training=False)])
    return inputs, data.annotator_probs[torch.from_numpy(rows)]


def rows() -> Iterator[Row]:
    """A small network, where a step is mostly overhead, and a ResNet-18, where it is none."""
    torch.set_num_threads(1)
    data = Digits(batch_size=BATCH)
    data.setup()
    makers: dict[str, Callable[[], Network]] = {
        "SimpleFFN": lambda: SimpleFFN(data.input_shape, data.num_classes),
        "ResNet18": lambda: ResNet18(data.input_shape, data.num_classes, width=8),
    }
    for name, make in makers.items():
        width = 8 if name == "ResNet18" else None
        fastest: dict[str, float] = {}
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as folder:
                measured = {
                    "ours": ours(name, width, folder),
                    "stock Lightning": stock(make(), data, folder),
                    "plain loop, fused Adam": plain(make(), data, fused=True),
                    "plain loop, Adam": plain(make(), data, fused=False),
                }
            for side, seconds in measured.items():
                fastest[side] = min(fastest.get(side, seconds), seconds)
        what = f"a step of {name}{f' of width {width}' if width else ''} alone"
        mine = fastest.pop("ours")
        note = "one thread each"
        for peer, seconds in fastest.items():
            limit = 0.95 if peer == "stock Lightning" else None  # no slower, within noise
            yield Row(what, peer, mine, seconds, limit, note)
        if name == "SimpleFFN":
            yield Row(what, "at most 1.3 ms", mine, 1.3e-3, 1.0, "2.39 ms before")


if __name__ == "__main__":
    main(rows)
