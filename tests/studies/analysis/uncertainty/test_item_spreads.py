"""What scores owe to items and votes: parts of groups, and runs whose predictions say it or not."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from callbacks.prediction_table import write_predictions
from callbacks.stratum_scores import stratum_scores
from datamodules.votes import VoteTable
from metrics import every_score, registered
from studies.analysis.collect import Record
from studies.analysis.uncertainty.estimate import estimate
from studies.analysis.uncertainty.item_parts import item_parts, vote_parts, votes_drawn_anew
from studies.analysis.uncertainty.item_spreads import ALONE, ItemSpreads
from studies.analysis.uncertainty.spread import COARSE, Spread, coarser, group_of

ITEMS, VOTES = 600, 7


def tables(number: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictions, true distributions and counts of votes."""
    rng = np.random.default_rng(number)
    truth = rng.dirichlet([0.6, 0.8, 1.0], ITEMS)
    probs = 0.7 * truth + 0.3 * rng.dirichlet([1, 1, 1], ITEMS)
    return probs, truth, rng.multinomial(VOTES, truth)


def test_leaving_groups_out_of_a_mean_gives_the_parts_of_the_mean():
    probs, _, counts = tables()
    index = np.arange(ITEMS) + 1000
    brier = registered()["soft_brier"]
    whole = replace(
        brier, function=lambda p, q: brier.function(p, q).mean(), per_item=False, batched=False
    )
    parts = item_parts(brier, probs, counts / VOTES, index)
    assert parts.sum() == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(
        item_parts(whole, probs, counts / VOTES, index), coarser(parts[None], COARSE)[0], atol=1e-12
    )


def test_groups_are_those_of_the_numbers_and_of_about_equal_size():
    groups = group_of(np.arange(100_000), COARSE)
    sizes = np.bincount(groups, minlength=COARSE)
    assert len(sizes) == COARSE
    assert sizes.min() / sizes.max() > 0.9
    assert group_of(np.array([77_777]), COARSE) == groups[77_777]


def test_the_variance_of_items_is_that_of_a_mean():
    probs, _, counts = tables()
    score = registered()["soft_nll"]
    parts = item_parts(score, probs, counts / VOTES, np.arange(ITEMS))
    values = score.items(torch.from_numpy(probs), torch.from_numpy(counts / VOTES)).numpy()
    found = estimate([1.0, 2.0], Spread(np.stack([parts, parts]), None, ITEMS, VOTES))
    assert found.shared == pytest.approx(values.var(ddof=1) / ITEMS, rel=0.2)


def test_the_variance_of_votes_is_the_multinomial_one():
    """Of soft NLL, which is linear in votes: of each item that of -log p of one vote, over votes.
    The share of the items' own variance is what is left.
    """
    probs, truth, counts = tables()
    score, losses = registered()["soft_nll"], -np.log(probs)
    votes = votes_drawn_anew(counts)
    parts = vote_parts(score, probs, votes, np.arange(ITEMS))
    one = (truth * losses**2).sum(1) - (truth * losses).sum(1) ** 2
    expected = (one / VOTES).sum() / ITEMS**2
    assert (parts**2).sum() == pytest.approx(expected, rel=0.25)


def record_of(folder: Path, number: int = 0) -> Record:
    probs, _, counts = (torch.from_numpy(np.asarray(t, dtype=np.float64)) for t in tables(number))
    people = counts / VOTES
    write_predictions(
        folder, probs.float(), people.float(), torch.arange(ITEMS), {"test": np.arange(ITEMS)}
    )
    scores = every_score(probs, people) | stratum_scores(
        probs, people, people.max(1).values < 1, "hlv"
    )
    config = {"data": {"class_path": "datamodules.Digits", "init_args": {"seed": number}}}
    return Record(f"run-{number}", folder, {}, scores, {}, config)


class Data:
    """Stands in for the data of runs."""

    def __init__(self, counts: np.ndarray | None):
        probs, _, _ = tables()
        self.annotator_votes = (
            VoteTable.from_probs(probs) if counts is None else VoteTable(counts=counts)
        )

    def of(self, config):
        return self


def spreads(counts: np.ndarray | None = None) -> ItemSpreads:
    return ItemSpreads(Data(counts))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("metric", ["kl", "accuracy", "entropy_spearman", "ece", "soft_nll_hlv"])
def test_a_run_says_what_its_scores_owe_to_items_and_votes(tmp_path, metric):
    records = [record_of(tmp_path)] * 2
    found = spreads(tables()[2]).of_scores(records, metric)
    assert isinstance(found, Spread)
    hlv = metric.endswith("_hlv")
    assert (found.votes is None) == hlv  # votes decide of which stratum an item is
    assert math.isnan(found.votes_per_item) == hlv
    assert found.number == ITEMS if not hlv else found.number < ITEMS
    same = spreads(tables()[2]).of_differences(records, records, metric)
    assert isinstance(same, Spread)
    assert not same.items.any()
    without_counts = spreads().of_scores(records, metric)
    assert isinstance(without_counts, Spread)
    assert without_counts.votes is None


def test_why_it_is_not_known_is_said_in_words(tmp_path):
    record, items = record_of(tmp_path), spreads(tables()[2])
    assert items.of_scores([record], "hessian_max") == "hessian_max is no score of test items"
    bare = replace(record, run="bare", folder=tmp_path / "nothing")
    assert items.of_differences([record], [bare], "kl") == ALONE
    stale = replace(record, run="stale", metrics={"kl": 9.0})
    assert "other predictions than gave its kl" in str(items.of_scores([stale], "kl"))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "predictions.parquet").write_bytes(b"no table")
    broken = replace(record, run="broken", folder=tmp_path / "broken")
    assert "cannot be read" in str(items.of_scores([broken], "kl"))
