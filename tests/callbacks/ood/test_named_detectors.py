"""Detectors of pytorch-ood by name: every one that takes logits or features, and a sentence for all
others.
"""

import sys

import pytest
import torch
from pytorch_ood import detector as peer
from pytorch_ood.api import FeaturesDetector, LogitsDetector
from torch import nn

from callbacks.ood.named_detectors import NamedDetector, class_of
from core.errors import InputError

GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.arange(300) % 4
FEATURES = torch.randn(300, 12, generator=GENERATOR).relu() + torch.eye(4, 12)[LABELS]
HEAD = nn.Linear(12, 4)
with torch.no_grad():
    HEAD.weight.copy_(torch.eye(4, 12) + 0.1 * torch.randn(4, 12, generator=GENERATOR))
    HEAD.bias.fill_(0.1)
LOGITS = HEAD(FEATURES).detach()
# what a YAML has to give, because no default and no last layer can
NEEDED = {
    "DICE": {"p": 0.7},
    "MCM": {"text_embeddings": torch.eye(4, 12).tolist()},
    "ViM": {"d": 5},
    "WeightedEBO": {"weights": [1.0, 2.0, 3.0, 4.0]},
}
CLASSES = [name for name in peer.__all__ if isinstance(getattr(peer, name), type)]
TAKEN = [
    name for name in CLASSES if issubclass(getattr(peer, name), (LogitsDetector, FeaturesDetector))
]


def entry(name: str, **init_args) -> dict:
    return {
        "class_path": f"pytorch_ood.detector.{name}",
        "init_args": {**NEEDED.get(name, {}), **init_args},
    }


@pytest.mark.parametrize("name", TAKEN)
def test_every_detector_of_logits_or_features_can_be_named(name: str):
    before = {key: value.clone() for key, value in HEAD.state_dict().items()}
    detector = NamedDetector.build(entry(name), HEAD)
    detector.fit(LOGITS, FEATURES, LABELS)
    scores = detector(LOGITS, FEATURES)
    assert scores.shape == (300,)
    assert scores.isfinite().all()
    assert scores.unique().numel() > 100
    assert all(torch.equal(value, before[key]) for key, value in HEAD.state_dict().items())


def test_a_named_detector_scores_as_it_does_by_itself():
    theirs = peer.KNN(None, k=7)
    theirs.fit_features(FEATURES, LABELS)
    mine = NamedDetector.build(entry("KNN", k=7), HEAD)
    mine.fit(LOGITS, FEATURES, LABELS)
    torch.testing.assert_close(
        mine(LOGITS[:9], FEATURES[:9]), theirs.predict_features(FEATURES[:9])
    )
    torch.testing.assert_close(
        NamedDetector.build(entry("MaxLogit"), HEAD)(LOGITS, FEATURES), -LOGITS.amax(1).double()
    )


@pytest.mark.parametrize("name", sorted(set(CLASSES) - set(TAKEN)))
def test_detectors_that_need_passes_of_their_own_are_refused(name: str):
    with pytest.raises(
        InputError,
        match=f"detectors name pytorch_ood.detector.{name}, which takes neither logits nor "
        "penultimate features",
    ):
        class_of(entry(name))


@pytest.mark.parametrize(
    "path", ["pytorch_ood.detector.MaxLogits", "pytorch_ood.detectors.MaxLogit", "MaxLogit", ""]
)
def test_a_class_that_is_not_there(path: str):
    with pytest.raises(
        InputError, match=r"which is not there; name a class like pytorch_ood.detector.MaxLogit"
    ):
        class_of({"class_path": path})


def test_a_class_that_is_no_detector():
    with pytest.raises(InputError, match=r"name torch.nn.Linear, which takes neither"):
        class_of({"class_path": "torch.nn.Linear"})


def test_arguments_that_are_absent_or_unknown():
    with pytest.raises(InputError, match=r"detector.ViM cannot be made from its init_args \(.*'d'"):
        NamedDetector.build({"class_path": "pytorch_ood.detector.ViM"}, HEAD)
    with pytest.raises(
        InputError, match=r"detector.MaxLogit cannot be made from its init_args \(.*'k'"
    ):
        NamedDetector.build(entry("MaxLogit", k=3), HEAD)


def test_training_items_that_cannot_be_fitted():
    with pytest.raises(
        InputError, match=r"KNN cannot be fitted to the training items \(k=301 exceeds"
    ):
        NamedDetector.build(entry("KNN", k=301), HEAD).fit(LOGITS, FEATURES, LABELS)


def test_without_pytorch_ood(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pytorch_ood.api", None)
    with pytest.raises(
        InputError, match="detectors need pytorch-ood; install it with: pip install"
    ):
        class_of(entry("MaxLogit"))
