"""Packed training: every member ends where it would have ended alone."""

from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning import Trainer
from lightning.pytorch.callbacks import EarlyStopping as LightningEarlyStopping
from torch.optim.lr_scheduler import ReduceLROnPlateau

from callbacks import TrainingDynamics
from datamodules import (
    Digits,
    LabelSmoothing,
    MajorityVote,
    Mixup,
    Multipass,
    SoftLabels,
    StochasticLabelSampling,
)
from lightning_modules import AnnotatorClassifier, CosineToEnd
from lightning_modules.networks import (
    DeeperFFN,
    LeNet,
    MLPHead,
    Network,
    ResNet18,
    SimpleFFN,
    TimmModel,
)
from lightning_modules.packed.layers.stacked_chain import can_be_packed
from lightning_modules.packed.layers.stacked_linear import Span
from lightning_modules.packed.pack_member import EarlyStopping, Member
from lightning_modules.packed.packed_classifier import PackedClassifier
from lightning_modules.packed.packed_network import PackedNetwork
from metrics import functional

SHAPE = (1, 8, 8)
QUIET: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


def data_of(seed: int, delivery=None) -> Digits:
    data = Digits(delivery=delivery or SoftLabels(), batch_size=200, seed=seed)
    data.setup()
    return data


def adam(lr: float, weight_decay: float = 0.0, **rest) -> dict[str, Any]:
    return {"optimizer": partial(torch.optim.Adam, lr=lr, weight_decay=weight_decay), **rest}


def sgd(lr: float, **rest) -> dict[str, Any]:
    return {"optimizer": partial(torch.optim.SGD, lr=lr, momentum=0.9, weight_decay=1e-3), **rest}


PLATEAU = partial(ReduceLROnPlateau, patience=0, threshold=0.5, factor=0.1)
SPECS = [
    (0, SoftLabels(), adam(1e-3)),
    (0, Multipass(), adam(1e-2, 1e-4)),
    (0, StochasticLabelSampling(), adam(1e-3, scheduler=CosineToEnd)),
    (3, MajorityVote(), adam(1e-3)),
    (3, LabelSmoothing(), adam(3e-3, scheduler=PLATEAU)),
]
MIXUP_SPECS = [  # each blends inputs of its own, amid members that share theirs
    (0, SoftLabels(), adam(1e-3)),
    (0, Mixup(), adam(1e-3)),
    (0, Multipass(), adam(1e-3)),
    (3, Mixup(Multipass(), alpha=0.4), adam(1e-3)),
    (3, Mixup(Multipass(), alpha=0.8), adam(1e-3)),
]
ADAMW_SPECS = [
    (0, SoftLabels(), {"optimizer": partial(torch.optim.AdamW, lr=lr, weight_decay=0.1)})
    for lr in (1e-3, 1e-2)
]
PLAIN_SGD_SPECS = [
    (0, SoftLabels(), {"optimizer": partial(torch.optim.SGD, lr=lr)}) for lr in (0.01, 0.03)
]
SGD_SPECS = [
    (0, SoftLabels(), sgd(0.1)),
    (0, Multipass(), sgd(0.03, scheduler=CosineToEnd)),
    (5, SoftLabels(), sgd(0.1, scheduler=PLATEAU)),
]


def alone(
    seed: int, delivery, options, epochs: int, *callbacks, precision: Any = "32-true"
) -> tuple[AnnotatorClassifier, Trainer]:
    classifier = AnnotatorClassifier(SHAPE, 10, seed=seed, **options)
    trainer = Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=list(callbacks),
        precision=precision,
        **QUIET,
    )
    data = data_of(seed, delivery)
    if precision == "64-true":
        # before they are standardised, as in the pack
        data.corpus.inputs = data.corpus.inputs.double()
    trainer.fit(classifier, datamodule=data)
    return classifier, trainer


def pack_of(specs, epochs: int, network, **rest) -> list[Member]:
    shared = {seed: data_of(seed) for seed, _, _ in specs}
    return [
        Member(
            AnnotatorClassifier(SHAPE, 10, seed=seed, network=network, **options),
            shared[seed],
            shared[seed].bind(delivery, None),
            epochs,
            **{key: make() for key, make in rest.items()},
        )
        for seed, delivery, options in specs
    ]


NETWORKS = {
    "simple": SimpleFFN,
    "deeper": DeeperFFN,
    "head": partial(MLPHead, hidden=32, dropout=0.0),
    "dropout": partial(MLPHead, hidden=32, dropout=0.3),
    "BatchNorm": partial(MLPHead, hidden=32, dropout=0.3, norm="batch"),
    "LeNet": LeNet,
    "LeNet, BatchNorm": partial(LeNet, norm="batch"),
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())
@pytest.mark.parametrize(
    "specs",
    [SPECS, MIXUP_SPECS, SGD_SPECS, ADAMW_SPECS, PLAIN_SGD_SPECS],
    ids=["Adam", "mixup", "SGD", "AdamW", "plain SGD"],
)
def test_a_member_ends_with_the_weights_of_its_solo_run(network, specs):
    """In double precision: in single precision a last bit can turn a unit off, and Adam then makes
    a visible step of it.
    """
    members = pack_of(specs, 3, network)
    for member in members:
        member.classifier.double()
    for data in {id(member.data): member.data for member in members}.values():
        data.corpus.inputs = data.corpus.inputs.double()
    PackedClassifier(members).fit()
    for member, (seed, delivery, options) in zip(members, specs, strict=True):
        classifier, trainer = alone(
            seed, delivery, {**options, "network": network}, 3, precision="64-true"
        )
        assert member.history[-1]["val/soft_nll"] == pytest.approx(
            trainer.callback_metrics["val/soft_nll"].item(), abs=1e-7
        )
        assert member.history[-1]["train/loss"] == pytest.approx(
            trainer.callback_metrics["train/loss"].item(), abs=1e-7
        )
        for name, value in classifier.state_dict().items():
            torch.testing.assert_close(member.last_state[name], value, atol=1e-7, rtol=0)


@pytest.mark.parametrize("network", [SimpleFFN, LeNet])
def test_members_stop_early_each_by_its_own_score(network):
    specs = [(0, SoftLabels(), adam(rate)) for rate in (0.0, 1e-3, 0.3)]
    members = pack_of(
        specs, 6, network, early_stopping=lambda: EarlyStopping(patience=2, min_delta=1e-3)
    )
    PackedClassifier(members).fit()
    for member, (seed, delivery, options) in zip(members, specs, strict=True):
        rule = LightningEarlyStopping("val/soft_nll", patience=2, min_delta=1e-3)
        _, trainer = alone(seed, delivery, {**options, "network": network}, 6, rule)
        assert len(member.history) == trainer.current_epoch
    assert len(members[0].history) == 3
    assert len({len(member.history) for member in members}) > 1


def test_best_weights_are_those_of_the_least_validation_score():
    members = pack_of(
        [(0, MajorityVote(), adam(0.03)), (0, SoftLabels(), adam(1e-3))], 8, SimpleFFN
    )
    PackedClassifier(members).fit()
    for member in members:
        scores = [epoch["val/soft_nll"] for epoch in member.history]
        assert member.best_epoch == min(range(8), key=scores.__getitem__)
        network = member.classifier.network
        network.load_state_dict(
            {name.removeprefix("network."): value for name, value in member.best_state.items()}
        )
        val = member.data.val_dataloader()
        probs = network(val.prepare(val.sampler.items, 0)).double().softmax(-1)
        assert functional.soft_nll(
            probs, member.data.annotator_probs[val.sampler.items]
        ).item() == pytest.approx(min(scores), abs=1e-6)


def test_shorter_runs_are_prefixes_of_longer_ones():
    (long,) = pack_of([(0, Multipass(), adam(0.03))], 6, SimpleFFN)
    long.stops = (2, 4, 6)
    PackedClassifier([long]).fit()
    for epochs in long.stops:
        (short,) = pack_of([(0, Multipass(), adam(0.03))], epochs, SimpleFFN)
        PackedClassifier([short]).fit()
        best_epoch, state = long.at_stop[epochs]
        assert best_epoch == short.best_epoch
        assert all(torch.equal(value, state[name]) for name, value in short.best_state.items())


def test_a_member_that_diverges_stops_alone():
    specs = [
        (0, SoftLabels(), sgd(0.1)),
        (
            0,
            SoftLabels(),
            {"optimizer": partial(torch.optim.SGD, lr=1e30, momentum=0.9, weight_decay=1e-3)},
        ),
    ]
    members = pack_of(specs, 3, SimpleFFN)
    PackedClassifier(members).fit()
    assert members[1].failed is not None
    assert "epoch 0" in members[1].failed
    assert members[0].failed is None
    (undisturbed,) = pack_of(specs[:1], 3, SimpleFFN)
    PackedClassifier([undisturbed]).fit()
    for name, value in undisturbed.last_state.items():
        torch.testing.assert_close(members[0].last_state[name], value, atol=1e-5, rtol=0)


def test_dropout_is_drawn_as_alone_and_is_off_in_evaluation():
    head = MLPHead((6,), 3, hidden=64, dropout=0.5)
    packed = PackedNetwork([head, head, head])
    inputs, spans = [torch.ones(4, 6), torch.ones(4, 6)], [Span(0, 2), Span(2, 3)]
    training = packed(inputs, spans, dropout_seeds=[1, 2])
    for member, seed in ((0, 1), (1, 1), (2, 2)):
        torch.manual_seed(seed)
        torch.testing.assert_close(training[member], head.train()(inputs[0]))
    evaluation = packed(inputs, spans)
    torch.testing.assert_close(evaluation[2], head.eval()(inputs[0]))


def test_which_networks_can_be_packed():
    assert all(can_be_packed(make(SHAPE, 10)) for make in NETWORKS.values())
    assert not can_be_packed(ResNet18((3, 32, 32), 10, width=4))
    assert all(kind.can_be_packed for kind in (SimpleFFN, DeeperFFN, MLPHead, LeNet))
    assert not any(kind.can_be_packed for kind in (Network, ResNet18, TimmModel))


def follow(member: Member) -> None:
    """Have a member note how far its predictions move, as TrainingDynamics would."""
    probe, votes = TrainingDynamics(), member.data.training_votes()
    member.followers = {probe.state_key: probe.follow(member.data, votes, Path())}


def test_predictions_move_from_epoch_to_epoch_as_alone():
    members = pack_of(SPECS, 3, SimpleFFN)
    for member in members[1:]:
        follow(member)
    PackedClassifier(members).fit()
    for member, (seed, delivery, options) in zip(members[1:], SPECS[1:], strict=True):
        _, trainer = alone(seed, delivery, {**options, "network": SimpleFFN}, 3, TrainingDynamics())
        expected = {
            name: value.item()
            for name, value in trainer.callback_metrics.items()
            if name.startswith("val/js")
        }
        assert len(expected) == 4
        assert {
            name: value for name, value in member.history[-1].items() if name.startswith("val/js")
        } == pytest.approx(expected, abs=1e-6)
        assert not any(name.startswith("val/js") for name in member.history[0])
    assert not any(name.startswith("val/js") for row in members[0].history for name in row)
    assert not members[0].followers


@pytest.mark.parametrize("network", [SimpleFFN, LeNet])
def test_a_pack_continues_exactly_from_its_saved_state(network, tmp_path):
    def members():
        members = pack_of(
            SPECS, 6, network, early_stopping=lambda: EarlyStopping(patience=1, min_delta=0.12)
        )
        for member in members[::2]:
            follow(member)
        return members

    whole = members()
    PackedClassifier(whole).fit(
        lambda pack: torch.save(pack.state_dict(), tmp_path / f"{pack.epoch}.pt")
    )
    assert len({len(member.history) for member in whole}) > 1
    for epoch in (1, 3, max(len(member.history) for member in whole)):
        resumed = members()
        pack = PackedClassifier(resumed)
        pack.load_state_dict(torch.load(tmp_path / f"{epoch}.pt", weights_only=True))
        pack.fit()
        for before, after in zip(whole, resumed, strict=True):
            assert before.history == after.history
            assert all(
                torch.equal(value, after.last_state[name])
                for name, value in before.last_state.items()
            )
            assert all(
                torch.equal(value, after.best_state[name])
                for name, value in before.best_state.items()
            )


def test_a_pack_that_an_earlier_version_began_goes_on_exactly():
    def members():
        members = pack_of(SPECS, 4, SimpleFFN)
        for member in members[::2]:
            follow(member)
        return members

    whole, states = members(), []
    PackedClassifier(whole).fit(lambda pack: states.append(deepcopy(pack.state_dict())))
    state = states[1]
    for its_state in state["members"]:  # as earlier versions kept it
        followed = its_state.pop("followers").get("TrainingDynamics")
        its_state["before"] = followed["before"]["probs"] if followed else None
    resumed = members()
    pack = PackedClassifier(resumed)
    pack.load_state_dict(state)
    pack.fit()
    assert ["val/js" in member.history[2] for member in resumed] == [True, False, True, False, True]
    assert [member.history for member in resumed] == [member.history for member in whole]


def test_what_a_study_follows_may_change_between_the_starts_of_a_pack():
    plain, states = pack_of(SPECS[:2], 3, SimpleFFN), []
    PackedClassifier(plain).fit(lambda pack: states.append(deepcopy(pack.state_dict())))
    followed = pack_of(SPECS[:2], 3, SimpleFFN)
    follow(followed[0])
    pack = PackedClassifier(followed)
    pack.load_state_dict(states[0])
    pack.fit()
    assert ["val/js" in row for row in followed[0].history] == [False, False, True]
    assert [row["val/kl"] for row in followed[0].history] == [
        row["val/kl"] for row in plain[0].history
    ]
