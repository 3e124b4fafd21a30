"""What a model decides, and when one should not rely on it: F1 over classes, whether its entropy
tells where annotators disagree, and the risk of its surest predictions. Pure functions of (probs,
target_probs) of all items, which `metrics.functional` has as well.

>>> sure, unsure = [0.9, 0.1], [0.6, 0.4]
>>> disagreement_auroc([sure, unsure], [[1.0, 0.0], [0.7, 0.3]]).item()
1.0
"""

import torch
from torch import Tensor

from metrics import per_item
from metrics.calibration import Outcome, confidence_and_outcome, mean_over_ties
from metrics.detection import auroc
from metrics.inputs import Values, distributions


def macro_f1(probs: Values, target_probs: Values) -> Tensor:
    """F1 of each class against the annotators' majority (ties: lowest class number on both sides),
    and the mean over classes.

    Classes that are no item's majority and that the model never predicts are left out, as
    scikit-learn does. (Micro F1, over all decisions at once, is the accuracy: each item has one
    class on either side.)

    >>> round(macro_f1([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [[1, 0], [0, 1], [0, 1]]).item(), 4)
    0.6667
    """
    model, annotator_probs = distributions(probs, target_probs)
    predicted, majority = (table.double().argmax(-1) for table in (model, annotator_probs))
    said, true, both = (
        torch.bincount(labels, minlength=model.shape[1]).double()
        for labels in (predicted, majority, majority[predicted == majority])
    )
    occurs = said + true > 0
    return (2 * both[occurs] / (said + true)[occurs]).mean()


def disagreement_auroc(probs: Values, target_probs: Values) -> Tensor:
    """The probability that the model's entropy is higher on an item that annotators disagree on
    than on one that is unanimous, where a tie counts half.

    No source states from where on annotators disagree; here one vote for another class is enough.
    NaN where all items are unanimous, or none is.
    """
    model, annotator_probs = distributions(probs, target_probs)
    unanimous = (annotator_probs > 0).sum(-1) == 1
    if unanimous.all() or not unanimous.any():
        return torch.tensor(torch.nan, dtype=torch.float64, device=model.device)
    entropy = per_item.entropy(model)
    return auroc(entropy[unanimous], entropy[~unanimous])


def aurc(probs: Values, target_probs: Values, against: Outcome = "majority") -> Tensor:
    """The area under the risk-coverage curve: the share of wrong predictions among the n that the
    model is surest of, as a mean over all n.

    How sure it is of an item is its top probability. Items of equal confidence count as if they
    came in any order, of which the source says nothing. Against annotators the risk is the share of
    people who chose another class than the predicted one.

    >>> aurc([[0.9, 0.1], [0.6, 0.4]], [[1, 0], [0, 1]]).item()  # no error, then one of two
    0.25
    """
    confidence, outcome = confidence_and_outcome(probs, target_probs, against)
    confidence, order = confidence.sort(descending=True, stable=True)
    loss = 1 - mean_over_ties(confidence[:, None], outcome[order][:, None])[:, 0]
    kept = torch.arange(1, len(loss) + 1, dtype=torch.float64, device=loss.device)
    return (loss.cumsum(0) / kept).mean()
