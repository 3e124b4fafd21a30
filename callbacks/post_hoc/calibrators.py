"""Calibrators as a probe: every test score once more, of predictions that were calibrated to
annotators' votes.
"""

from collections.abc import Sequence

import numpy as np
import torch

from callbacks.post_hoc.held_out import HeldOutLogits, Part, halves_in_words, held_out_parts
from callbacks.probe import Probe, ProbeResult
from core.errors import InputError, hint
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from metrics import every_score
from metrics.calibrators import FORMS, LAMBDA, Calibrator, Form, fit_calibrator


class Calibrators(Probe):
    """`kl_temperature`, `ece_annotators_dirichlet_majority` and so on in results.json, beside the
    scores of the model as it is; the fitted numbers in calibrators.json. `test --calibrate` is
    short for it.

    Calibrators are fitted on validation items and judged on test items. Where a dataset's test
    items serve for validation, too, each half of them is judged by what was fitted to the other.
    """

    of_every_score = True  # a score that is registered later adds to what this probe measures

    def __init__(
        self, forms: Sequence[str] = ("temperature",), dirichlet_lambda: float = LAMBDA
    ) -> None:
        """
        Args:
            forms: What is fitted: temperature, vector or dirichlet, fitted to the distribution of
                each item's votes; with the ending _votes to one vote drawn for each item, and with
                _majority to the most voted class.
            dirichlet_lambda: Weight of Dirichlet scaling's penalty (ODIR) on off-diagonal weights
                and biases; the larger, the nearer it is to one weight for each class.
        """
        for form in forms:
            if form not in FORMS:
                raise InputError(
                    f"Calibrators's forms name {form}; they must be of {', '.join(FORMS)}"
                    f"{hint(form, FORMS)}."
                )
        if not forms:
            raise InputError("Calibrators has no forms; name at least one, such as temperature.")
        if not 0 <= dirichlet_lambda < np.inf:
            raise InputError(
                f"Calibrators's dirichlet_lambda is {dirichlet_lambda}; it must be a number from 0 "
                "on."
            )
        self.forms, self.dirichlet_lambda = tuple(dict.fromkeys(forms)), dirichlet_lambda

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Predict all held-out items once, then fit and judge each form."""
        parts = held_out_parts(data)
        seen = HeldOutLogits(classifier, data, parts)
        result = ProbeResult(notes=halves_in_words(parts, type(self).__name__))
        order = np.concatenate([part.judged for part in parts]).argsort()
        rows = np.concatenate([part.judged for part in parts])[order]
        target_probs = data.annotator_probs.cpu()[torch.from_numpy(rows)]
        fitted: dict[str, list[Calibrator]] = {}
        for form in (FORMS[name] for name in self.forms):
            fitted[form.name] = [self._fit(form, seen, data, part) for part in parts]
            pairs = zip(fitted[form.name], parts, strict=True)
            probs = np.concatenate([model(seen.of(part.judged)) for model, part in pairs])[order]
            scores = every_score(torch.from_numpy(probs), target_probs)
            result.metrics |= {f"{name}_{form.name}": value for name, value in scores.items()}
            if form.kind == "temperature":
                warmth = np.mean([1 / model.weights for model in fitted[form.name]])
                result.metrics[form.name] = float(warmth)
        result.tables["calibrators"] = {
            name: [model.as_plain() for model in models] for name, models in fitted.items()
        }
        return result

    def _fit(self, form: Form, seen: HeldOutLogits, data: VoteDataModule, part: Part) -> Calibrator:
        targets = calibration_targets(data, form.to, part.fitted)
        return fit_calibrator(form.kind, seen.of(part.fitted), targets, self.dirichlet_lambda)


def calibration_targets(data: VoteDataModule, to: str, rows: np.ndarray) -> np.ndarray:
    """What a calibrator is fitted to, as distributions [n, K]: those of all votes, one vote of each
    item (drawn by the run's seed), or the most voted class.
    """
    assert data.corpus is not None
    votes = data.corpus.votes
    if to == "votes":
        return votes.subsample(1, data.seed).take(rows).probs
    chosen = votes.take(rows)
    return np.eye(votes.num_classes)[chosen.majority] if to == "majority" else chosen.probs
