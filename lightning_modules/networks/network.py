"""What every network here offers: logits, and the penultimate features that they are a linear
function of.
"""

from abc import abstractmethod

from torch import Tensor, nn

from core.errors import InputError

FOR_EMBEDDINGS = "MLPHead, SimpleFFN or DeeperFFN"


def check_images(network: str, input_shape: tuple[int, ...], least: int = 1) -> None:
    """Nothing for the shape of images of at least so many pixels in height and width; before
    anything is embedded or trained, a sentence for any other.

    >>> check_images("LeNet", (384,))
    Traceback (most recent call last):
    core.errors.InputError: LeNet takes images (channels, height, width); this dataset's inputs have
    shape (384,), for which there is MLPHead, SimpleFFN or DeeperFFN.
    """
    if len(input_shape) != 3 or min(input_shape[1:]) < least:
        size = f" of at least {least} x {least}" if least > 1 else ""
        raise InputError(
            f"{network} takes images (channels, height, width){size}; this dataset's inputs have "
            f"shape {input_shape}, for which there is {FOR_EMBEDDINGS}."
        )


class Network(nn.Module):
    """A classifier in two named halves, so that OOD scores, CKA and gradient variance need no
    hooks: `head(features(inputs))`.

    Constructors take `(input_shape, num_classes)` first, then their own options; both come from the
    datamodule.
    """

    head: nn.Module
    can_be_packed = False  # whether packs can train it: a plain chain of layers that they know

    @abstractmethod
    def features(self, inputs: Tensor) -> Tensor:
        """Penultimate features [B, D]."""

    @property
    def spatial(self) -> nn.Module | None:
        """The layer whose output maps Grad-CAM looks at; None where a network has none or cannot
        know. A property, so that weights keep one name.
        """
        return None

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits [B, K]."""
        return self.head(self.features(inputs))
