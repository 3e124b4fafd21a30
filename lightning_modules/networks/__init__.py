"""Networks by name, each with its penultimate features: see `network.py` for what they share.

Imports core alone.
"""

from lightning_modules.networks.feedforward import DeeperFFN, MLPHead, SimpleFFN
from lightning_modules.networks.lenet import LeNet
from lightning_modules.networks.network import Network
from lightning_modules.networks.resnet import ResNet18
from lightning_modules.networks.timm_model import TimmModel

__all__ = ["DeeperFFN", "LeNet", "MLPHead", "Network", "ResNet18", "SimpleFFN", "TimmModel"]
