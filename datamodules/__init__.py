"""Datasets by name, and the deliveries that a config can choose from."""

from datamodules.cifar10h import CIFAR10H
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
