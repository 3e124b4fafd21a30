"""All training steps of an epoch run on the meta device, which has shapes and no values: whatever
asked a device for a number, and so waited for it, would fail.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from datamodules import Mixup, Multipass, SoftLabels, StochasticLabelSampling, VoteTable
from datamodules.corpus import Corpus
from datamodules.vote_datamodule import VoteDataModule
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import LeNet, MLPHead, ResNet18, SimpleFFN

META = torch.device("meta")
ITEMS, BATCH = 23, 5


class Pictures(VoteDataModule):
    """Bytes that are cropped and flipped, of which a last batch is smaller."""

    num_classes, input_shape = 4, (1, 28, 28)

    def load(self) -> Corpus:
        rng = np.random.default_rng(0)
        pictures = rng.integers(256, size=(ITEMS, *self.input_shape), dtype=np.uint8)
        votes = VoteTable(rng.multinomial(9, [0.25] * 4, ITEMS))
        rows = np.arange(ITEMS)
        splits = {name: rows for name in ("train", "val", "test")}
        return Corpus(
            torch.from_numpy(pictures), votes, splits, (0.5,), (0.5,), scale=255, augment=True
        )


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    "network",
    [SimpleFFN, LeNet, partial(MLPHead, dropout=0.2), partial(ResNet18, width=4)],
    ids=["SimpleFFN", "LeNet", "MLPHead", "ResNet18"],
)
@pytest.mark.parametrize(
    "delivery",
    [SoftLabels(), Multipass(), Mixup(StochasticLabelSampling())],
    ids=["soft", "multipass", "mixup"],
)
def test_no_step_asks_the_device_for_a_number(delivery, network, rank: int):
    data = Pictures(delivery, batch_size=BATCH)
    data.setup()
    strategy = SimpleNamespace(root_device=META)  # and nothing to reduce by: ranks are not asked
    trainer = SimpleNamespace(
        training=True, current_epoch=0, global_rank=rank, world_size=2, strategy=strategy
    )
    data.trainer = trainer  # pyright: ignore[reportAttributeAccessIssue]
    loader = data.train_dataloader()
    trainer.train_dataloader = loader
    model = AnnotatorClassifier(data.input_shape, data.num_classes, network).to(META)
    model.log = lambda *args, **kwargs: None  # pyright: ignore[reportAttributeAccessIssue]
    model.trainer = trainer  # pyright: ignore[reportAttributeAccessIssue]
    optimizer = torch.optim.Adam(model.network.parameters())
    steps = 0
    for number, given in enumerate(loader):
        assert all(part.device == META for part in given), "made on the CPU and moved in each step"
        batch = data.on_after_batch_transfer(given, 0)
        optimizer.zero_grad()
        model.training_step(batch, number).backward()
        optimizer.step()
        steps += 1
    assert steps == len(loader) == 5
    with pytest.raises(RuntimeError, match="meta"):
        model.train_loss.compute().item()  # the device is asked here, at the epoch's end
