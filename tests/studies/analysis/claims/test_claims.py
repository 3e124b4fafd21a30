"""Claims of a study's YAML: which runs they look at, what comes out, and mistakes told in one
sentence. The runs are made up.
"""

import csv
import io
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from core.errors import InputError
from studies.analysis.claims.claim_tests import Verdict
from studies.analysis.claims.claim_values import Measured
from studies.analysis.claims.claims import judge
from studies.analysis.claims.claims_listing import claims_listing, summary_line
from studies.analysis.collect import Collection, Record
from studies.analysis.comparison.comparison import Comparison, PairValue
from studies.analysis.target_error import Gains, TargetError
from studies.plan.study import Run, Study
from studies.report.section import ClaimSpec
from studies.report.section_reader import read_section
from studies.tables.listing import listing_csv, listing_html, listing_markdown, listing_tex

DELIVERIES = ["SoftLabels", "StochasticLabelSampling", "Multipass"]
HARD = DELIVERIES[1:]
VOTES, SEEDS = [5, 10, 25], [0, 1, 2, 3, 4]
FIGURE = {
    "name": "gap",
    "kind": "target_error",
    "rows": "data.delivery",
    "reference": "SoftLabels",
    "panels": "data.votes_per_item",
}
COMPARISON = {"name": "nets", "rows": "data.delivery", "where": {"data.votes_per_item": 5}}
BASE = {"id": "one", "claim": "A claim.", "paper": "Section 5"}
LESS = {
    **BASE,
    "test": "less",
    "metric": "soft_nll",
    "rows": "data.delivery",
    "where": {"data.votes_per_item": 5},
    "level": "Multipass",
    "reference": "SoftLabels",
}
FAMILY = {
    **BASE,
    "test": "family",
    "direction": "less",
    "metric": "soft_nll",
    "rows": "data.delivery",
    "levels": HARD,
    "reference": "SoftLabels",
    "columns": "data.votes_per_item",
}
WITHIN = {**BASE, "comparison": "nets", "metric": "cka", "level": "Multipass"}
Score = Callable[[str, int, int], dict[str, float]]
Worth = Callable[[dict[str, float]], dict[str, Any]]


def soft_nll(delivery: str, votes: int, seed: int) -> dict[str, float]:
    """Hard deliveries are better by little, the seed matters more."""
    return {
        "soft_nll": 0.5
        + 0.1 * seed
        + 1 / votes
        - 0.01 * (delivery != "SoftLabels") * (1 + seed / 10)
    }


def study_of(report: dict[str, Any]) -> Study:
    grid = {"data.delivery": DELIVERIES, "data.votes_per_item": VOTES, "seed_everything": SEEDS}
    return Study("claims", Path("claims.yaml"), [], {"sweep": grid}, report=report)


def half_learned(metrics: dict[str, float]) -> dict[str, Any]:
    """Scores that stand half way between a floor, 1 above them, and the ceiling."""
    metrics = {"soft_nll": 0.5, **metrics}
    return {
        name: {"floor": value + 1, "ceiling": value - 1, "low": None, "high": None, "skill": 0.5}
        for name, value in metrics.items()
    }


def collection_of(score: Score, worth: Worth = half_learned) -> Collection:
    """Every run of the grid; one for which `score` gives nothing is not finished."""
    planned, finished = [], {}
    for delivery, votes, seed in product(DELIVERIES, VOTES, SEEDS):
        factors = {"data.delivery": delivery, "data.votes_per_item": votes, "seed_everything": seed}
        run = Run(
            f"{delivery}-{votes}-{seed}",
            {"data": {"init_args": {"votes_per_item": votes}}},
            {"sweep": factors},
        )
        planned.append(run)
        if metrics := score(delivery, votes, seed):
            finished[run.name] = Record(
                run.name,
                Path(run.name),
                factors,
                metrics,
                {"simulated_annotators": False, "worth": worth(metrics)},
                run.config,
            )
    return Collection(planned, finished)


def spec_of(claim: dict[str, Any], collection: Collection) -> ClaimSpec:
    report = {"figures": [FIGURE], "comparisons": [COMPARISON], "claims": [claim]}
    return read_section(study_of(report), collection).claims[0]


def verdict(
    claim: dict[str, Any], score: Score = soft_nll, errors: Any = None, comparison: Any = None
) -> Verdict:
    collection = collection_of(score)
    measured = Measured(
        collection,
        ["seed_everything"],
        {"gap": errors or TargetError({}, "nothing there")},
        {"nets": comparison},
    )
    return judge(spec_of(claim, collection), measured).verdict


def test_less_and_greater_look_at_the_runs_that_where_leaves():
    assert verdict(LESS).outcome == "supported"
    assert verdict({**LESS, "test": "greater"}).outcome == "not supported"

    def only_at_five(delivery, votes, seed):
        return soft_nll(delivery if votes == 5 else "SoftLabels", votes, seed)

    assert verdict(LESS, only_at_five).outcome == "supported"
    at_ten = verdict({**LESS, "where": {"data.votes_per_item": [10]}}, only_at_five)
    assert (at_ten.outcome, at_ten.reason) == ("undecided", "no pair differs")


def test_pairs_are_seeds_that_both_have():
    def some(delivery, votes, seed):
        absent = (delivery, seed) in (("SoftLabels", 0), ("Multipass", 1))
        return {} if absent else soft_nll(delivery, votes, seed)

    assert verdict(LESS, some).numbers["n"] == 3


def test_values_that_are_not_finite_are_left_out():
    def broken(delivery, votes, seed):
        return {
            "soft_nll": math.nan
            if seed == 4 and delivery == "Multipass"
            else soft_nll(delivery, votes, seed)["soft_nll"]
        }

    assert verdict(LESS, broken).numbers["n"] == 4


@pytest.mark.parametrize(
    ("claim", "score", "reason"),
    [
        (
            LESS,
            lambda d, v, s: soft_nll(d, v, s) if d != "Multipass" else {},
            "no run of Multipass is finished",
        ),
        (
            LESS,
            lambda d, v, s: soft_nll(d, v, s) if d != "SoftLabels" else {},
            "no run of SoftLabels is finished",
        ),
        (
            {**LESS, "metric": "hessian_max"},
            soft_nll,
            "no finished run of Multipass has a finite hessian_max",
        ),
        (
            LESS,
            lambda d, v, s: soft_nll(d, v, s) if (s < 2) == (d == "Multipass") else {},
            "no seed has a value of both Multipass",
        ),
        (
            FAMILY,
            lambda d, v, s: soft_nll(d, v, s) if v != 25 else {},
            "2 of 6 cells have no values: no run of StochasticLabel",
        ),
        (
            {
                **BASE,
                "test": "above",
                "bound": 0,
                "figure": "gap",
                "level": "Multipass",
                "where": {"data.votes_per_item": 5},
            },
            soft_nll,
            "nothing there",
        ),
    ],
)
def test_a_claim_without_its_runs_or_metrics_is_not_tested_and_says_why(claim, score, reason):
    result = verdict(claim, score)
    assert (result.outcome, result.statistic, result.numbers) == ("not tested", "", {})
    assert reason in result.reason


def far_control(delivery: str, votes: int, seed: int) -> dict[str, float]:
    """SLS is nothing like the others."""
    far = delivery == "StochasticLabelSampling"
    return {"soft_nll": soft_nll(delivery, votes, seed)["soft_nll"] + far}


def test_equal_with_either_kind_of_margin():
    claim = {**LESS, "test": "equal", "control": "StochasticLabelSampling"}
    for margin, outcome in ((0.05, "supported"), ("10 %", "supported"), ("0.1 %", "not supported")):
        assert verdict({**claim, "margin": margin}, far_control).outcome == outcome


def test_a_family_is_all_levels_columns_and_metrics():
    result = verdict(FAMILY)
    assert result.outcome == "supported"
    assert (
        result.numbers["cells"],
        result.numbers["cells_in_favour"],
        result.numbers["cells_unanimous"],
    ) == (6, 6, 6)
    two = verdict(
        {**FAMILY, "metric": ["soft_nll", "kl"]},
        lambda d, v, s: {**soft_nll(d, v, s), "kl": -soft_nll(d, v, s)["soft_nll"]},
    )
    assert (two.outcome, two.numbers["cells"], two.numbers["cells_in_favour"]) == (
        "mixed",
        12,
        6,
    )
    one = verdict(
        {key: value for key, value in FAMILY.items() if key != "columns"}
        | {"where": {"data.votes_per_item": 10}}
    )
    assert (one.outcome, one.numbers["cells"]) == ("supported", 2)


def test_a_family_may_be_against_a_number():
    claim = {key: value for key, value in FAMILY.items() if key != "reference"}
    assert verdict({**claim, "bound": 2.0}).outcome == "supported"
    assert verdict({**claim, "bound": 0.1}).outcome == "not supported"


def test_monotone_over_levels_in_the_order_given():
    claim = {
        **BASE,
        "test": "monotone",
        "metric": "soft_nll",
        "rows": "data.votes_per_item",
        "where": {"data.delivery": "Multipass"},
    }
    falling = verdict({**claim, "levels": [5, 10, 25], "direction": "falling"})
    assert falling.outcome == "supported"
    assert "Page's trend test" in falling.statistic
    assert (
        verdict({**claim, "levels": [25, 10, 5], "direction": "falling"}).outcome == "not supported"
    )
    assert verdict({**claim, "levels": [25, 5, 10], "direction": "falling"}).outcome == "undecided"


def test_above_and_below():
    claim = {**LESS, "bound": 0.5}
    del claim["reference"]
    assert verdict({**claim, "test": "above"}).outcome == "supported"
    assert verdict({**claim, "test": "below"}).outcome == "not supported"
    assert verdict({**claim, "test": "above", "bound": 0.88}).outcome == "undecided"


def correlated(sign: float) -> TargetError:
    """Gains that rise or fall with the distance, a little less strictly in each further seed."""
    distance = np.arange(20.0)

    def gain(seed: int) -> np.ndarray:
        values = sign * distance
        values[: seed + 2] = values[: seed + 2][::-1]
        return values

    seeds = {(seed,): Gains(distance, gain(seed)) for seed in SEEDS}
    return TargetError(
        {(delivery, votes): seeds for delivery in HARD for votes in VOTES}, "", 45, 45
    )


def test_correlations_of_a_target_error_figure():
    claim = {
        **BASE,
        "test": "above",
        "bound": 0,
        "figure": "gap",
        "level": "Multipass",
        "where": {"data.votes_per_item": 5},
    }
    result = verdict(claim, errors=correlated(1))
    assert result.outcome == "supported"
    # two neighbours swapped
    assert result.numbers["highest"] == pytest.approx(1 - 6 * 2 / (20 * (20**2 - 1)))
    assert verdict(claim, errors=correlated(-1)).outcome == "not supported"
    family = {
        **BASE,
        "test": "family",
        "direction": "greater",
        "figure": "gap",
        "levels": HARD,
        "bound": 0,
    }
    assert verdict(family, errors=correlated(1)).numbers["cells"] == 6
    assert (
        verdict(
            {**family, "where": {"data.votes_per_item": [5, 10]}}, errors=correlated(1)
        ).numbers["cells"]
        == 4
    )


def networks(
    of_pair: Callable[[str, int, int], float], barrier: float = 2.0, seeds: int = 5
) -> Comparison:
    values = [
        PairValue(measure, (method, method), (i, j), of_pair(method, i, j), 100)
        for measure in ("cka", "grad_cam")
        for method in DELIVERIES
        for i in range(seeds)
        for j in range(i + 1, seeds)
    ]
    values += [
        PairValue("barrier", ("SoftLabels", "Multipass"), (seed, seed), barrier + seed / 10, 100)
        for seed in range(seeds)
    ]
    return Comparison(
        "Digits", True, "LeNet", None, "data.delivery", DELIVERIES, 100, 0.9, values, [], []
    )


def test_similarities_within_methods_are_tested_over_seeds_and_not_over_pairs():
    def of_pair(method: str, i: int, j: int) -> float:
        return 0.5 + (i + j) / 100 + 0.1 * (method == "Multipass") * (1 + i + j)

    claim = {**WITHIN, "test": "greater", "reference": "SoftLabels"}
    result = verdict(claim, comparison=networks(of_pair))
    assert result.outcome == "supported"
    assert result.numbers["n"] == 5  # not the 10 pairs
    assert result.numbers["estimate"] == pytest.approx(
        np.mean([0.1 * (1 + i + j) for i in range(5) for j in range(i + 1, 5)])
    )
    assert result.statistic.startswith("seeds' jackknife values")
    assert (
        verdict({**claim, "test": "less"}, comparison=networks(of_pair)).outcome == "not supported"
    )
    assert (
        verdict(
            {**WITHIN, "test": "above", "bound": 0.1, "metric": "grad_cam"},
            comparison=networks(of_pair),
        ).outcome
        == "supported"
    )
    few = verdict(claim, comparison=networks(of_pair, seeds=2))
    assert few.outcome == "not tested"
    assert "at least 3 seeds" in few.reason


def test_pairs_that_one_odd_seed_decides_do_not_look_certain():
    """One seed makes four of ten pairs differ: Wilcoxon over pairs would be far below 5 %, but
    there is only one seed's worth of evidence.
    """

    def of_pair(method: str, i: int, j: int) -> float:
        return 0.5 + (method == "Multipass") * (
            0.2 * (i == 0) + (i - 2) * 0.001 + (j - 2.2) * 0.001
        )

    differences = [
        of_pair("Multipass", i, j) - of_pair("SoftLabels", i, j)
        for i in SEEDS
        for j in range(i + 1, 5)
    ]
    assert stats.wilcoxon(differences, alternative="greater")[1] < 0.02
    result = verdict(
        {**WITHIN, "test": "greater", "reference": "SoftLabels"}, comparison=networks(of_pair)
    )
    assert result.outcome == "undecided"


def test_barriers_are_between_two_methods_of_a_seed():
    claim = {
        **BASE,
        "test": "above",
        "bound": 1,
        "comparison": "nets",
        "metric": "barrier",
        "between": ["Multipass", "SoftLabels"],
    }
    result = verdict(claim, comparison=networks(lambda *_: 0.5))
    assert (result.outcome, result.numbers["lowest"], result.numbers["n"]) == ("supported", 2.0, 5)
    assert (
        verdict({**claim, "bound": 9}, comparison=networks(lambda *_: 0.5)).outcome
        == "not supported"
    )
    absent = verdict(
        {**claim, "metric": "barrier_reestimated"}, comparison=networks(lambda *_: 0.5)
    )
    assert "no barrier_reestimated between both" in absent.reason
    assert (
        verdict(claim, comparison="no method has two finished runs").reason
        == "no method has two finished runs"
    )


def test_the_table_of_claims_in_all_formats():
    collection = collection_of(far_control)
    report = {
        "claims": [
            {**LESS, "id": "better", "claim": "Multipass | is <better>."},
            {**LESS, "id": "worse", "test": "greater"},
            {
                **LESS,
                "id": "exact",
                "test": "equal",
                "margin": 0.0119,
                "control": "StochasticLabelSampling",
                "published": "basins.loss_barrier",
            },
            {**LESS, "id": "flat", "metric": "hessian_max"},
        ]
    }
    measured = Measured(collection, ["seed_everything"], {}, {})
    judged = [judge(claim, measured) for claim in read_section(study_of(report), collection).claims]
    assert [result.verdict.outcome for result in judged] == [
        "supported",
        "not supported",
        "undecided",
        "not tested",
    ]
    assert (
        summary_line(judged)
        == "Of 4 claims: 1 supported, 1 not supported, 1 undecided at this power, 1 not tested."
    )
    listing = claims_listing(judged, ["REDUCED scale: tiny."])
    lines = list(csv.DictReader(io.StringIO(listing_csv(listing))))
    assert [line["id"] for line in lines] == ["better", "worse", "exact", "flat"]
    assert float(lines[0]["p"]) == judged[0].verdict.numbers["p"]
    assert lines[3]["p"] == ""
    assert "arXiv:2605.20642v1" in lines[2]["published"]
    markdown, page, tex = listing_markdown(listing), listing_html(listing), listing_tex(listing)
    assert r"Multipass \| is &lt;better>." in markdown
    assert "Multipass | is &lt;better&gt;." in page
    for text in (markdown, tex):
        assert "REDUCED scale: tiny." in text
        assert "1 supported, 1 not supported" in text
    assert "mean 2.05" in markdown
    assert tex.count(r"\\") == 5
    assert r"hessian\_max" in tex


def without(claim: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in claim.items() if key not in keys}


@pytest.mark.parametrize(
    ("claim", "key", "allowed"),
    [
        (without(LESS, "paper"), "report.claims[0].paper", "missing"),
        ({**LESS, "test": "best"}, "report.claims[0].test", "monotone"),
        (without(LESS, "reference"), "report.claims[0].reference", "missing"),
        ({**LESS, "colour": "red"}, "report.claims[0].colour", "allowed are"),
        ({**LESS, "margin": 1}, "report.claims[0].margin", "does not belong"),
        ({**LESS, "level": "Mixup"}, "report.claims[0].level", "SoftLabels"),
        ({**LESS, "level": "SoftLabels"}, "report.claims[0]", "with itself"),
        ({**LESS, "metric": "soft_nl"}, "report.claims[0].metric", "soft_nll"),
        ({**LESS, "metric": ["soft_nll"]}, "report.claims[0].metric", "a metric"),
        ({**LESS, "rows": "data.drop"}, "report.claims[0].rows", "data.delivery"),
        ({**LESS, "grid": "main"}, "report.claims[0].grid", "sweep"),
        (without(LESS, "where"), "report.claims[0]", "average over data.votes_per_item"),
        (
            {**LESS, "where": {"data.votes_per_item": []}},
            "report.claims[0].where.data.votes_per_item",
            "at least one level",
        ),
        ({**LESS, "test": "equal", "control": "Mixup"}, "report.claims[0].control", "Multipass"),
        ({**LESS, "test": "equal", "control": "Multipass"}, "report.claims[0]", "with itself"),
        ({**LESS, "test": "equal", "metric": "ece"}, "report.claims[0].margin", "no floor"),
        ({**LESS, "control": "Multipass"}, "report.claims[0].control", "does not belong"),
        ({**LESS, "test": "equal", "margin": "much"}, "report.claims[0].margin", "number"),
        ({**LESS, "test": "equal", "margin": -1}, "report.claims[0].margin", "at least 0"),
        (
            {**without(LESS, "reference"), "test": "above", "bound": "high"},
            "report.claims[0].bound",
            "number",
        ),
        (
            {**LESS, "published": "basins.nothing"},
            "report.claims[0].published",
            "basins.cka_within",
        ),
        ({**FAMILY, "direction": "rising"}, "report.claims[0].direction", "less, greater"),
        ({**FAMILY, "bound": 0}, "report.claims[0]", "not both"),
        (without(FAMILY, "reference"), "report.claims[0]", "reference or a bound"),
        ({**FAMILY, "levels": "Multipass"}, "report.claims[0].levels", "a list"),
        (
            {**FAMILY, "test": "monotone", "direction": "rising"},
            "report.claims[0].columns",
            "does not belong",
        ),
        (
            {**without(FAMILY, "reference", "columns"), "test": "monotone", "direction": "rising"},
            "report.claims[0].levels",
            "at least 3 levels",
        ),
        (
            {**BASE, "test": "less", "figure": "gap", "level": "Multipass"},
            "report.claims[0].test",
            "above, below, family",
        ),
        (
            {**BASE, "test": "above", "bound": 0, "figure": "gab", "level": "Multipass"},
            "report.claims[0].figure",
            "gap",
        ),
        (
            {**BASE, "test": "above", "bound": 0, "figure": "gap", "level": "SoftLabels"},
            "report.claims[0].level",
            "other than",
        ),
        (
            {**BASE, "test": "above", "bound": 0, "figure": "gap", "level": "Multipass"},
            "report.claims[0]",
            "fix its level",
        ),
        (
            {**WITHIN, "test": "monotone", "direction": "rising", "levels": HARD},
            "report.claims[0].test",
            "equal",
        ),
        (
            {**WITHIN, "test": "above", "bound": 0, "comparison": "net"},
            "report.claims[0].comparison",
            "nets",
        ),
        (
            {**WITHIN, "test": "greater", "reference": "SoftLabels", "metric": "barrier"},
            "report.claims[0].metric",
            "cka",
        ),
        (
            {**WITHIN, "test": "above", "bound": 0, "metric": "barrier"},
            "report.claims[0].between",
            "missing",
        ),
        (
            {
                **without(WITHIN, "level"),
                "test": "above",
                "bound": 0,
                "metric": "barrier",
                "between": ["Multipass", "Multipass"],
            },
            "report.claims[0].between",
            "two different",
        ),
        ("all is well", "report.claims[0]", "must have entries"),
    ],
)
def test_a_mistake_in_a_claim_names_file_key_and_choices(claim, key, allowed):
    with pytest.raises(InputError) as error:
        spec_of(claim, collection_of(soft_nll))
    assert str(error.value).startswith(f"claims.yaml: {key} ")
    assert allowed in str(error.value)
    assert str(error.value).count("\n") == 0


def test_every_claim_has_an_id_of_its_own():
    with pytest.raises(InputError, match=r"report\.claims uses the name one twice"):
        read_section(study_of({"claims": [LESS, LESS]}), collection_of(soft_nll))
