"""Hessian-vector products against closed forms, dense Hessians and curvlinops."""

import pytest
import torch
import torch.nn.functional as F
from curvlinops import HessianLinearOperator
from torch import Tensor, nn
from torch.func import functional_call, hessian

from callbacks.hessian.hessian_product import HessianProduct


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small_problem(seed: int = 2) -> tuple[nn.Module, Tensor, Tensor]:
    """A net whose weights are far from any minimum: its Hessian's eigenvalue of largest magnitude
    is negative.
    """
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(
                2 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            )
    inputs = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    annotator_probs = torch.rand(7, 3, generator=generator, dtype=torch.float64)
    return network, inputs, annotator_probs / annotator_probs.sum(1, keepdim=True)


def dense_hessian(network: nn.Module, inputs: Tensor, annotator_probs: Tensor) -> Tensor:
    names, shapes = zip(
        *((name, value.shape) for name, value in network.named_parameters()), strict=True
    )
    flat = nn.utils.parameters_to_vector(network.parameters()).detach()

    def loss(vector: Tensor) -> Tensor:
        parts = vector.split([shape.numel() for shape in shapes])
        state = {
            name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)
        }
        return F.cross_entropy(functional_call(network, state, inputs), annotator_probs)

    return hessian(loss)(flat)  # pyright: ignore[reportReturnType]


def as_matrix(product: HessianProduct) -> Tensor:
    return torch.stack([product(row) for row in torch.eye(product.size, dtype=torch.float64)])


def cut(inputs: Tensor, annotator_probs: Tensor, size: int):
    return lambda: zip(inputs.split(size), annotator_probs.split(size), strict=True)


def test_softmax_regression_has_its_closed_form():
    network = nn.Linear(4, 3, bias=False).double()
    inputs, annotator_probs = random(11, 4), random(11, 3, seed=1).softmax(1)
    q = network(inputs).softmax(1).detach()
    curvature = torch.diag_embed(q) - q[:, :, None] * q[:, None, :]
    expected = torch.einsum("nkl,ni,nj->kilj", curvature, inputs, inputs).reshape(12, 12) / 11
    torch.testing.assert_close(
        as_matrix(HessianProduct(network, cut(inputs, annotator_probs, 11))), expected
    )


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_any_batches_give_the_dense_hessian(size: int):
    network, inputs, annotator_probs = small_problem()
    product = HessianProduct(network, cut(inputs, annotator_probs, size))
    torch.testing.assert_close(as_matrix(product), dense_hessian(network, inputs, annotator_probs))
    assert product.spent == product.size


def test_curvlinops_agrees_on_ragged_batches():
    network, inputs, annotator_probs = small_problem()
    batches = list(cut(inputs, annotator_probs, 3)())
    peer = HessianLinearOperator(
        network,
        nn.CrossEntropyLoss(),
        list(network.parameters()),
        batches,
        check_deterministic=False,
    )
    product, vector = HessianProduct(network, lambda: batches), random(31)
    torch.testing.assert_close(product(vector), peer @ vector)


def test_a_single_batch_is_differentiated_once_and_several_are_freed():
    network, inputs, annotator_probs = small_problem()
    calls = []
    network.register_forward_hook(lambda *_: calls.append(1))
    for size, forwards in ((7, 1), (4, 6)):
        calls.clear()
        product = HessianProduct(network, cut(inputs, annotator_probs, size))
        for seed in range(3):
            product(random(31, seed=seed))
        assert len(calls) == forwards


def test_weights_that_the_loss_does_not_use_have_no_curvature():
    network, inputs, annotator_probs = small_problem()
    network.register_parameter("idle", nn.Parameter(torch.ones(2, dtype=torch.float64)))
    product = HessianProduct(network, cut(inputs, annotator_probs, 3))
    matrix = as_matrix(product)
    assert matrix[:2].abs().max() == 0
    assert matrix[:, :2].abs().max() == 0


def test_frozen_weights_are_left_out():
    network, inputs, annotator_probs = small_problem()
    network[0].requires_grad_(False)  # pyright: ignore[reportIndexIssue]
    product = HessianProduct(network, cut(inputs, annotator_probs, 3))
    assert product.size == 15
    torch.testing.assert_close(as_matrix(product), dense_hessian(*small_problem())[16:, 16:])
