"""Datasets by name, and the deliveries that a config can choose from."""

from datamodules.chaosnli import ChaosNLI
from datamodules.cifar10h import CIFAR10H
from datamodules.cifar10h_frozen import CIFAR10HFrozen
from datamodules.cifar10h_hard import CIFAR10HHard
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
from datamodules.mnist_subset import MNISTSubset
from datamodules.own_votes import OwnVotes
from datamodules.popquorn import POPQUORN
from datamodules.soft_digits import SoftDigits
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes import VoteTable

__all__ = [
    "CIFAR10H",
    "POPQUORN",
    "CIFAR10HFrozen",
    "CIFAR10HHard",
    "ChaosNLI",
    "Delivery",
    "DeterministicControl",
    "Digits",
    "LabelSmoothing",
    "MNISTSubset",
    "MajorityVote",
    "Mixup",
    "Multipass",
    "OwnVotes",
    "ShuffledSLS",
    "SoftDigits",
    "SoftLabels",
    "StochasticLabelSampling",
    "VoteDataModule",
    "VoteTable",
]
