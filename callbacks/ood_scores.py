"""OOD detection after a test: how well eight scores, and any of pytorch-ood's, tell the test items
from images of elsewhere.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from callbacks.ood import detectors as detect
from callbacks.ood.figure import draw_scores
from callbacks.ood.named_detectors import NamedDetector, class_of
from callbacks.ood.passes import Outputs, check_halves, foreign_loader, one_pass
from callbacks.ood.sets import check_names, set_name, why_absent
from callbacks.probe import Probe, ProbeResult
from core.errors import InputError
from core.randomness import some_of
from core.ranks import gather_over_ranks
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from metrics import detection

LOGIT_SCORES = {
    "msp": detect.msp,
    "energy": detect.energy,
    "entropy": detect.entropy,
    "margin": detect.margin,
}
FITTED_SCORES = ("knn", "mahalanobis", "vim")
SCORES = (*LOGIT_SCORES, "odin", *FITTED_SCORES)
METRICS = {"auroc": detection.auroc, "aupr": detection.aupr, "fpr95": detection.fpr95}

Score = Callable[[Outputs], Tensor]


class OODScores(Probe):
    """AUROC, AUPR (OOD is positive) and FPR@95 of each score against each OOD set, named
    `<set>_auroc_<score>` and so on.

    The data are the test items. What needs fitting is fitted to the training items, without
    augmentation, and their majority classes.
    """

    def __init__(
        self,
        sets: Sequence[str] | dict[str, str] = ("svhn", "cifar100"),
        root: str | None = None,
        scores: Sequence[str] = SCORES,
        k: int = 50,
        principal: int | None = None,
        temperature: float = 1000.0,
        eps: float = 0.0014,
        detectors: Sequence[dict[str, Any]] = (),
        most_items: int | None = None,
    ):
        """
        Args:
            sets: OOD sets: svhn, cifar100, tiny_imagenet, mnist, fashion_mnist, or paths of image
                folders, idx files, CIFAR's .bin, SVHN's .mat; or names with these.
            root: The folder below which published sets lie; those that are absent are downloaded to
                it. Null for the dataset's own, or `data` where it has none.
            scores: Which to compute, of msp, energy, entropy, margin, odin, knn, mahalanobis and
                vim.
            k: Of KNN. The paper does not state it; 50 is what KNN's authors take for CIFAR-10.
            principal: Dimensions of ViM's principal space; null for half of the features. ViM is
                not in the paper.
            temperature: Of ODIN. The paper does not state it; 1000 is what ODIN's authors take.
            eps: Of ODIN, its step per pixel on the scale from 0 to 1. The paper does not state it;
                0.0014 is what ODIN's authors take for CIFAR-10.
            detectors: Further detectors of pytorch-ood that take logits or features, as
                [{class_path: pytorch_ood.detector.MaxLogit, init_args: {}}].
            most_items: Take a sample of at most so many images of each set; null for all of them,
                as in the paper.
        """
        unknown = [score for score in scores if score not in SCORES]
        if unknown:
            raise InputError(
                f"OODScores's scores name {unknown[0]}; they must be of {', '.join(SCORES)}."
            )
        if not temperature > 0:
            raise InputError(f"OODScores's temperature is {temperature}; it must be above 0.")
        if most_items is not None and most_items < 1:
            raise InputError(
                f"OODScores's most_items is {most_items}; it must be at least 1, or null for all "
                "images."
            )
        named_sets = isinstance(sets, dict)
        pairs = list(sets.items()) if named_sets else [(set_name(path), path) for path in sets]
        named = [(class_of(entry).__name__.lower(), entry) for entry in detectors]
        if not scores and not named:
            raise InputError("OODScores has neither scores nor detectors; name at least one.")
        check_names("sets", [name for name, _ in pairs])
        check_names("scores and detectors", [*scores, *(name for name, _ in named)])
        self.sets, self.detectors, self.scores = dict(pairs), dict(named), tuple(scores)
        self.root, self.most_items = root, most_items
        self.k, self.principal, self.temperature, self.eps = k, principal, temperature, eps

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Score the test items and every OOD set that is to be had, and compare the two."""
        network = classifier.network
        assert data.corpus is not None
        check_halves(network)
        if "vim" in self.scores and not isinstance(network.head, nn.Linear):
            raise InputError(
                "ViM needs the weights of a linear last layer, but the head of "
                f"{type(network).__name__} is {type(network.head).__name__}; "
                "leave vim out of OODScores's scores."
            )
        result = ProbeResult()
        root = self.root or getattr(data, "root", "data")
        absences = {name: why_absent(source, root) for name, source in self.sets.items()}
        for name, absence in absences.items():
            if absence is not None:
                which = f"{name}_auroc, {name}_aupr and {name}_fpr95 of all scores"
                result.notes.append(f"{which} are absent: {absence}")
        present = {name: source for name, source in self.sets.items() if absences[name] is None}
        if not present:
            return result

        for parameter in classifier.parameters():
            # ODIN needs gradients of the inputs only; the base class sets this back
            parameter.requires_grad_(False)
        std = torch.tensor(data.corpus.std, device=classifier.device)
        std = std.reshape(1, -1, *(1,) * (len(data.input_shape) - 1))
        odin = detect.ODIN(self.temperature, self.eps, std) if "odin" in self.scores else None
        scores = self._fit(classifier, data)
        seen = one_pass(classifier, data.loader(data.rows("test"), training=False), odin)
        inside = _evaluate(scores, seen, "the test items")
        for name, source in present.items():
            stored = data.ood_inputs(source, root)
            if self.most_items is not None:
                # the same for every run
                rows = some_of(np.arange(len(stored)), self.most_items, seed=0)
                stored = stored[torch.from_numpy(rows)]
            loader = foreign_loader(stored.to(classifier.device), data)
            outside = _evaluate(scores, one_pass(classifier, loader, odin), name)
            pairs = {score: (inside[score], outside[score]) for score in scores}
            result.metrics |= {
                f"{name}_{key}_{score}": of(*pair).item()
                for score, pair in pairs.items()
                for key, of in METRICS.items()
            }
            result.figures[f"ood_{name}"] = partial(draw_scores, _title(data), name, pairs)
        return result

    def _fit(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> dict[str, Score]:
        """Every score as a function of a pass's outputs.

        The training items are looked at only if something needs them.
        """
        head = classifier.network.head
        named = {name: NamedDetector.build(entry, head) for name, entry in self.detectors.items()}
        train, labels = None, torch.empty(0)
        needy = [detector for detector in named.values() if detector.needs_fit]
        if needy or set(self.scores) & set(FITTED_SCORES):
            seen = one_pass(classifier, data.loader(data.rows("train"), training=False))
            train = Outputs(*(gather_over_ranks(values) for values in seen))
            labels = data.annotator_probs.argmax(-1).to(classifier.device)[train.index]
            for detector in named.values():
                # does nothing where none is needed
                detector.fit(train.logits, train.features, labels)
        fitted = {name: self._score(name, head, train, labels) for name in self.scores}
        return fitted | {
            name: lambda seen, score=detector: score(seen.logits, seen.features)
            for name, detector in named.items()
        }

    def _score(self, name: str, head: nn.Module, train: Outputs | None, labels: Tensor) -> Score:
        if name in LOGIT_SCORES:
            return lambda seen: LOGIT_SCORES[name](seen.logits)
        if name == "odin":
            return lambda seen: seen.odin
        assert train is not None
        if name == "knn":
            knn = detect.KNN.fit(train.features, self.k)
            return lambda seen: knn(seen.features)
        if name == "mahalanobis":
            mahalanobis = detect.Mahalanobis.fit(train.features, labels)
            return lambda seen: mahalanobis(seen.features)
        assert isinstance(head, nn.Linear)
        principal = self.principal if self.principal is not None else train.features.shape[1] // 2
        vim = detect.ViM.fit(train.features, train.logits, head, principal)
        return lambda seen: vim(seen.features, seen.logits)


def _title(data: VoteDataModule) -> str:
    crowd = " (simulated annotators)" if data.simulated else ""
    return f"{data.name}{crowd}"  # not the delivery: members of a pack share their data


def _evaluate(scores: dict[str, Score], seen: Outputs, what: str) -> dict[str, Tensor]:
    """Each score of all items, over all ranks; in no particular order."""
    result = {name: gather_over_ranks(score(seen)).cpu() for name, score in scores.items()}
    for name, values in result.items():
        if not values.isfinite().all():
            raise InputError(
                f"OODScores: the {name} score of {what} is no finite number for "
                f"{int((~values.isfinite()).sum())} of {len(values)}; "
                "the network's outputs overflow, so train it again with a lower learning rate."
            )
    return result
