"""Detectors of the pytorch-ood library, by the class that a config names, fed with the logits or
features that are at hand anyway.
"""

import inspect
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from core.errors import InputError


@dataclass(frozen=True)
class NamedDetector:
    """A detector of pytorch-ood. It works on the CPU, where all of them do."""

    detector: Any

    @classmethod
    def build(cls, entry: dict[str, Any], head: nn.Module) -> "NamedDetector":
        """From `{class_path: pytorch_ood.detector.MaxLogit, init_args: {...}}`; lists among the
        arguments become tensors.

        What a constructor asks of the last layer (`head`, or its weights `w` and biases `b`) is
        filled in.
        """
        kind = class_of(entry)
        head = deepcopy(head).cpu()  # a detector may change what it is given
        supplied = {
            "model": None,
            "encoder": None,
            "head": head,
            "w": getattr(head, "weight", None),
            "b": getattr(head, "bias", None),
        }
        asked = inspect.signature(kind).parameters
        given = {
            name: torch.tensor(value) if isinstance(value, list) else value
            for name, value in (entry.get("init_args") or {}).items()
        }
        wanted = {name: value for name, value in supplied.items() if name in asked}
        # what constructors raise for arguments that are absent, wrong or unknown
        mistakes = (AttributeError, TypeError, ValueError)
        try:
            return cls(kind(**wanted | given))
        except mistakes as error:
            raise InputError(
                f"{entry['class_path']} cannot be made from its init_args ({error})."
            ) from error

    @property
    def needs_fit(self) -> bool:
        """Whether it must see the training items first."""
        return self.detector.requires_fit

    @property
    def takes_logits(self) -> bool:
        """Whether it scores logits; else it scores features."""
        return isinstance(self.detector, import_module("pytorch_ood.api").LogitsDetector)

    def fit(self, logits: Tensor, features: Tensor, labels: Tensor) -> None:
        """Fit it to the training items, by their logits or features."""
        fit = self.detector.fit_logits if self.takes_logits else self.detector.fit_features
        try:
            fit(self._given(logits, features), labels.cpu())
        except (AssertionError, ValueError) as error:
            raise InputError(
                f"{type(self.detector).__name__} cannot be fitted to the training items ({error})."
            ) from error

    @torch.no_grad()
    def __call__(self, logits: Tensor, features: Tensor) -> Tensor:
        """Its score of each item, from the logits or features that it takes."""
        of = self.detector
        score = of.predict_logits if self.takes_logits else of.predict_features
        return score(self._given(logits, features)).double().to(logits.device)

    def _given(self, logits: Tensor, features: Tensor) -> Tensor:
        return (logits if self.takes_logits else features).float().cpu()


def class_of(entry: dict[str, Any]) -> type:
    """The class that an entry names, after a check that it scores logits or features: others would
    need passes of their own.
    """
    try:
        api = import_module("pytorch_ood.api")
    except ImportError as error:
        raise InputError(
            'OODScores\'s detectors need pytorch-ood; install it with: pip install -e ".[ood]" -c '
            "constraints.txt"
        ) from error
    path = str(entry.get("class_path", entry))
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"OODScores's detectors name {path}, which is not there; name a class like "
            "pytorch_ood.detector.MaxLogit."
        ) from error
    accepted = (api.LogitsDetector, api.FeaturesDetector)
    if not isinstance(kind, type) or not issubclass(kind, accepted):
        raise InputError(
            f"OODScores's detectors name {path}, which takes neither logits nor penultimate "
            "features; only those that do can be named."
        )
    return kind
