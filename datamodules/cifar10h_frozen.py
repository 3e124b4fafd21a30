"""CIFAR-10H with its images replaced by the embeddings of a frozen model, for heads that train in seconds."""

from dataclasses import replace

import torch
from jsonargparse.typing import lazy_instance
from torch import Tensor

from datamodules.cifar10h import CIFAR10H, read_cifar_binary
from datamodules.embedders import EfficientNetLite0, Embedder
from datamodules.embeddings import embed_all
from datamodules.files import find
from datamodules.ood_sets import read_ood_set
from datamodules.preparation import Moments
from datamodules.vote_datamodule import Corpus


class CIFAR10HFrozen(CIFAR10H):
    """The same items, votes and splits as CIFAR10H; the inputs are embeddings, made once and kept in `cache`."""

    def __init__(
        self,
        embedder: Embedder = lazy_instance(EfficientNetLite0),
        cache: str = "data/embeddings",
        standardize: bool = True,
        **kwargs,
    ):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options; the paper used DINOv2-small (TimmEmbedder).
            cache: The folder of finished embeddings.
            standardize: Give every dimension mean 0 and variance 1 over the training items. The paper does not say whether it did.
        """
        super().__init__(**kwargs)
        self.embedder, self.cache, self.standardize = embedder, cache, standardize
        self._moments: Moments | None = None  # of the training items, where features are standardised
        self._foreign: dict[tuple[str, str], Tensor] = {}  # read once for all members of a pack

    @property
    def input_shape(self) -> tuple[int, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (self.embedder.dimensions,)

    @property
    def embedder_name(self) -> str:
        """For results and reports."""
        return self.embedder.name

    def prepare_data(self) -> None:
        super().prepare_data()
        embed_all(self.embedder, read_cifar_binary(find(self.root, self.IMAGES)), self.cache)

    def load(self) -> Corpus:
        corpus = super().load()
        assert isinstance(corpus.inputs, Tensor)
        embeddings = embed_all(self.embedder, corpus.inputs, self.cache)
        if self.standardize:
            self._moments = Moments.of(embeddings[torch.from_numpy(corpus.splits["train"])])
            embeddings = self._moments(embeddings)
        return replace(corpus, inputs=embeddings, mean=(0.0,), std=(1.0,), scale=1.0, augment=False)

    def foreign_inputs(self, source: str, root: str) -> Tensor:
        """The embeddings of images from elsewhere, brought to the size of CIFAR's first, and standardised as the training items are."""
        if (source, root) not in self._foreign:
            found = embed_all(self.embedder, read_ood_set(source, root, CIFAR10H.input_shape).contiguous(), self.cache)
            self._foreign[source, root] = self._moments(found) if self._moments else found
        return self._foreign[source, root]
