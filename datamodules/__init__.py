"""Datasets by name, and the deliveries that a config can choose from."""

from datamodules.cifar10h import CIFAR10H
from datamodules.cifar10h_frozen import CIFAR10HFrozen
from datamodules.delivery import (
    Delivery,
    DeterministicControl,
    LabelSmoothing,
    MajorityVote,
    Mixup,
    Multipass,
    ShuffledSLS,
    SoftLabels,
    StochasticLabelSampling,
)
from datamodules.digits import Digits
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes import VoteTable

__all__ = [
    "CIFAR10H",
    "CIFAR10HFrozen",
    "Delivery",
    "DeterministicControl",
    "Digits",
    "LabelSmoothing",
    "MajorityVote",
    "Mixup",
    "Multipass",
    "ShuffledSLS",
    "SoftLabels",
    "StochasticLabelSampling",
    "VoteDataModule",
    "VoteTable",
]
