"""Which of two forms the networks of a pack take: layers made for packs, or one network mapped over
stacked weights.
"""

from collections.abc import Sequence

import torch

from lightning_modules.networks import Network
from lightning_modules.packed.packed_network import PackedNetwork
from lightning_modules.packed.vmapped_network import VmappedNetwork

OURS = "lightning_modules.networks."


def has_layers_for_packs(kind: type) -> bool:
    """Whether a class of networks has a form of its own for packs, made for the CPU.

    A class from elsewhere has not, also where it inherits from one that has.

    >>> from lightning_modules.networks import LeNet, ResNet18
    >>> has_layers_for_packs(LeNet), has_layers_for_packs(ResNet18)
    (True, False)
    """
    return kind.__module__.startswith(OURS) and bool(getattr(kind, "can_be_packed", False))


def packed_form(
    networks: Sequence[Network], device: torch.device
) -> PackedNetwork | VmappedNetwork:
    """Networks of one architecture as one, on this device."""
    if device.type == "cpu" and has_layers_for_packs(type(networks[0])):
        return PackedNetwork(networks)
    return VmappedNetwork(networks, device)
