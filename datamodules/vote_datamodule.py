"""The datamodule that all datasets share: votes and inputs in, each epoch's batches out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
import torch
from lightning import LightningDataModule, Trainer
from torch import Tensor

from core.errors import InputError
from core.file_names import check_name
from datamodules.corpus import Corpus
from datamodules.io.ood_sets import read_ood_set
from datamodules.item_facts import ItemFacts
from datamodules.loading import Batch
from datamodules.order import BatchOrder
from datamodules.summary import DatasetSummary
from datamodules.votes.delivery import BoundDelivery, Delivery, SoftLabels
from datamodules.votes.table import VoteTable


class VoteDataModule(ItemFacts, LightningDataModule, ABC):
    """Supplies `Batch`es whose targets are delivered epoch by epoch.

    A dataset fills in `load` and three class attributes.

    Training sees the delivery's targets, made from a subsample of `votes_per_item` votes where that
    is set. Tests always see the full annotator distribution, whatever the model was trained on; so
    does validation, unless `sparse_validation` is set.
    """

    num_classes: int
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...] = ()  # for people, where classes have names
    ordinal = False  # True where classes are in an order, as ratings are; their scores join
    simulated = False  # True where the annotators are a simulation; results say so
    # False where another seed draws other items, so that row numbers mean nothing across seeds
    same_items = True
    # options of `bind`: runs that differ in these alone share all else in a pack
    pack_axes: tuple[str, ...] = ("delivery", "votes_per_item")

    def __init__(
        self,
        delivery: Delivery = SoftLabels(),
        votes_per_item: int | None = None,
        batch_size: int = 128,
        num_workers: int = 0,
        seed: int = 0,
        name: str | None = None,
        train_items: int | None = None,
        sparse_validation: bool = False,
    ):
        """
        Args:
            delivery: How votes reach the loss, by class name.
            votes_per_item: Train on this many votes per item, drawn from its distribution; None for
                all votes.
            batch_size: Items per optimizer step, over all devices together.
            num_workers: For inputs that do not fit in memory; tensors in memory need no workers.
            seed: Of the split, the subsample, the delivery, the order and the augmentation. Linked
                from seed_everything.
            name: What the data is called in run names, results, titles and reports: letters,
                digits, - and _, at most 40; by default its class.
            train_items: Train on this many of the training items, stratified by majority class and
                entropy, the fewer of one seed among the more; None for all of them. Validation and
                test stay as they are.
            sparse_validation: Validate by as few votes as training has (`votes_per_item`), drawn
                from a stream of their own: then no choice knows more votes than training does.
                Tests are always against all votes.
        """
        super().__init__()
        if batch_size < 1:
            raise InputError(f"data.batch_size is {batch_size}; it must be at least 1.")
        for option, number, which in (
            ("votes_per_item", votes_per_item, "votes"),
            ("train_items", train_items, "training items"),
        ):
            if number is not None and number < 1:
                raise InputError(
                    f"data.{option} is {number}; it must be 1 or more, or null for all {which}."
                )
        self.delivery, self.votes_per_item, self.batch_size = delivery, votes_per_item, batch_size
        check_name(name)
        self.num_workers, self.seed = num_workers, seed
        self.train_items, self.sparse_validation = train_items, sparse_validation
        # Lightning allows None; here it is always a name
        self.name: str = name or type(self).__name__  # pyright: ignore[reportIncompatibleVariableOverride]
        self.corpus: Corpus | None = None
        # of all items, where validation sees fewer votes than tests do
        self.validation_probs: Tensor | None = None
        self._epoch_targets: tuple[int, Tensor] = (-1, torch.empty(0))

    @abstractmethod
    def load(self) -> Corpus:
        """Read and check the files; split by `self.seed`."""

    def summarize(self) -> DatasetSummary:
        """All votes and items, for `describe`."""
        self.setup()
        assert self.corpus is not None
        return DatasetSummary(self.corpus.votes, self.corpus.inputs)

    def setup(self, stage: str | None = None) -> None:
        """Load the data once, whatever the stage."""
        if self.corpus is None:
            self.use(self.load())

    def use(self, corpus: Corpus) -> None:
        """Take a corpus as this datamodule's data, after checking that its parts fit together."""
        corpus.check(self.num_classes)
        self.corpus = corpus = corpus.trained_on(self.train_items, self.seed)
        train = corpus.splits["train"]
        self.bound = self.bind(self.delivery, self.votes_per_item)
        self.annotator_probs = torch.from_numpy(corpus.votes.float_probs())
        if self.sparse_validation and self.votes_per_item is not None:
            few = self.evaluation_votes(self.votes_per_item)
            self.validation_probs = torch.from_numpy(few.float_probs())
        self.training_row = torch.full((len(corpus.votes),), -1)
        self.training_row[torch.from_numpy(train)] = torch.arange(len(train))

    def training_votes(self) -> VoteTable:
        """The labels of all items in training: people's votes.

        A dataset may let an option of its own in `pack_axes` choose other labels.
        """
        assert self.corpus is not None
        return self.corpus.votes

    def bind(self, delivery: Delivery, votes_per_item: int | None, **others) -> BoundDelivery:
        """Tie a delivery to the training votes, subsampled if that is asked for.

        `others` are the options of `training_votes`.
        """
        votes = self.training_votes(**others).take(self.rows("train"))
        if votes_per_item is not None:
            votes = votes.subsample(votes_per_item, self.seed)
        return delivery.bind(votes, self.seed)

    def evaluation_votes(self, votes_per_item: int) -> VoteTable:
        """So few votes of all items, from a stream of their own: what validation and test items
        would have, were they trained on; training items were given others.
        """
        assert self.corpus is not None
        return self.corpus.votes.subsample(votes_per_item, self.seed, "subsample-evaluation")

    def loader(self, rows: np.ndarray, training: bool, batch_size: int | None = None):
        """Batches of these rows, of `data.batch_size` unless given.

        Shuffled and augmented for training; in order and as they are for evaluation.
        """
        assert self.corpus is not None
        trainer = self.trainer
        # Items that are blended with others need the whole global batch; `on_after_batch_transfer`
        # takes this rank's share of the blends.
        whole = training and self.bound.blends
        rank, ranks = (trainer.global_rank, trainer.world_size) if trainer and not whole else (0, 1)
        order = BatchOrder(
            torch.from_numpy(rows), batch_size or self.batch_size, self.seed, training, rank, ranks
        )
        device = trainer.strategy.root_device if trainer else None
        return self.corpus.loader(order, self.seed, training, self.num_workers, device)

    def train_dataloader(self):
        """Shuffled and augmented; each rank gets its share of every batch."""
        return self.loader(self.rows("train"), training=True)

    def val_dataloader(self):
        """The validation items in order, against the full annotator distribution or few votes."""
        return self.loader(self.rows("val"), training=False)

    def test_dataloader(self):
        """The test items in order, against the full annotator distribution."""
        return self.loader(self.rows("test"), training=False)

    def predict_dataloader(self):
        """All items of the table in order, whatever their split."""
        return self.loader(np.arange(len(self.annotator_probs)), training=False)

    def rows(self, split: str) -> np.ndarray:
        """The row numbers of train, val or test."""
        assert self.corpus is not None
        return self.corpus.splits[split]

    @property
    def annotator_votes(self) -> VoteTable:
        """What annotators said of all items; strata and uncertainties are told by it.

        These are the votes that models are judged by, unless a dataset can be judged by other
        labels as well.
        """
        assert self.corpus is not None
        return self.corpus.votes

    def evaluation_batches(
        self, rows: np.ndarray, device: torch.device | str = "cpu", batch_size: int | None = None
    ) -> Iterator[Batch]:
        """These items as the network sees them, with annotator distributions: what probes look at.

        On a device; in a DDP run, this rank's share.
        """
        for inputs, index in self.loader(rows, training=False, batch_size=batch_size):
            targets = self.annotator_probs[index.to(self.annotator_probs.device)]
            yield Batch(inputs.to(device), targets.to(device), index)

    def high_disagreement(self, quantile: float = 0.9) -> np.ndarray:
        """Where entropy reaches this quantile of the whole table: a mask of all items."""
        assert self.corpus is not None
        return self.corpus.votes.high_disagreement(quantile)

    def high_disagreement_rows(self, split: str, quantile: float = 0.9) -> np.ndarray:
        """Those of a split; whether an item is one does not depend on the split."""
        rows = self.rows(split)
        return rows[self.high_disagreement(quantile)[rows]]

    def ood_inputs(self, source: str, root: str) -> Tensor:
        """Images of `datamodules.io.ood_sets`, as bytes of this dataset's shape."""
        return read_ood_set(source, root, self.input_shape)

    def on_after_batch_transfer(self, batch: tuple[Tensor, Tensor], dataloader_idx: int) -> Batch:
        """Attach targets by index, in the main process: no worker can hold another epoch's."""
        inputs, index = batch
        if self.trainer is None or not self.trainer.training:
            # copies once, then does nothing
            self.annotator_probs = self.annotator_probs.to(inputs.device)
            few = self.validation_probs
            if few is None or not self.trainer or not _validates(self.trainer):
                return Batch(inputs, self.annotator_probs[index], index)
            self.validation_probs = few = few.to(inputs.device)
            return Batch(inputs, few[index], index)
        epoch = self.trainer.current_epoch
        if self._epoch_targets[0] != epoch:
            self._epoch_targets = epoch, self.bound.targets(epoch).to(inputs.device)
        self.training_row = self.training_row.to(inputs.device)
        rows = self.training_row[index]
        targets = self._epoch_targets[1][rows]
        delivered = Batch(*self.bound.blend(inputs, targets, rows, epoch), index)
        if not self.bound.blends:
            return delivered
        share = slice(self.trainer.global_rank, None, self.trainer.world_size)
        return Batch(*(part[share] for part in delivered))


def _validates(trainer: Trainer) -> bool:
    """Whether this is a validation, in a training or on its own, and no test or prediction."""
    return trainer.validating or trainer.sanity_checking
