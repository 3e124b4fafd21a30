"""The classifier: one loss for hard and soft targets, schedules, reproducible initial weights,
exact resumption in mid-epoch.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from lightning import Callback, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.strategies import SingleDeviceStrategy
from torch.optim.lr_scheduler import ReduceLROnPlateau

from core.errors import InputError
from datamodules import Digits, Mixup, Multipass, SoftLabels, StochasticLabelSampling
from datamodules.loading import Batch
from lightning_modules import AnnotatorClassifier, CosineToEnd
from lightning_modules.networks import LeNet, MLPHead, SimpleFFN

SHAPE = (1, 8, 8)
QUIET = {
    "logger": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "accelerator": "cpu",
}


def classifier(**options) -> AnnotatorClassifier:
    return AnnotatorClassifier(SHAPE, 10, **{"network": SimpleFFN, **options})


def test_hard_and_one_hot_targets_give_the_same_loss_and_gradient():
    model = classifier()
    model.log = lambda *args, **kwargs: None  # pyright: ignore
    model.trainer = Trainer(**QUIET)  # pyright: ignore
    inputs = torch.randn(6, *SHAPE, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([1, 2, 3, 4, 5, 6])
    gradients = []
    for targets in (labels, F.one_hot(labels, 10).float()):
        model.zero_grad()
        model.training_step(Batch(inputs, targets, labels), 0).backward()
        gradients.append(model.network.head.weight.grad.clone())  # pyright: ignore
    torch.testing.assert_close(gradients[0], gradients[1])


def test_initial_weights_depend_on_the_seed_alone():
    torch.manual_seed(1)
    first = classifier(seed=5)
    torch.manual_seed(2)
    state = torch.get_rng_state()
    second = classifier(seed=5)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True)
    )
    assert not torch.equal(first.network.head.weight, classifier(seed=6).network.head.weight)  # pyright: ignore


class Rates(Callback):
    def __init__(self):
        self.rates: list[float] = []

    def on_train_epoch_start(self, trainer, pl_module):
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])


def test_cosine_falls_to_zero_at_the_last_epoch_whatever_its_number():
    for epochs in (4, 7):
        rates = Rates()
        model = classifier(optimizer=partial(torch.optim.SGD, lr=0.1), scheduler=CosineToEnd)
        Trainer(
            max_epochs=epochs,
            limit_train_batches=1,
            limit_val_batches=0,
            enable_checkpointing=False,
            callbacks=rates,
            **QUIET,
        ).fit(model, datamodule=Digits())
        expected = [
            0.05 * (1 + torch.cos(torch.tensor(torch.pi * epoch / epochs)).item())
            for epoch in range(epochs)
        ]
        assert rates.rates == pytest.approx(expected, abs=1e-7)


def test_plateau_watches_the_validation_score():
    rates = Rates()
    model = classifier(
        # nothing improves, so every epoch after the first is a plateau
        optimizer=partial(torch.optim.SGD, lr=1e-9),
        scheduler=partial(ReduceLROnPlateau, factor=0.5, patience=0, threshold=0.1, eps=0.0),
    )
    Trainer(
        max_epochs=4,
        limit_train_batches=1,
        limit_val_batches=1,
        enable_checkpointing=False,
        callbacks=rates,
        **QUIET,
    ).fit(model, datamodule=Digits())
    assert rates.rates == pytest.approx([1e-9, 1e-9, 5e-10, 2.5e-10])


class Interruption(Exception):
    pass


class Interrupt(Callback):
    def __init__(self, at_step: int):
        self.at_step = at_step

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step == self.at_step:
            raise Interruption


def fit(
    folder: Path, delivery, precision: Any, interrupt_at: int | None = None, resume: bool = False
) -> AnnotatorClassifier:
    callbacks: list[Callback] = [
        ModelCheckpoint(folder, "step", every_n_train_steps=5, enable_version_counter=False)
    ]
    if interrupt_at:
        callbacks.append(Interrupt(interrupt_at))
    model = classifier(
        network=partial(MLPHead, hidden=16, dropout=0.3),
        optimizer=partial(torch.optim.SGD, lr=0.1, momentum=0.9),
        scheduler=CosineToEnd,
    )
    trainer = Trainer(
        max_epochs=3, callbacks=callbacks, limit_val_batches=1, precision=precision, **QUIET
    )
    trainer.fit(
        model,
        datamodule=Digits(delivery=delivery, batch_size=256),
        ckpt_path=folder / "step.ckpt" if resume else None,
        weights_only=True,
    )
    return model


DELIVERIES = [
    SoftLabels(),
    StochasticLabelSampling(),
    Multipass(),
    Mixup(StochasticLabelSampling()),
]


@pytest.mark.parametrize(
    ("delivery", "precision"),
    [*((delivery, "32-true") for delivery in DELIVERIES), (SoftLabels(), "64-true")],
    ids=str,
)
def test_an_interrupted_run_continues_exactly(tmp_path: Path, delivery, precision: str):
    """10 steps an epoch, dropout included; killed at step 13, the last checkpoint at step 10, and
    at step 27 (checkpoint at 25).
    """
    whole = fit(tmp_path / "whole", delivery, precision)
    for step in (13, 27):
        folder = tmp_path / str(step)
        with pytest.raises(Interruption):
            fit(folder, delivery, precision, interrupt_at=step)
        torch.manual_seed(step)
        resumed = fit(folder, delivery, precision, resume=True)
        for name, value in whole.network.state_dict().items():
            assert torch.equal(value, resumed.network.state_dict()[name]), (step, name)


def test_processes_that_would_continue_from_different_checkpoints_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        SingleDeviceStrategy,
        "broadcast",
        lambda self, value, src=0: value + 20 if isinstance(value, int) else value,
    )
    with pytest.raises(
        InputError,
        match="this process would continue from step 0 and the first one from step 20; all must "
        "see the same folder",
    ):
        fit(tmp_path, SoftLabels(), "32-true")


def test_a_checkpoint_of_another_architecture_is_refused_with_one_sentence(tmp_path: Path):
    trainer = Trainer(
        max_epochs=1, limit_train_batches=1, limit_val_batches=0, default_root_dir=tmp_path, **QUIET
    )
    trainer.fit(classifier(), datamodule=Digits())
    trainer.save_checkpoint(tmp_path / "ffn.ckpt")
    with pytest.raises(
        InputError, match=r"another architecture: network.* in this LeNet \(\d+ such entries\)"
    ):
        Trainer(default_root_dir=tmp_path, **QUIET).test(
            classifier(network=LeNet), Digits(), ckpt_path=tmp_path / "ffn.ckpt", weights_only=True
        )


def test_mixed_precision_is_for_training_alone():
    model = classifier().eval()
    batch = Batch(torch.rand(5, *SHAPE), torch.full((5, 10), 0.1), torch.arange(5))
    with torch.autocast("cpu", torch.bfloat16):
        assert model(batch.inputs).dtype == torch.bfloat16
        mixed = model.predict(batch)
    assert torch.equal(mixed.probs, model.predict(batch).probs)
