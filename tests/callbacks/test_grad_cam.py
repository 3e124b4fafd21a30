"""Grad-CAM maps: the same as by hand, also where a network works in place, and a network that is as
it was before.
"""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from callbacks import grad_cam
from callbacks.grad_cam import grad_cam_maps, map_correlations, spatial_layer
from lightning_modules.networks import LeNet, ResNet18, TimmModel


def images(items: int, *shape: int) -> Tensor:
    return torch.randn(items, *shape, generator=torch.Generator().manual_seed(0))


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


def used(network: nn.Module, inputs: Tensor) -> nn.Module:
    """In eval mode, with BatchNorm statistics of its own."""
    network.train()(inputs)
    return network.eval()


class LeNetByHand:
    layer = None
    make = staticmethod(lambda: LeNet((1, 16, 16), 5))
    shape = (1, 16, 16)

    @staticmethod
    def first(network, inputs):
        return network.convolutions[:5](inputs)

    @staticmethod
    def rest(network, maps, inputs):
        return network.head(network.hidden(network.convolutions[5:](maps)))


class ResNetByHand:
    layer = None
    make = staticmethod(lambda: ResNet18((3, 16, 16), 5, width=4))
    shape = (3, 16, 16)

    @staticmethod
    def first(network, inputs):
        return network.stages(network.stem(inputs))

    @staticmethod
    def rest(network, maps, inputs):
        return network.head(maps.mean((2, 3)))


class BeforeReLUInPlace(ResNetByHand):
    layer = "stem.1"

    @staticmethod
    def first(network, inputs):
        return network.stem[:2](inputs)

    @staticmethod
    def rest(network, maps, inputs):
        return network.head(network.stages(maps.relu()).mean((2, 3)))


class BeforeAdditionInPlace(ResNetByHand):
    layer = "stages.3.1.bn2"

    @staticmethod
    def _entering(network, inputs):
        return network.stages[3][0](network.stages[:3](network.stem(inputs)))

    @classmethod
    def first(cls, network, inputs):
        block, entering = network.stages[3][1], cls._entering(network, inputs)
        return block.bn2(block.conv2(block.bn1(block.conv1(entering)).relu()))

    @classmethod
    def rest(cls, network, maps, inputs):
        return network.head((maps + cls._entering(network, inputs)).relu().mean((2, 3)))


@pytest.mark.parametrize(
    "by_hand", [LeNetByHand, ResNetByHand, BeforeReLUInPlace, BeforeAdditionInPlace]
)
def test_maps_are_activations_weighted_by_the_mean_gradient_of_the_logit(by_hand):
    inputs, classes = images(7, *by_hand.shape), torch.arange(7) % 5
    network = used(seeded(by_hand.make), inputs)
    activations = by_hand.first(network, inputs).detach().clone().requires_grad_()
    logits = by_hand.rest(network, activations, inputs)
    torch.testing.assert_close(logits, network(inputs), msg="the halves do not make up the network")
    gradient = torch.autograd.grad(logits[torch.arange(7), classes].sum(), activations)[0]
    expected = (gradient.mean((2, 3), keepdim=True) * activations).sum(1).relu().detach()
    result = grad_cam_maps(network, spatial_layer(network, by_hand.layer), inputs, classes)
    assert (expected.amax((1, 2)) > 0).sum() >= 3, "there is hardly anything to see"
    torch.testing.assert_close(result, expected)
    assert not result.requires_grad


def test_chunks_do_not_show(monkeypatch: pytest.MonkeyPatch):
    inputs, classes = images(9, 3, 16, 16), torch.arange(9) % 5
    network = used(seeded(ResNetByHand.make), inputs)
    whole = grad_cam_maps(network, network.spatial, inputs, classes)
    monkeypatch.setattr(grad_cam, "CHUNK", 4)
    torch.testing.assert_close(grad_cam_maps(network, network.spatial, inputs, classes), whole)


@pytest.mark.parametrize("make", [LeNetByHand.make, ResNetByHand.make])
def test_the_network_and_all_random_states_are_as_before(make):
    network = seeded(make).train()
    inputs = images(6, *(LeNetByHand if isinstance(network, LeNet) else ResNetByHand).shape)
    network.head.weight.requires_grad_(False)
    network.head.bias.grad = torch.ones(5)
    before = deepcopy(network.state_dict())
    needed = [parameter.requires_grad for parameter in network.parameters()]
    rng, numpy_rng = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    with torch.no_grad():
        grad_cam_maps(network, network.spatial, inputs, torch.zeros(6, dtype=torch.long))
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert all(module.training for module in network.modules())
    assert [parameter.requires_grad for parameter in network.parameters()] == needed
    assert [p.grad is None for p in network.parameters()] == [
        p is not network.head.bias for p in network.parameters()
    ]
    assert not any(module._forward_hooks for module in network.modules())
    assert torch.equal(rng, torch.get_rng_state())
    assert (numpy_rng == np.random.get_state()[1]).all()  # noqa: NPY002


def test_the_layer_that_is_looked_at_adds_no_name_to_the_weights():
    for make in (LeNetByHand.make, ResNetByHand.make):
        network = make()
        assert sum(
            value.numel()
            for name, value in network.state_dict().items()
            if "running" not in name and "tracked" not in name
        ) == sum(parameter.numel() for parameter in network.parameters())


def test_correlations_are_pearsons_item_by_item():
    a, b = images(20, 4, 4), images(20, 4, 4).flip(0) + images(20, 4, 4)
    expected = [np.corrcoef(x.flatten(), y.flatten())[0, 1] for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(map_correlations(a, b), expected, atol=1e-6)
    np.testing.assert_allclose(map_correlations(a, 0.01 * a + 3), 1, atol=1e-6)
    torch.testing.assert_close(map_correlations(a, b), map_correlations(b, a))


def test_a_map_without_any_spread_has_no_correlation():
    a = images(3, 4, 4).abs()
    a[1] = 0.1
    assert map_correlations(a, images(3, 4, 4)).isnan().tolist() == [False, True, False]
    assert map_correlations(images(3, 4, 4), a).isnan().tolist() == [False, True, False]


def test_a_layer_of_any_network_can_be_named():
    network = used(TimmModel((3, 32, 32), 5, "resnet10t"), images(4, 3, 32, 32))
    maps = grad_cam_maps(
        network, spatial_layer(network, "model.layer3"), images(2, 3, 32, 32), torch.tensor([0, 4])
    )
    assert maps.shape == (2, 2, 2)
