"""LeNet-5 with ReLU and max-pooling, for small images of any number of channels."""

import torch
from torch import Tensor, nn

from lightning_modules.networks.batch_norm import Norm
from lightning_modules.networks.network import Network, check_images


class LeNet(Network):
    """Two convolutions and three linear layers.

    The papers do not state its details; these are the common modern ones. `norm: batch` is
    BatchNorm after each convolution, which the papers do not state either; a batch of one image is
    normalised over its places.

    The first convolution is padded as for MNIST, so images from 8 x 8 pixels upward are accepted.

    >>> LeNet((1, 28, 28), 10)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """

    can_be_packed = True

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, norm: Norm = "none"):
        super().__init__()
        check_images("LeNet", input_shape, least=8)
        kernel = 5 if min(input_shape[1:]) >= 12 else 3
        self.convolutions = nn.Sequential(
            nn.Conv2d(input_shape[0], 6, 5, padding=2), *_norms(norm, 6),
            # the same as in the other order, on a quarter of the values
            nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(6, 16, kernel), *_norms(norm, 16), nn.ReLU(),
            nn.MaxPool2d(2, ceil_mode=True), nn.Flatten(),
        )  # fmt: skip
        with torch.no_grad():  # in evaluation, so that BatchNorm takes no note of it
            flat = self.convolutions.eval()(torch.zeros(1, *input_shape)).shape[1]
        self.convolutions.train()
        self.hidden = nn.Sequential(nn.Linear(flat, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU())
        self.head = nn.Linear(84, num_classes)

    @property
    def spatial(self) -> nn.Module:
        """The second convolution's maps."""
        return self.convolutions[-3]  # the second ReLU

    def features(self, inputs: Tensor) -> Tensor:
        """The last hidden layer's output [B, 84]."""
        return self.hidden(self.convolutions(inputs))


def _norms(norm: Norm, channels: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels)] if norm == "batch" else []
