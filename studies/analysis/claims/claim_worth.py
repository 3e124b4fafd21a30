"""Whether a comparison counts: its reference must have learned something, and a test that finds two
things equal must be able to tell a third one apart.

Both follow from the block `worth` of results.json: the floor of a score is what the best constant
gets, its skill where the score stands between that and the ceiling.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from metrics.registry import score_of
from studies.analysis.claims.claim_spec import Margin
from studies.analysis.claims.verdict import Verdict
from studies.analysis.collect import Record
from studies.tables.measures import measure

LEAST_SKILL = 0.05
SHARE = 0.10  # of what the reference is better by than its floor: nearer than that is equal
NLL_SHARE = 0.02  # of the reference's NLL, at most
STAND_IN = "soft_nll"  # whose skill counts for measures that have none of their own
OLDER = (
    "its runs were tested before scores came with floor and ceiling; `cli.py study evaluate` adds "
    "both"
)


@dataclass(frozen=True)
class Worth:
    """What a score of some runs is worth, in the mean over seeds."""

    metric: str  # that the skill is of
    skill: float
    floor: float | None  # of the metric that was asked for; None where it has none

    def in_words(self) -> str:
        """
        >>> Worth("kl", 0.0123, 0.4).in_words()
        "the reference's skill is 1.2 % (KL to annotators), below 5 %"
        """
        return (
            f"the reference's skill is {100 * self.skill:.1f} % ({measure(self.metric).name}), "
            f"below {100 * LEAST_SKILL:.0f} %"
        )


def worth_of(records: Sequence[Record], metric: str) -> Worth | str:
    """The worth of a metric of some runs, or why it is not known.

    Of calibration errors and probes there is no skill. There the one of soft NLL counts: what a
    network is like that has learned nothing shows nothing.
    """
    blocks: list[dict[str, Any]] = [record.results.get("worth") or {} for record in records]
    if not all(blocks):
        return OLDER
    floors = [block[metric].get("floor") for block in blocks if metric in block]
    known = [floor for floor in floors if floor is not None]
    floor = fmean(known) if len(known) == len(blocks) else None
    which = metric if floor is not None else STAND_IN
    entries = [block.get(which, {}) for block in blocks]
    skills = [entry.get("skill") for entry in entries]
    measured = [skill for skill in skills if skill is not None]
    if len(measured) < len(blocks):
        least = [_least_skill(*known, which) for known in zip(records, entries, strict=True)]
        measured = [skill for skill in least if skill is not None]
        # it is more than this, by how much nobody knows; no more than the floor is no skill
        if len(measured) == len(blocks) and not 0 < fmean(measured) < LEAST_SKILL:
            return Worth(which, fmean(measured), floor)
        score = measure(which).name
        return f"the skill of its reference is not known: {score} has no ceiling on these items"
    return Worth(which, fmean(measured), floor)


def _least_skill(record: Record, entry: dict[str, Any], metric: str) -> float | None:
    """What the skill of a score is at least whose ceiling is not known: no ceiling is better than
    a perfect score.
    """
    score, _ = score_of(metric)
    value, floor = record.metrics.get(metric), entry.get("floor")
    if score is None or value is None or floor is None:
        return None
    perfect = 1.0 if score.better == "higher" else 0.0
    if score.name == STAND_IN:  # the entropy of what people said
        kl = record.metrics.get(metric.replace(STAND_IN, "kl"))
        perfect = perfect if kl is None else value - kl
    return (floor - value) / (floor - perfect) if floor != perfect else None


def only_with_skill(verdict: Verdict, worth: Worth | str) -> Verdict:
    """A verdict as it counts: not where the reference has hardly any skill, and not at all where
    that is not known.
    """
    if verdict.outcome == "not tested":
        return verdict
    if isinstance(worth, str):
        return Verdict("not tested", reason=worth)
    numbers = verdict.numbers | {"skill": worth.skill}
    if worth.skill < LEAST_SKILL:
        return replace(verdict, outcome="no skill", reason=worth.in_words(), numbers=numbers)
    return replace(verdict, numbers=numbers)


def only_with_power(verdict: Verdict, control: Verdict | None, name: str) -> Verdict:
    """A verdict on equality as it counts: a control, which is known to differ, lies outside of the
    margin in the same runs; else finding two things equal says nothing. A difference that was found
    stands.
    """
    if verdict.outcome not in ("supported", "undecided"):
        return verdict
    if control is None:
        reason = "no control is named, which this test would have to tell apart"
        return replace(verdict, outcome="no power", reason=reason)
    statistic = f"{verdict.statistic}; control {name}: {control.statistic or control.reason}"
    if control.outcome == "not supported":
        return replace(verdict, statistic=statistic)
    reason = f"the control {name} is not outside of the margin either"
    return replace(verdict, outcome="no power", statistic=statistic, reason=reason)


def equality_margin(
    metric: str, reference: float, worth: Worth | str, given: Any
) -> tuple[float, str]:
    """How near is equal, and where that comes from: a tenth of what the reference is better by than
    the best constant, of an NLL at most 2 % of the reference; less where the claim says so.

    >>> equality_margin("kl", 0.3, Worth("kl", 0.25, 0.4), None)
    (0.01..., '10 % of what the reference is better by than the best constant')
    """
    known = {}
    if isinstance(worth, Worth) and worth.floor is not None:
        words = f"{100 * SHARE:.0f} % of what the reference is better by than the best constant"
        known[words] = SHARE * abs(worth.floor - reference)
        if "nll" in metric.split("_"):
            words = f"{100 * NLL_SHARE:.0f} % of the reference's mean"
            known[words] = NLL_SHARE * abs(reference)
    if given is not None:
        share = Margin.share(given)
        words = "" if share is None else f"{given} of the reference's mean"
        known[words] = float(given) if share is None else share * abs(reference)
    words = min(known, key=known.__getitem__)
    return known[words], words
