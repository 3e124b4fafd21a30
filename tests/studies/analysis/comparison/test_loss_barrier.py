"""Loss along the line between two networks: what must be zero, what must not, and BatchNorm
statistics measured anew.
"""

from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from core.errors import InputError
from datamodules.loading import Batch
from metrics import functional
from studies.analysis.comparison.loss_barrier import (
    LossLine,
    interpolate,
    loss_line,
    mean_loss,
    reestimate_batch_norms,
)

INPUTS = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
PEOPLE = torch.randn(50, 4, generator=torch.Generator().manual_seed(1)).softmax(-1)


def batches(inputs: Tensor = INPUTS, annotator_probs: Tensor = PEOPLE):
    """The items in batches of 16, anew at every call; the last is smaller."""
    return lambda: map(
        Batch, inputs.split(16), annotator_probs.split(16), torch.arange(len(inputs)).split(16)
    )


def seeded(make, seed: int):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def regression() -> nn.Module:
    return nn.Linear(6, 4)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 4))


def normalised(dropout: float = 0.0) -> nn.Module:
    """Its statistics and affine weights are not those of a fresh network."""
    network = nn.Sequential(
        nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(dropout), nn.Linear(12, 4)
    )
    nn.init.normal_(network[1].weight, 1, 0.3)  # pyright: ignore[reportArgumentType]
    network(3 * torch.randn(40, 6) + 1)
    return network


def line(make, points: int = 11, annotator_probs: Tensor = PEOPLE) -> LossLine:
    start, end = (seeded(make, seed).state_dict() for seed in (0, 1))
    return loss_line(
        seeded(make, 2), start, end, batches(annotator_probs=annotator_probs), batches(), points
    )


def score(network: nn.Module) -> float:
    """The loss as evaluation computes it."""
    with torch.no_grad():
        return functional.soft_nll(network.eval()(INPUTS).double().softmax(-1), PEOPLE).item()


@pytest.mark.parametrize("make", [regression, perceptron, normalised])
def test_the_ends_are_the_networks_own_losses(make):
    result = line(make)
    assert (result.alphas[0], result.alphas[-1], len(result.alphas)) == (0, 1, 11)
    # single precision: how a matrix product is rounded depends on the processor and on where the
    # batches are cut
    assert result.plain[0] == pytest.approx(score(seeded(make, 0)), abs=1e-7)
    assert result.plain[-1] == pytest.approx(score(seeded(make, 1)), abs=1e-7)


@pytest.mark.parametrize("make", [perceptron, normalised])
def test_a_network_and_itself_have_no_barrier(make):
    state = seeded(make, 0).state_dict()
    result = loss_line(seeded(make, 1), state, state, batches(), batches())
    assert len(set(result.plain)) == 1
    assert result.barrier == pytest.approx(0, abs=1e-12)
    assert result.reestimated_barrier == (
        None if make is perceptron else pytest.approx(0, abs=1e-12)
    )


def test_a_convex_loss_never_rises_above_the_line_between_its_ends():
    result = line(regression, points=21)
    excess = [
        loss - (1 - a) * result.plain[0] - a * result.plain[-1]
        for a, loss in zip(result.alphas, result.plain, strict=True)
    ]
    assert min(excess) < -0.01, "the ends are the same, which shows nothing"
    assert max(excess[1:-1]) < 0
    assert result.barrier == pytest.approx(0, abs=1e-12)


def test_networks_that_differ_in_the_order_of_hidden_units_have_a_barrier():
    """Both say the same, which is what people say, so anything else between them must cost more."""
    network = seeded(perceptron, 0)
    network.load_state_dict({name: 4 * value for name, value in network.state_dict().items()})
    annotator_probs = network(INPUTS).detach().softmax(-1)
    start = network.state_dict()
    order = torch.arange(12).roll(1)
    end = start | {
        "0.weight": start["0.weight"][order],
        "0.bias": start["0.bias"][order],
        "2.weight": start["2.weight"][:, order],
    }
    result = loss_line(network, start, end, batches(annotator_probs=annotator_probs), batches())
    assert result.plain[0] == pytest.approx(result.plain[-1], abs=1e-6)
    assert result.barrier == pytest.approx(max(result.plain) - result.plain[0], abs=1e-6)
    assert result.barrier > 0.1
    assert min(result.plain[1:-1]) > result.plain[0]


def test_the_barrier_is_the_largest_rise_above_the_line_between_the_ends():
    result = LossLine(
        [0, 0.25, 0.5, 1], plain=[2.0, 4.0, 5.0, 6.0], reestimated=[1.0, 1.0, 1.0, 3.0]
    )
    assert result.barrier == 1  # both inner points lie 1 above 3 and 4
    assert result.reestimated_barrier == 0
    assert LossLine([0, 0.5, 1], [1.0, 3.0, 1.0], None).reestimated_barrier is None


def test_statistics_measured_anew_are_those_of_stochastic_weight_averaging():
    start, end = (seeded(normalised, seed).state_dict() for seed in (0, 1))
    result = line(normalised, points=3)
    for alpha, loss, plain in zip(
        result.alphas, result.reestimated or [], result.plain, strict=True
    ):
        peer = seeded(normalised, 2)
        peer.load_state_dict(interpolate(start, end, alpha))
        update_bn([batch.inputs for batch in batches()()], peer)
        assert loss == pytest.approx(score(peer), abs=1e-9)
        assert abs(loss - plain) > 1e-3


def test_measuring_anew_touches_nothing_but_statistics_and_leaves_dropout_off():
    network, calm = seeded(lambda: normalised(dropout=0.5), 0).eval(), seeded(normalised, 0).eval()
    calm.load_state_dict(network.state_dict())
    before, rng = deepcopy(network.state_dict()), torch.get_rng_state()
    for one in (network, calm):
        reestimate_batch_norms(one, batches()())
    after = network.state_dict()
    assert torch.equal(after["1.running_mean"], calm.state_dict()["1.running_mean"])
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        "1.running_mean",
        "1.running_var",
        "1.num_batches_tracked",
    }
    assert not any(layer.training for layer in network.modules())
    assert network.get_submodule("1").momentum == 0.1
    assert torch.equal(rng, torch.get_rng_state())


@pytest.mark.parametrize("make", [perceptron, normalised])
def test_the_given_network_is_left_alone(make):
    network = seeded(make, 2).train()
    before = deepcopy(network.state_dict())
    loss_line(
        network,
        seeded(make, 0).state_dict(),
        seeded(make, 1).state_dict(),
        batches(),
        batches(),
        points=3,
    )
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert network.training
    assert all(parameter.requires_grad for parameter in network.parameters())


def test_interpolation_is_exact_at_its_ends_and_keeps_whole_numbers():
    start, end = (seeded(normalised, seed).state_dict() for seed in (0, 1))
    end["1.num_batches_tracked"] += 7
    for alpha, side in ((0.0, start), (1.0, end)):
        state = interpolate(start, end, alpha)
        assert all(
            torch.equal(value, side[name])
            for name, value in state.items()
            if value.is_floating_point()
        )
        assert state["1.num_batches_tracked"] == start["1.num_batches_tracked"]
    torch.testing.assert_close(
        interpolate(start, end, 0.25)["0.weight"], 0.75 * start["0.weight"] + 0.25 * end["0.weight"]
    )


def test_weights_far_off_still_have_a_finite_loss():
    network = seeded(regression, 0)
    network.load_state_dict({name: 1e5 * value for name, value in network.state_dict().items()})
    with torch.no_grad():
        expected = (
            -(PEOPLE.double() * network(INPUTS).double().log_softmax(-1)).sum(-1).mean().item()
        )
    assert mean_loss(network, batches()()) == pytest.approx(expected, rel=1e-12)
    assert expected > 1e4


def test_a_line_of_two_points_is_refused():
    with pytest.raises(InputError, match="points is 2"):
        line(regression, points=2)
