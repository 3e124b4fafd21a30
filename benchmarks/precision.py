"""ResNet-18 on a CPU core in bfloat16 (`trainer.precision: bf16-mixed`) against single precision:
what a step takes, and whether a short training ends where it would.

Steps are those of the full width on 32 x 32 images in batches of 32, plain and with channels last,
in one thread. The trainings are of an eighth of the width, six epochs of the embedded digits,
from three seeds in each precision; the difference of the mean test soft NLL is held against the
standard deviation over seeds. Evaluation is in single precision in both.

    OMP_NUM_THREADS=1 python -m benchmarks.precision        about two minutes
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from lightning import Trainer

from benchmarks.measure import alternate
from benchmarks.packed_peer import QUIET
from benchmarks.row import Row, main
from datamodules import Digits
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import ResNet18
from studies.plan.cost import computes_bfloat16

BATCH, ROUNDS, EPOCHS, SEEDS = 32, 3, 6, (0, 1, 2)


def step_times(memory_format: torch.memory_format) -> dict[str, float]:
    """Seconds of a training step in each precision."""
    torch.manual_seed(0)
    network = ResNet18((3, 32, 32), 10).to(memory_format=memory_format)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    inputs = torch.randn(BATCH, 3, 32, 32).to(memory_format=memory_format)
    targets = torch.randint(10, (BATCH,))

    def step(in_bfloat16: bool) -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bfloat16):
            loss = F.cross_entropy(network(inputs), targets)
        loss.backward()
        optimizer.step()

    return alternate(ROUNDS, {"bf16": lambda: step(True), "32": lambda: step(False)})


def short_training(precision: Any, seed: int) -> float:
    """The test soft NLL after some epochs."""
    data = Digits(batch_size=64, seed=seed)
    data.setup()
    network = partial(ResNet18, width=8)
    model = AnnotatorClassifier(data.input_shape, data.num_classes, network, seed=seed)
    trainer = Trainer(
        max_epochs=EPOCHS, accelerator="cpu", precision=precision, limit_val_batches=0, **QUIET
    )
    trainer.fit(model, datamodule=data)
    trainer.test(model, datamodule=data, verbose=False)
    return trainer.callback_metrics["test/soft_nll"].item()


def rows() -> Iterator[Row]:
    """Steps in both memory formats, then the trainings."""
    torch.set_num_threads(1)
    native = "" if computes_bfloat16() else "this CPU has no bfloat16 of its own"
    for name, form in (("", torch.contiguous_format), (", channels last", torch.channels_last)):
        fastest = step_times(form)
        what = f"a step of ResNet-18 in bfloat16{name}, batch {BATCH}"
        yield Row(what, "single precision", fastest["bf16"], fastest["32"], None, native)
    ends = {
        precision: np.array([short_training(precision, seed) for seed in SEEDS])
        for precision in ("bf16-mixed", "32-true")
    }
    means = {precision: float(scores.mean()) for precision, scores in ends.items()}
    apart = abs(means["bf16-mixed"] - means["32-true"])
    spread = float(np.mean([scores.std(ddof=1) for scores in ends.values()]))
    note = f"means {means['bf16-mixed']:.4f} and {means['32-true']:.4f}, {len(SEEDS)} seeds each"
    what = "soft NLL after a short training in bfloat16, from single precision's"
    yield Row(what, "standard deviation over seeds", apart, spread, 1.0, note, unit="nats")


if __name__ == "__main__":
    main(rows)
