"""What every embedder offers: a name, an identity for the cache, and the embedding of a batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

from torch import Tensor

Inputs = Tensor | list[str]  # images as bytes [N, 3, H, W], or texts


class Embedder(ABC):
    """A frozen model with all that it does to its inputs.

    A config names the class, as in `--data.embedder EfficientNetLite0`. Making one is cheap: a
    model is loaded when something has to be embedded, so a filled cache needs neither a model nor a
    key.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """For people: reports put it beside every number that was made with these embeddings."""

    @property
    @abstractmethod
    def identity(self) -> dict[str, str]:
        """All that changes the numbers: the model, its weights and the preprocessing.

        The cache is named by it.
        """

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """The length of one embedding."""

    @abstractmethod
    def look_over(self, inputs: Inputs) -> list[str]:
        """Refuse, by row, what cannot be embedded, before anything is.

        Returns in sentences what a reader must know, such as what is cut.
        """

    def estimate(self, parts: Iterable[Inputs]) -> str | None:
        """What embedding these will cost, in a sentence; None where it costs nothing but time."""
        return None

    @abstractmethod
    def embed(self, batch: Inputs) -> Tensor:
        """float32 [items, dimensions], the same for the same batch."""
