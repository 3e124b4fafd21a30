"""Networks without layers of their own for packs, mapped by torch.func: every member ends where it
would have ended alone.
"""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping as LightningEarlyStopping
from torch import Tensor, nn

from datamodules import Digits, Mixup, Multipass, SoftLabels
from datamodules.corpus import Corpus
from lightning_modules import CosineToEnd
from lightning_modules.networks import LeNet, MLPHead, Network, ResNet18, TimmModel
from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.pack_member import EarlyStopping
from lightning_modules.packed.packed_classifier import PackedClassifier
from lightning_modules.packed.packed_form import has_layers_for_packs, packed_form
from lightning_modules.packed.packed_network import PackedNetwork
from lightning_modules.packed.vmapped_network import VmappedNetwork
from tests.lightning_modules.packed.test_packed import PLATEAU, adam, alone, pack_of, sgd


class OwnNetwork(Network):
    """As a user might write one: two layers share a weight, one weight is frozen, and dropout is a
    module here and a function there.
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(input_shape[0], 6, 3, bias=False), nn.BatchNorm2d(6), nn.Dropout2d(0.3)
        )
        self.one, self.two = nn.Linear(24, 24), nn.Linear(24, 24)
        self.two.weight = self.one.weight
        self.norm = nn.BatchNorm1d(24)
        self.scale = nn.Parameter(torch.full((24,), 0.5), requires_grad=False)
        self.head = nn.Linear(24, num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        hidden = F.adaptive_avg_pool2d(self.stem(inputs), 2).flatten(1)
        hidden = F.dropout(F.gelu(self.one(hidden)), 0.2, self.training)
        return self.norm(self.two(hidden)) * self.scale


class OwnLeNet(LeNet):
    """It inherits, and is no plain chain."""

    def features(self, inputs: Tensor) -> Tensor:
        return super().features(inputs).square()


NETWORKS = {
    "ResNet-18": partial(ResNet18, width=2),
    "timm": partial(TimmModel, name="test_resnet"),
    "own": OwnNetwork,
    "inherited": OwnLeNet,
}
ADAM = [
    (0, SoftLabels(), adam(1e-3)),
    (0, Multipass(), adam(1e-2, 1e-4, scheduler=CosineToEnd)),
    (0, Mixup(), adam(1e-3)),
    (3, SoftLabels(), adam(3e-3, scheduler=PLATEAU)),
]
SGD = [(0, SoftLabels(), sgd(0.1)), (0, Multipass(), sgd(0.03)), (5, SoftLabels(), sgd(0.1))]


@pytest.fixture(autouse=True)
def few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the digits, three batches of them: these networks take their time."""
    whole = Digits.load

    def load(self: Digits) -> Corpus:
        corpus = whole(self)
        corpus.splits = {name: rows[:450] for name, rows in corpus.splits.items()}
        return corpus

    monkeypatch.setattr(Digits, "load", load)


def doubled(members):
    for member in members:
        member.classifier.double()
    for data in {id(member.data): member.data for member in members}.values():
        data.corpus.inputs = data.corpus.inputs.double()
    return members


@pytest.mark.parametrize(
    ("name", "specs"),
    [
        ("ResNet-18", ADAM[2:]),
        ("timm", SGD[1:]),
        ("own", ADAM),
        ("own", SGD),
        ("inherited", SGD),
    ],
)
def test_a_member_ends_with_the_weights_and_statistics_of_its_solo_run(name, specs):
    network = NETWORKS[name]
    members = doubled(pack_of(specs, 3, network))
    pack = PackedClassifier(members)
    assert isinstance(pack.network, VmappedNetwork)
    pack.fit()
    for member, (seed, delivery, options) in zip(members, specs, strict=True):
        solo, trainer = alone(
            seed, delivery, {**options, "network": network}, 3, precision="64-true"
        )
        for name in ("val/soft_nll", "train/loss"):
            expected = trainer.callback_metrics[name].item()
            assert member.history[-1][name] == pytest.approx(expected, abs=1e-7)
        states = solo.state_dict()
        assert member.last_state.keys() == states.keys()
        for name, value in states.items():
            torch.testing.assert_close(member.last_state[name], value, atol=1e-7, rtol=0)


def test_members_stop_early_each_by_its_own_score():
    network = OwnNetwork
    specs = [(0, SoftLabels(), adam(rate)) for rate in (0.0, 1e-3, 0.03)]
    rule = partial(EarlyStopping, patience=1, min_delta=0.1)
    members = pack_of(specs, 5, network, early_stopping=rule)
    PackedClassifier(members).fit()
    for member, (seed, delivery, options) in zip(members, specs, strict=True):
        rule = LightningEarlyStopping("val/soft_nll", patience=1, min_delta=0.1)
        _, trainer = alone(seed, delivery, {**options, "network": network}, 5, rule)
        assert len(member.history) == trainer.current_epoch
    assert len({len(member.history) for member in members}) > 1


def test_a_pack_continues_exactly_from_its_saved_state(tmp_path):
    rule = partial(EarlyStopping, patience=1, min_delta=0.1)
    specs = [*ADAM, (3, Multipass(), adam(0.0)), (3, Multipass(), adam(3.0))]
    whole = pack_of(specs, 5, OwnNetwork, early_stopping=rule)
    PackedClassifier(whole).fit(
        lambda pack: torch.save(pack.state_dict(), tmp_path / f"{pack.epoch}.pt")
    )
    lengths = {len(member.history) for member in whole}
    assert len(lengths) > 1
    for epoch in (1, min(lengths), max(lengths)):
        resumed = pack_of(specs, 5, OwnNetwork, early_stopping=rule)
        pack = PackedClassifier(resumed)
        pack.load_state_dict(torch.load(tmp_path / f"{epoch}.pt", weights_only=True))
        pack.fit()
        for before, after in zip(whole, resumed, strict=True):
            assert before.history == after.history
            for kind in ("last_state", "best_state"):
                one, other = getattr(before, kind), getattr(after, kind)
                assert all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize(("norm", "items"), [("none", 4), ("batch", 4), ("batch", 1)])
def test_both_forms_compute_the_same(norm, items):
    heads = [MLPHead((6,), 3, hidden=8, dropout=0.5, norm=norm) for _ in range(3)]
    by_layers, mapped = PackedNetwork(heads), VmappedNetwork(heads)
    inputs, spans = [torch.randn(items, 6), torch.randn(items, 6)], [Span(0, 2), Span(2, 3)]
    for seeds in ([1, 2], None):
        torch.testing.assert_close(by_layers(inputs, spans, seeds), mapped(inputs, spans, seeds))
    for name, statistic in by_layers.buffers().items():
        torch.testing.assert_close(statistic, mapped.buffers()[name])
    part = mapped.part(Span(2, 3))
    torch.testing.assert_close(part(inputs[1:], [Span(0, 1)]), mapped(inputs, spans)[2:])


def test_dropout_of_inputs_that_all_members_share():
    network = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 2))
    inputs = torch.ones(4, 6)
    training = VmappedNetwork([network, network])([inputs], [Span(0, 2)], [7])
    torch.manual_seed(7)
    expected = network.train()(inputs)
    for own in training:
        torch.testing.assert_close(own, expected)


@pytest.mark.parametrize("kind", [nn.Dropout1d, nn.Dropout2d, nn.Dropout3d])
def test_dropout_of_whole_channels_is_drawn_as_alone(kind):
    images = torch.ones(2, 5, *(3,) * int(kind.__name__[-2]))
    members = [nn.Sequential(_Scaled(), kind(0.5)) for _ in range(2)]
    drawn = VmappedNetwork(members)([images] * 2, [Span(0, 1), Span(1, 2)], [1, 2])
    for member, seed in enumerate((1, 2)):
        torch.manual_seed(seed)
        torch.testing.assert_close(drawn[member], members[member].train()(images))


class _Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.scale


class Noisy(nn.Sequential):
    """Random in a way that no seed of ours reaches."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input) + torch.rand(1)


def test_other_randomness_is_refused_rather_than_shared():
    noisy = VmappedNetwork([Noisy(nn.Linear(6, 2))])
    with pytest.raises(RuntimeError, match="randomness"):
        noisy([torch.ones(4, 6)], [Span(0, 1)], [0])


def test_a_weight_without_a_gradient_is_refused_rather_than_decayed():
    class Idle(nn.Linear):
        def __init__(self):
            super().__init__(6, 2)
            self.idle = nn.Parameter(torch.ones(3))

    packed = VmappedNetwork([Idle()])
    with pytest.raises(RuntimeError, match="not have been used"):
        packed.differentiate([torch.ones(4, 6)], torch.ones(1, 4, 2), [Span(0, 1)], [0])


def test_which_form_networks_take():
    cpu, elsewhere = torch.device("cpu"), torch.device("meta")
    assert isinstance(packed_form([LeNet((1, 8, 8), 2)], cpu), PackedNetwork)
    assert isinstance(packed_form([OwnLeNet((1, 8, 8), 2)], cpu), VmappedNetwork)
    assert isinstance(packed_form([LeNet((1, 8, 8), 2)], elsewhere), VmappedNetwork)
    assert not has_layers_for_packs(OwnLeNet)
    assert not has_layers_for_packs(ResNet18)
