"""BatchNorm in packs: weights and running statistics are those of runs alone, also where an epoch
ends with a batch of one item.
"""

from functools import partial
from typing import Any

import pytest
import torch
from lightning import Trainer
from torch import nn

from datamodules import Multipass, SoftLabels
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import LeNet, MLPHead
from lightning_modules.networks.batch_norm import BatchNorm1d
from lightning_modules.packed.layers.stacked_batch_norm import StackedBatchNorm
from lightning_modules.packed.pack_member import Member
from lightning_modules.packed.packed_classifier import PackedClassifier
from tests.devices.odd_digits import OddDigits

NETWORKS = {
    "MLPHead": partial(MLPHead, hidden=32, norm="batch"),
    "LeNet": partial(LeNet, norm="batch"),
}
OPTIMIZERS = {
    "momentum": partial(torch.optim.SGD, momentum=0.9, weight_decay=5e-4),
    "Adam": torch.optim.Adam,
}
# seed, delivery, learning rate and epochs: all end at different times
MEMBERS = [
    (0, SoftLabels(), 0.05, 2),
    (0, Multipass(), 0.01, 3),
    (3, SoftLabels(), 0.02, 1),
    (3, SoftLabels(), 0.01, 4),
]


def odd_digits(seed: int, delivery=None) -> OddDigits:
    """97 items in batches of 8: the last one is a batch by itself."""
    data = OddDigits(delivery=delivery or SoftLabels(), batch_size=8, seed=seed)
    data.setup()
    assert data.corpus is not None
    data.corpus.inputs = data.corpus.inputs.double()  # pyright: ignore
    return data


def classifier_of(network: Any, optimizer: Any, seed: int, rate: float) -> AnnotatorClassifier:
    return AnnotatorClassifier((1, 8, 8), 10, network, partial(optimizer, lr=rate), seed=seed)


def pack_of(network: Any, optimizer: Any) -> list[Member]:
    shared = {seed: odd_digits(seed) for seed, *_ in MEMBERS}
    return [
        Member(
            classifier_of(network, optimizer, seed, rate).double(),
            shared[seed],
            shared[seed].bind(delivery, None),
            epochs,
        )
        for seed, delivery, rate, epochs in MEMBERS
    ]


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_member_ends_with_the_state_of_its_solo_run(network, optimizer):
    members = pack_of(network, optimizer)
    PackedClassifier(members).fit()
    for member, (seed, delivery, rate, epochs) in zip(members, MEMBERS, strict=True):
        alone = classifier_of(network, optimizer, seed, rate)
        trainer = Trainer(
            max_epochs=epochs,
            accelerator="cpu",
            precision="64-true",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(alone, datamodule=odd_digits(seed, delivery))
        assert member.history[-1]["val/soft_nll"] == pytest.approx(
            trainer.callback_metrics["val/soft_nll"].item(), abs=1e-7
        )
        state = alone.state_dict()
        assert member.last_state.keys() == state.keys()
        for name, value in state.items():
            torch.testing.assert_close(member.last_state[name], value, atol=1e-7, rtol=0)
        (tracked, *_) = (v for name, v in state.items() if name.endswith("num_batches_tracked"))
        # one item of an MLP's leaves its statistics alone; an image has many places
        assert tracked == (13 if "spatial" in vars(type(alone.network)) else 12) * epochs


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_a_pack_continues_exactly(network, tmp_path):
    whole = pack_of(network, OPTIMIZERS["momentum"])
    PackedClassifier(whole).fit(
        lambda pack: torch.save(pack.state_dict(), tmp_path / f"{pack.epoch}.pt")
    )
    for epoch in (1, 3):
        resumed = pack_of(network, OPTIMIZERS["momentum"])
        pack = PackedClassifier(resumed)
        pack.load_state_dict(torch.load(tmp_path / f"{epoch}.pt", weights_only=True))
        pack.fit()
        for before, after in zip(whole, resumed, strict=True):
            assert before.history == after.history
            assert before.last_state.keys() == after.last_state.keys()
            assert all(
                torch.equal(value, after.last_state[name])
                for name, value in before.last_state.items()
            )


@pytest.mark.parametrize("places", [(), (3, 4)], ids=["1d", "2d"])
@pytest.mark.parametrize("items", [1, 5])
@pytest.mark.parametrize("training", [False, True])
def test_a_layer_is_normalised_and_differentiated_as_by_torch(places, items, training):
    torch.manual_seed(0)
    kind = nn.BatchNorm2d if places else BatchNorm1d
    layers = [kind(6).double().train(training) for _ in range(3)]
    for layer in layers:
        for tensor in (layer.weight.data, layer.bias.data, layer.running_mean, layer.running_var):
            tensor.uniform_(0.5, 2)
    stacked = StackedBatchNorm(layers)  # pyright: ignore
    hidden = torch.randn(3, items, 6, *places, dtype=torch.float64, requires_grad=True)
    expected = torch.stack([layer(own) for layer, own in zip(layers, hidden, strict=True)])
    upstream = torch.randn_like(expected)
    expected.backward(upstream)
    # images have the batch last
    order = (0, 2, 3, 4, 1) if places else (0, 1, 2)
    with torch.no_grad():
        result = stacked.forward(hidden.detach().permute(order), training)
        gradient = stacked.backward(upstream.permute(order), further=True)
    torch.testing.assert_close(result, expected.permute(order))
    torch.testing.assert_close(gradient, hidden.grad.permute(order))  # pyright: ignore
    for name in ("weight", "bias"):
        torch.testing.assert_close(
            getattr(stacked, name).grad,
            torch.stack([getattr(layer, name).grad for layer in layers]),
        )
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        torch.testing.assert_close(
            getattr(stacked, name), torch.stack([getattr(layer, name) for layer in layers])
        )


def test_one_item_is_normalised_by_the_running_statistics_and_leaves_them():
    norm = BatchNorm1d(4)
    norm(torch.randn(8, 4, generator=torch.Generator().manual_seed(0)))
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    item = torch.ones(1, 4, requires_grad=True)
    given = norm(item)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    torch.testing.assert_close(
        given, (item - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
    )
    given.sum().backward()
    assert norm.weight.grad is not None
    assert norm.weight.grad.any()
