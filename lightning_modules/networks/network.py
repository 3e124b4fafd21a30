"""What every network here offers: logits, and the penultimate features that they are a linear function of."""

from abc import abstractmethod

from torch import Tensor, nn


class Network(nn.Module):
    """A classifier in two named halves, so that OOD scores, CKA and gradient variance need no hooks: `head(features(inputs))`.

    Constructors take `(input_shape, num_classes)` first, then their own options; both come from the datamodule.
    """

    head: nn.Module

    @abstractmethod
    def features(self, inputs: Tensor) -> Tensor:
        """Penultimate features [B, D]."""

    @property
    def spatial(self) -> nn.Module | None:
        """The layer whose output maps Grad-CAM looks at; None where a network has none or cannot know. A property, so that weights keep one name."""
        return None

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))
