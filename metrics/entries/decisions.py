"""Scores of what a model decides: over classes, on items that people disagree on, and when one
relies on its surest predictions alone.
"""

from metrics import functional
from metrics.registry import Score, add

for _score in (
    Score(
        "macro_f1",
        functional.macro_f1,
        "Macro F1",
        "higher",
        floor="majority",
        reference="van Rijsbergen 1979, as in scikit-learn; micro F1 is the accuracy",
    ),
    Score(
        "disagreement_auroc",
        functional.disagreement_auroc,
        "AUROC of entropy for disagreement",
        "higher",
        undefined="all items are unanimous, or none is",
        floor="half",
        reference="Hanley and McNeil 1982",
    ),
    Score(
        "aurc",
        functional.aurc,
        "Area under risk-coverage",
        "lower",
        floor="majority",
        reference="Geifman, Uziel and El-Yaniv 2019",
    ),
):
    add(_score)
