"""A model that has learned nothing, for tests of what comes after training."""

from typing import Any

import torch

from datamodules import Digits
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN


def untrained_model(seed: int) -> tuple[AnnotatorClassifier, Any]:
    """A small network, and the digits as this seed splits them."""
    data: Any = Digits(seed=seed)
    data.setup()
    torch.manual_seed(0)
    return AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN).eval(), data
