"""Inputs replaced by the embeddings of a frozen model, for heads that train in seconds.

They are made once and kept.
"""

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from datamodules.corpus import Corpus
from datamodules.embedders import Embedder
from datamodules.embedders.embedder import Inputs
from datamodules.embedders.embeddings import embed_all
from datamodules.fingerprint import digest_of_items
from datamodules.io.ood_sets import read_ood_set
from datamodules.preparation import Moments
from datamodules.summary import DatasetSummary
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.table import VoteTable


class FrozenDataModule(VoteDataModule):
    """Turns items into embeddings; a dataset says how its items and votes are read and split."""

    def __init__(
        self, embedder: Embedder, cache: str = "data/embeddings", standardize: bool = True, **kwargs
    ):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options.
            cache: The folder of finished embeddings.
            standardize: Give every dimension mean 0 and variance 1 over the training items. The
                paper does not say whether it did.
        """
        super().__init__(**kwargs)
        # a default is shared by all who take it, and must not carry what one of them has loaded
        self.embedder = copy(embedder)
        self.cache, self.standardize = cache, standardize
        # of the training items, where features are standardised
        self._moments: Moments | None = None
        self._foreign: dict[tuple[str, str], Tensor] = {}  # read once for all members of a pack

    @abstractmethod
    def read(self) -> tuple[Inputs, VoteTable]:
        """The items as people see them (texts, or images as bytes) and their votes; checks both."""

    @abstractmethod
    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """Row numbers of train, val and test, by `self.seed`."""

    @property
    def input_shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The length of one embedding."""
        return (self.embedder.dimensions,)

    @property
    def embedder_name(self) -> str:
        """For results and reports."""
        return self.embedder.name

    def item_ids(self) -> list[str] | None:
        """Published ids of all items, in their order; None where row numbers are all there is."""
        return None

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        """The texts or images themselves, not their embeddings."""
        items, _ = self.read()
        if isinstance(items, Tensor):
            return items[torch.as_tensor(rows)]
        return [items[row] for row in rows]

    def summarize(self) -> DatasetSummary:
        """All votes and items, without embedding any."""
        items, votes = self.read()
        return DatasetSummary(votes, items)

    def prepare_data(self) -> None:
        """Embed all items once, in one process, so that every rank finds them in the cache."""
        self.embed(self.read()[0])

    def embed(self, items: Inputs) -> Tensor:
        """The embeddings of all items, from the cache or made now."""
        return embed_all(self.embedder, items, self.cache)

    def load(self) -> Corpus:
        """Embeddings from the cache, standardised by those of the training items."""
        items, votes = self.read()
        embeddings, splits = self.embed(items), self.split(votes)
        corpus = Corpus(embeddings, votes, splits, items=digest_of_items(items))
        corpus = corpus.trained_on(self.train_items, self.seed)
        if self.standardize:
            self._moments = Moments.of(embeddings[torch.from_numpy(corpus.splits["train"])])
            corpus.inputs = self._moments(embeddings)
        return corpus

    def ood_inputs(self, source: str, root: str) -> Tensor:
        """The embeddings of images from elsewhere.

        The images are first brought to the size of this dataset's. The embeddings are standardised
        as those of the training items are.
        """
        if (source, root) not in self._foreign:
            items, _ = self.read()
            if not isinstance(items, Tensor):
                raise InputError(
                    f"{source} holds images, but the items of {type(self).__name__} are texts; "
                    "leave OODScores out."
                )
            images = read_ood_set(source, root, tuple(items.shape[1:])).contiguous()
            result = embed_all(self.embedder, images, self.cache)
            self._foreign[source, root] = self._moments(result) if self._moments else result
        return self._foreign[source, root]


class FrozenInThreeParts(FrozenDataModule):
    """With a train, a validation and a test part.

    The datasets of "Soft-Label Training Preserves Epistemic Uncertainty" share this.
    """

    def __init__(
        self,
        embedder: Embedder,
        root: str = "data",
        fractions: tuple[float, float, float] = (0.7, 0.15, 0.15),
        entropy_bins: int = 10,
        **kwargs,
    ):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options.
            root: The folder that holds the published files in their own folders; what is absent is
                downloaded to it.
            fractions: Shares of train, validation and test, stratified by majority class and
                entropy. The paper does not state them.
            entropy_bins: How many bins of normalised entropy the split is stratified by. The paper
                does not state this either.
        """
        super().__init__(embedder=embedder, **kwargs)
        self.root, self.fractions, self.entropy_bins = root, fractions, entropy_bins

    def split(self, votes: VoteTable) -> dict[str, np.ndarray]:
        """By `fractions`, stratified by majority class and entropy."""
        if len(self.fractions) != 3:
            raise InputError(
                f"data.fractions is {list(self.fractions)}; it must be three shares, of train, "
                "validation and test."
            )
        train, val, test = votes.split(self.fractions, self.seed, self.entropy_bins)
        return {"train": train, "val": val, "test": test}
