"""What came out of a study's claims, as a table and in words."""

import math
from collections import Counter

from studies.analysis.claims.claims import Judged
from studies.tables.listing import Listing

NUMBERS = (
    *("estimate", "low", "high", "p", "minimum_p", "n", "margin", "bound", "lowest", "highest"),
    *("cells", "cells_in_favour", "cells_unanimous", "cells_holm", "least_p_holm"),
    *("kinds", "kinds_supported", "skill", "items", "votes_per_item"),
    *("seeds_needed", "items_needed", "votes_needed"),
)
RULES = (
    "Every claim is tested on the runs of this study, at 5 %: undecided means that these seeds, "
    "items and votes show neither the claim nor its opposite, and not that it is false; no "
    "correction is made for the number of claims. No skill: the reference has less than 5 % of "
    "what can be learned. No power: things were found equal, or nothing was found, where a control "
    "would not have been found different. A claim of several kinds of cells is reported by kind, "
    "and mixed where these differ; a kind is supported where the means of all its cells favour it "
    "and the test over all of them together finds it. What it would take to see a difference is "
    "for 80 % power, each number alone with the others as they are."
)
WORDS = {  # of each outcome: in a count, and before the claims' names
    "supported": ("supported", "Shown by these runs"),
    "not supported": ("not supported", "Contradicted by these runs"),
    "undecided": ("undecided at this power", "Undecided at this power"),
    "not tested": ("not tested", "Not testable on these runs"),
    "mixed": ("mixed", "Mixed, by kind of cell"),
    "no skill": ("without skill", "No skill in the reference"),
    "no power": ("without power", "No power to tell a control apart"),
}
ALWAYS = ("supported", "not supported", "undecided", "not tested")  # also where there are none


def summary_line(judged: list[Judged]) -> str:
    """
    >>> summary_line([])
    'Of 0 claims: 0 supported, 0 not supported, 0 undecided at this power, 0 not tested.'
    """
    counts = Counter(result.verdict.outcome for result in judged)
    listed = ", ".join(
        f"{counts[outcome]} {words}"
        for outcome, (words, _) in WORDS.items()
        if counts[outcome] or outcome in ALWAYS
    )
    return f"Of {len(judged)} claim{'s' * (len(judged) != 1)}: {listed}."


def outcomes_in_words(judged: list[Judged]) -> list[str]:
    """Which claims came out how, a sentence for each outcome, by their ids; nothing in it is typed
    in.
    """
    result = {
        words: [j.claim.id for j in judged if j.verdict.outcome == outcome]
        for outcome, (_, words) in WORDS.items()
    }
    return [f"{words}: {', '.join(ids)}." for words, ids in result.items() if ids]


def claims_listing(judged: list[Judged], notices: list[str]) -> Listing:
    """One row per claim: what was claimed, where, what came out and on what grounds."""
    rows = []
    for result in judged:
        claim, verdict = result.claim, result.verdict
        grounds = verdict.statistic + (
            f"{'; ' * bool(verdict.statistic)}{verdict.reason}" if verdict.reason else ""
        )
        rows.append(
            {
                "id": claim.id,
                "claim": claim.claim,
                "paper": claim.paper,
                "outcome": verdict.outcome,
                "grounds": grounds
                + (f"\npublished: {claim.published_values}" if claim.published else ""),
                "test": claim.test,
                "statistic": verdict.statistic,
                "reason": verdict.reason,
                "published": claim.published_values,
                **{name: verdict.numbers.get(name, math.nan) for name in NUMBERS},
            }
        )
    shown = {
        "id": "id",
        "claim": "claim",
        "paper": "in the paper",
        "outcome": "outcome",
        "grounds": "grounds",
    }
    messages = [summary_line(judged), *outcomes_in_words(judged), *notices, RULES]
    return Listing("claims", "Claims", messages, shown, rows, hidden=("grounds",))
