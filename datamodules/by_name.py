"""Everything that a config can name by `datamodules`, which gives it on demand."""

from datamodules.custom.own_votes import OwnVotes
from datamodules.datasets.chaosnli import ChaosNLI
from datamodules.datasets.cifar10h import CIFAR10H
from datamodules.datasets.cifar10h_frozen import CIFAR10HFrozen
from datamodules.datasets.cifar10h_hard import CIFAR10HHard
from datamodules.datasets.cifar10n import CIFAR10N
from datamodules.datasets.cifar10n_frozen import CIFAR10NFrozen
from datamodules.datasets.digits import Digits
from datamodules.datasets.fashion_mnist_h import FashionMNISTH
from datamodules.datasets.mnist_subset import MNISTSubset
from datamodules.datasets.popquorn import POPQUORN
from datamodules.datasets.soft_digits import SoftDigits
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.delivery import (
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
from datamodules.votes.table import VoteTable

__all__ = [
    "CIFAR10H",
    "CIFAR10N",
    "POPQUORN",
    "CIFAR10HFrozen",
    "CIFAR10HHard",
    "CIFAR10NFrozen",
    "ChaosNLI",
    "Delivery",
    "DeterministicControl",
    "Digits",
    "FashionMNISTH",
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
