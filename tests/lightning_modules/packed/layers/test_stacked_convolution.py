"""Stacked convolutions and pooling against torch's own, member by member, forward and backward."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lightning_modules.networks import LeNet, Network
from lightning_modules.packed.layers.stacked_chain import can_be_packed
from lightning_modules.packed.layers.stacked_convolution import MaxPool, StackedConvolution, Strips
from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.packed_network import PackedNetwork


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def batch_last(images: Tensor) -> Tensor:
    return images.movedim(-4, -1).contiguous()


def layers(members: int, channels: int, out: int, kernel: int, padding: int) -> list[nn.Conv2d]:
    torch.manual_seed(0)
    return [nn.Conv2d(channels, out, kernel, padding=padding).double() for _ in range(members)]


SIZES = [
    (3, 1, 6, 5, 2, 9, 7),
    (2, 6, 4, 5, 0, 8, 11),
    (1, 3, 2, 3, 1, 5, 5),
    (4, 2, 3, 1, 0, 3, 4),
    (2, 1, 1, 4, 3, 4, 4),
]


@pytest.mark.parametrize(
    ("members", "channels", "out", "kernel", "padding", "height", "width"), SIZES
)
def test_own_images_are_convolved_and_differentiated_as_by_torch(
    members, channels, out, kernel, padding, height, width
):
    own = layers(members, channels, out, kernel, padding)
    stacked = StackedConvolution(own)
    images = drawn(members, 7, channels, height, width).requires_grad_()
    expected = torch.stack([layer(image) for layer, image in zip(own, images, strict=True)])
    upstream = drawn(*expected.shape, seed=1)
    expected.backward(upstream)
    with torch.no_grad():
        result = stacked.forward(batch_last(images.detach()), training=True)
        gradient = stacked.backward(batch_last(upstream), further=True)
    torch.testing.assert_close(result, batch_last(expected))
    torch.testing.assert_close(gradient, batch_last(images.grad))
    for name in ("weight", "bias"):
        torch.testing.assert_close(
            getattr(stacked, name).grad, torch.stack([getattr(layer, name).grad for layer in own])
        )


@pytest.mark.parametrize(
    ("members", "channels", "out", "kernel", "padding", "height", "width"), SIZES
)
def test_members_of_a_span_share_images(members, channels, out, kernel, padding, height, width):
    own = layers(members, channels, out, kernel, padding)
    stacked = StackedConvolution(own)
    seen = drawn(5, channels, height, width, seed=2)
    expected = torch.stack([layer(seen) for layer in own])
    upstream = drawn(*expected.shape, seed=1)
    expected.backward(upstream)
    with torch.no_grad():
        result = stacked.forward(seen.permute(1, 2, 3, 0), training=True)
        stacked.backward(batch_last(upstream), further=False)
    torch.testing.assert_close(result, batch_last(expected))
    for name in ("weight", "bias"):
        torch.testing.assert_close(
            getattr(stacked, name).grad, torch.stack([getattr(layer, name).grad for layer in own])
        )


@pytest.mark.parametrize("ceil_mode", [False, True])
@pytest.mark.parametrize(("height", "width"), [(6, 4), (5, 4), (4, 7), (3, 3), (2, 2)])
def test_pooling_is_that_of_torch(height, width, ceil_mode):
    images = drawn(2, 3, 4, height, width).requires_grad_()
    expected = F.max_pool2d(images.flatten(0, 1), 2, ceil_mode=ceil_mode).unflatten(0, (2, 3))
    upstream = drawn(*expected.shape, seed=1)
    expected.backward(upstream)
    pool = MaxPool(ceil_mode)
    result = pool.forward(batch_last(images.detach()), training=True)
    torch.testing.assert_close(result, batch_last(expected), rtol=0, atol=0)
    gradient = pool.backward(batch_last(upstream), further=True)
    torch.testing.assert_close(gradient, batch_last(images.grad), rtol=0, atol=0)


def pooled_gradient(rows: list[list[float]]) -> list[list[float]]:
    pool = MaxPool(ceil_mode=False)
    result = pool.forward(torch.tensor(rows)[..., None], training=True)
    return pool.backward(torch.ones_like(result), further=True)[..., 0].tolist()


def test_of_equal_values_one_alone_is_given_the_gradient():
    rows = [[1.0, 1.0, 2.0, 0.0], [1.0, 1.0, 0.0, 2.0]]
    assert pooled_gradient(rows) == [[1, 0, 1, 0], [0, 0, 0, 0]]
    # torch takes the other: of different patches that are alike to the last bit
    assert pooled_gradient([[0.0, 2.0], [2.0, 0.0]]) == [[0, 0], [1, 0]]


def test_adding_strips_is_the_transpose_of_taking_them():
    images, added = drawn(1, 2, 5, 6, 3), drawn(3, 2 * 3, 3 * 4 * 3, seed=1)
    strips = Strips(images, 3)
    taken = sum((seen * part).sum() for seen, part in zip(strips.of(images[0]), added, strict=True))
    for seen, part in zip(strips.of_zeros(), added, strict=True):
        seen += part
    into = torch.zeros_like(images[0])
    strips.add_to(into)
    torch.testing.assert_close(taken, (images[0] * into).sum())


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (2, 10, 13)])
def test_a_packed_lenet_is_its_members(shape):
    torch.manual_seed(0)
    members = [LeNet(shape, 5).double().to(memory_format=torch.channels_last) for _ in range(3)]
    packed = PackedNetwork(members)
    seen, spans = [drawn(4, *shape, seed=seed) for seed in (0, 1)], [Span(0, 2), Span(2, 3)]
    expected = torch.stack(
        [member(seen[0] if m < 2 else seen[1]) for m, member in enumerate(members)]
    )
    torch.testing.assert_close(packed(seen, spans), expected)
    part = packed.part(Span(1, 3))
    with torch.no_grad():
        part.backward(2 * part.forward(seen[0], masks=[]))
    for member in members[1:]:
        member.zero_grad()
        member(seen[0]).square().sum().backward()
    for name, tensor in packed.tensors().items():
        assert not tensor.grad[0].any()  # a part writes to its own members' buffers alone
        torch.testing.assert_close(
            tensor.grad[1:],
            torch.stack([member.get_parameter(name).grad for member in members[1:]]),
        )


class Chain(Network):
    def __init__(self, *modules: nn.Module):
        super().__init__()
        self.chain, self.head = nn.Sequential(*modules), nn.Linear(4, 2)


@pytest.mark.parametrize(
    "module",
    [
        nn.Conv2d(1, 2, 3, stride=2),
        nn.Conv2d(1, 2, 3, dilation=2),
        nn.Conv2d(2, 2, 3, groups=2),
        nn.Conv2d(1, 2, (3, 1)),
        nn.Conv2d(1, 2, 3, padding=(1, 0)),
        nn.Conv2d(1, 2, 3, padding="same"),
        nn.Conv2d(1, 2, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(1, 2, 3, bias=False),
        nn.MaxPool2d(3),
        nn.MaxPool2d(2, stride=1),
        nn.MaxPool2d(2, padding=1),
        nn.MaxPool2d(2, dilation=2),
        nn.MaxPool2d(2, return_indices=True),
        nn.Linear(4, 4, bias=False),
        nn.BatchNorm2d(3),
        nn.BatchNorm1d(2),
        nn.BatchNorm2d(2, affine=False),
        nn.BatchNorm2d(2, track_running_stats=False),
        nn.BatchNorm2d(2, momentum=None),
        nn.AvgPool2d(2),
    ],
    ids=str,
)
def test_what_has_no_packed_form(module):
    assert can_be_packed(
        Chain(
            nn.Conv2d(1, 2, 3, padding=1),
            nn.BatchNorm2d(2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )
    )
    assert not can_be_packed(Chain(nn.Conv2d(1, 2, 3), module, nn.Flatten()))


def test_dropout_after_convolutions_has_no_packed_form():
    assert not can_be_packed(Chain(nn.Conv2d(1, 2, 3), nn.Dropout(0.5), nn.Flatten()))
