"""Every test score once more on the items that annotators agree on (NoHLV) and on those that they
do not (HLV).
"""

import math

import torch
from torch import Tensor

from callbacks.probe import Probe, ProbeResult
from core.ranks import gather_over_ranks
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from metrics import every_score
from metrics.registry import STRATA


class StratumScores(Probe):
    """`soft_nll_nohlv`, `soft_nll_hlv` and so on in results.json: on all items together, easy ones
    would hide what happens on the disputed ones.

    An item is NoHLV where all votes name one class. Where a dataset has other label sets
    (`VoteDataModule.other_labels`), such as the labels that it was published with, the same
    predictions are scored against those, too: `accuracy_original`, `accuracy_original_hlv` and so
    on, over the same strata. What a stratum does not define (people's entropy does not vary over
    NoHLV items) is left out.
    """

    of_every_score = True  # a score that is registered later adds to what this probe measures

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Predict all test items once, and score them stratum by stratum."""
        assert data.corpus is not None
        parts = []
        with torch.no_grad():
            for batch in data.evaluation_batches(data.rows("test"), classifier.device):
                parts.append([values.cpu() for values in classifier.predict(batch)])
        probs, annotator_probs, index = (
            gather_over_ranks(torch.cat(column)) for column in zip(*parts, strict=True)
        )
        order = index.argsort()
        probs, index = probs[order], index[order]
        unanimous = torch.from_numpy(data.annotator_votes.unanimous)[index]
        strata = dict(zip(STRATA, (unanimous, ~unanimous), strict=True))
        label_sets = {"": annotator_probs[order]}
        label_sets |= {
            f"{name}_": torch.from_numpy(labels.probs[index]).float()
            for name, labels in data.other_labels().items()
        }
        scores = {f"items_{stratum}": float(mask.sum()) for stratum, mask in strata.items()}
        for name, labels in label_sets.items():
            if name:
                scores |= {
                    f"{metric}_{name[:-1]}": value
                    for metric, value in every_score(probs, labels, data.ordinal).items()
                }
            for stratum, mask in strata.items():
                scores |= stratum_scores(probs, labels, mask, f"{name}{stratum}", data.ordinal)
        undefined = [name for name, value in scores.items() if math.isnan(value)]
        notes = (
            [f"StratumScores: not defined on these items and left out: {', '.join(undefined)}."]
            if undefined
            else []
        )
        notes += [
            f"StratumScores: no test item is of the stratum {name}, so it has no scores."
            for name, mask in strata.items()
            if not mask.any()
        ]
        return ProbeResult(
            {name: value for name, value in scores.items() if name not in undefined}, notes=notes
        )


def stratum_scores(
    probs: Tensor, target_probs: Tensor, mask: Tensor, stratum: str, ordinal: bool = False
) -> dict[str, float]:
    """Every score of the items under a mask, by its name with the stratum's; nothing without items.

    >>> people = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    >>> scores = stratum_scores(people, people, torch.tensor([False, True]), "hlv")
    >>> scores["kl_hlv"], round(scores["soft_nll_hlv"], 4)
    (0.0, 0.6931)
    """
    scores = every_score(probs[mask], target_probs[mask], ordinal) if mask.any() else {}
    return {f"{name}_{stratum}": value for name, value in scores.items()}
