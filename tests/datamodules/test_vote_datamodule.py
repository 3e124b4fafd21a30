"""What batches carry: the delivery's targets in training, the full annotator distribution in
evaluation.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from lightning import LightningModule, Trainer
from torch.utils.data import Dataset

from core.errors import InputError
from datamodules import (
    Delivery,
    Digits,
    MajorityVote,
    Mixup,
    Multipass,
    SoftLabels,
    StochasticLabelSampling,
    VoteDataModule,
    VoteTable,
)
from datamodules.loading import Batch
from datamodules.vote_datamodule import Corpus

VOTES = VoteTable(np.random.default_rng(0).multinomial(9, [0.6, 0.3, 0.1], size=30))
SPLITS = {"train": np.arange(5, 30), "val": np.arange(3), "test": np.arange(3, 5)}


class Small(VoteDataModule):
    num_classes = 3
    input_shape = (2,)

    def load(self) -> Corpus:
        return Corpus(torch.arange(60.0).reshape(30, 2), VOTES, SPLITS)


class Recorder(LightningModule):
    """Keeps every batch it is given."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.training_batches: list[list] = []
        self.evaluation_batches: list = []

    def on_train_epoch_start(self):
        self.training_batches.append([])

    def training_step(self, batch, batch_idx):
        self.training_batches[-1].append(batch)
        return self.weight.sum() * batch.inputs.sum()

    def validation_step(self, batch, batch_idx):
        self.evaluation_batches.append(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.0)


def record(data: VoteDataModule, epochs: int) -> Recorder:
    recorder = Recorder()
    quiet: dict[str, Any] = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    Trainer(max_epochs=epochs, accelerator="cpu", **quiet).fit(recorder, datamodule=data)
    return recorder


def epoch_targets(batches) -> torch.Tensor:
    """The targets of an epoch in the order of the items."""
    index = torch.cat([batch.index for batch in batches])
    return torch.cat([batch.targets for batch in batches])[index.argsort()]


@pytest.mark.parametrize(
    "delivery",
    [SoftLabels(), MajorityVote(), Multipass(), StochasticLabelSampling()],
    ids=lambda d: type(d).__name__,
)
def test_training_sees_the_deliverys_targets_of_that_epoch(delivery: Delivery):
    recorder = record(Small(delivery=delivery, batch_size=8, seed=4), epochs=3)
    bound = delivery.bind(VOTES.take(SPLITS["train"]), seed=4)
    for epoch, batches in enumerate(recorder.training_batches):
        assert torch.equal(epoch_targets(batches), bound.targets(epoch))
        for batch in batches:
            assert torch.equal(batch.inputs, torch.arange(60.0).reshape(30, 2)[batch.index])


def test_evaluation_sees_all_votes_whatever_training_sees():
    recorder = record(Small(delivery=MajorityVote(), votes_per_item=1, batch_size=2), epochs=1)
    assert torch.equal(
        epoch_targets(recorder.evaluation_batches[-2:]), torch.from_numpy(VOTES.probs[:3]).float()
    )


def test_subsampled_votes_reach_any_delivery():
    recorder = record(Small(delivery=SoftLabels(), votes_per_item=2, seed=1), epochs=1)
    expected = VOTES.take(SPLITS["train"]).subsample(2, seed=1).probs
    assert torch.equal(
        epoch_targets(recorder.training_batches[0]), torch.from_numpy(expected).float()
    )
    assert set(np.unique(expected)) == {0.0, 0.5, 1.0}


def test_mixup_mixes_inputs_and_targets_of_the_batch():
    recorder = record(Small(delivery=Mixup(base=SoftLabels(), alpha=1.0), batch_size=25), epochs=1)
    batch = recorder.training_batches[0][0]
    inputs, probs = (
        torch.arange(60.0).reshape(30, 2)[batch.index],
        torch.from_numpy(VOTES.probs).float()[batch.index],
    )
    share = ((batch.inputs - inputs.roll(1, 0)) / (inputs - inputs.roll(1, 0))).mean()
    torch.testing.assert_close(batch.targets, share * probs + (1 - share) * probs.roll(1, 0))
    assert 0 < share < 1


def test_workers_deliver_the_same_targets_as_tensors():
    """An epoch number kept in a worker would be stale; here no worker knows of it."""

    class Inputs(Dataset):
        def __len__(self):
            return 30

        def __getitem__(self, item):
            return torch.arange(60.0).reshape(30, 2)[item]

    class Large(Small):
        def load(self) -> Corpus:
            return Corpus(Inputs(), VOTES, SPLITS)

    tensors = record(Small(delivery=StochasticLabelSampling(), batch_size=8), epochs=3)
    workers = record(
        Large(delivery=StochasticLabelSampling(), batch_size=8, num_workers=0), epochs=3
    )
    for ours, theirs in zip(tensors.training_batches, workers.training_batches, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert torch.equal(a.index, b.index)
            assert torch.equal(a.targets, b.targets)
            assert torch.equal(a.inputs, b.inputs)


def training_batches(
    delivery: Delivery, batch_size: int, epoch: int, rank: int, ranks: int
) -> list[Batch]:
    """What one process of several trains on."""
    data = Small(delivery=delivery, batch_size=batch_size, seed=4)
    data.setup()
    data.trainer = SimpleNamespace(  # pyright: ignore
        training=True,
        current_epoch=epoch,
        global_rank=rank,
        world_size=ranks,
        strategy=SimpleNamespace(root_device="cpu"),
    )
    loader = data.train_dataloader()
    loader.sampler.set_epoch(epoch)  # pyright: ignore
    return [data.on_after_batch_transfer(batch, 0) for batch in loader]  # pyright: ignore


@given(
    st.sampled_from(
        [
            SoftLabels(),
            Multipass(),
            StochasticLabelSampling(),
            Mixup(),
            Mixup(Multipass(), alpha=0.3),
        ]
    ),
    st.integers(4, 30),
    st.integers(0, 3),
    st.integers(1, 4),
)
def test_the_shares_of_all_ranks_are_the_batches_of_one_process(
    delivery: Delivery, batch_size: int, epoch: int, ranks: int
):
    """Items, inputs and targets alike, to the last bit, and whether or not ranks divide items or
    batches.
    """
    alone = training_batches(delivery, batch_size, epoch, 0, 1)
    assert sorted(torch.cat([batch.index for batch in alone]).tolist()) == SPLITS["train"].tolist()
    shares = [training_batches(delivery, batch_size, epoch, rank, ranks) for rank in range(ranks)]
    for whole, *parts in zip(alone, *shares, strict=True):
        for rank, part in enumerate(parts):
            for ours, theirs in zip(part, whole, strict=True):
                assert torch.equal(ours, theirs[rank::ranks])


def corpus(**changes) -> Corpus:
    return Corpus(**{"inputs": torch.zeros(30, 2), "votes": VOTES, "splits": SPLITS, **changes})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (corpus(inputs=torch.zeros(29, 2)), "29 inputs but the vote table has 30 rows"),
        (corpus(votes=VoteTable(np.ones((30, 4)))), "has 4 classes; this dataset has 3"),
        (corpus(splits={**SPLITS, "val": np.array([], dtype=int)}), "the val split is empty"),
    ],
)
def test_parts_that_do_not_fit_together(bad: Corpus, message: str):
    with pytest.raises(InputError, match=message):
        Small().use(bad)


def test_bad_options():
    with pytest.raises(InputError, match=r"data\.batch_size is 0"):
        Small(batch_size=0)
    with pytest.raises(InputError, match=r"data\.votes_per_item is 0"):
        Small(votes_per_item=0)


def test_digits_are_the_same_for_all_seeds_but_split_anew():
    first, second = Digits(seed=0), Digits(seed=1)
    first.setup()
    second.setup()
    assert first.corpus
    assert second.corpus
    assert torch.equal(first.corpus.inputs, second.corpus.inputs)  # pyright: ignore
    assert np.array_equal(first.corpus.votes.counts, second.corpus.votes.counts)  # pyright: ignore
    assert not np.array_equal(first.corpus.splits["test"], second.corpus.splits["test"])


def test_digits_families_never_cross_a_split():
    data = Digits(seed=3)
    data.setup()
    assert data.corpus
    families = len(data.corpus.votes) // 4
    owner = np.concatenate(
        [np.full(len(rows), i) for i, rows in enumerate(data.corpus.splits.values())]
    )
    item = np.concatenate(list(data.corpus.splits.values()))
    assert sorted(item) == list(range(4 * families))
    split_of = np.empty(4 * families, dtype=int)
    split_of[item] = owner
    assert (split_of.reshape(4, families) == split_of[:families]).all()


def test_the_simulated_crowd_agrees_on_clear_digits_and_splits_on_blends():
    data = Digits()
    data.setup()
    assert data.corpus
    assert data.simulated
    families = len(data.corpus.votes) // 4
    unanimous = data.corpus.votes.unanimous
    assert unanimous[: 2 * families].mean() > 0.8
    assert unanimous[2 * families :].mean() < 0.4
