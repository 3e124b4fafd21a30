"""ResNet-18 for 32 x 32 images: a 3 x 3 stem of stride 1 and no max-pool, built from torchvision's
blocks.
"""

from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock

from lightning_modules.networks.network import Network, check_images


class ResNet18(Network):
    """The CIFAR form of ResNet-18.

    `width` is the number of channels of the first stage: 64 in the paper, 8 to try it on a CPU.

    >>> import torch
    >>> ResNet18((3, 32, 32), 10, width=8)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, width: int = 64):
        super().__init__()
        check_images("ResNet18", input_shape)
        self.stem = nn.Sequential(
            nn.Conv2d(input_shape[0], width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
        )
        channels = [width, width, 2 * width, 4 * width, 8 * width]
        self.stages = nn.Sequential(
            *(_stage(channels[i], channels[i + 1], stride=1 if i == 0 else 2) for i in range(4))
        )
        self.head = nn.Linear(8 * width, num_classes)
        for module in self.modules():  # as torchvision's ResNet does
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @property
    def spatial(self) -> nn.Module:
        """The last stage's maps."""
        return self.stages

    def features(self, inputs: Tensor) -> Tensor:
        """The last stage's maps, averaged over places."""
        return self.stages(self.stem(inputs)).mean((2, 3))


def _stage(channels_in: int, channels: int, stride: int) -> nn.Sequential:
    shortcut = None
    if stride != 1 or channels_in != channels:
        shortcut = nn.Sequential(
            nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
        )
    return nn.Sequential(
        BasicBlock(channels_in, channels, stride, shortcut), BasicBlock(channels, channels)
    )
