"""Several models as one, against scipy and by hand."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from callbacks.stratum_scores import stratum_scores
from core.errors import InputError
from metrics import every_score
from studies.analysis.ensemble import Ensemble, Member, ensemble_of

ITEMS, CLASSES = 60, 4


def people(items: int = ITEMS) -> np.ndarray:
    """Shares of seven votes, of which some are unanimous."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(CLASSES, 0.3), items)
    return np.array([rng.multinomial(7, row) for row in truth]) / 7


def said(seed: int, items: int = ITEMS) -> np.ndarray:
    return np.random.default_rng([1, seed]).dirichlet(np.full(CLASSES, 0.8), items)


def whole(seeds: int = 5) -> Ensemble:
    """All members tested all items."""
    members = [Member(f"seed{s}", np.arange(ITEMS), said(s), people()) for s in range(seeds)]
    return ensemble_of(members)


def split(seeds: int = 6) -> tuple[Ensemble, list[Member]]:
    """Each member tested a third of the items, in an order of its own."""
    members = []
    for seed in range(seeds):
        chosen = np.random.default_rng([2, seed]).permutation(ITEMS)[: ITEMS // 3]
        members.append(Member(f"seed{seed}", chosen, said(seed)[chosen], people()[chosen]))
    return ensemble_of(members), members


def test_the_entropy_of_the_mean_is_expected_entropy_and_mutual_information():
    ensemble, tables = whole(), np.stack([said(seed) for seed in range(5)])
    mean = tables.mean(0)
    assert ensemble.whole
    assert ensemble.probs.numpy() == pytest.approx(mean)
    assert ensemble.entropy.numpy() == pytest.approx(stats.entropy(mean, axis=1))
    assert ensemble.expected_entropy.numpy() == pytest.approx(stats.entropy(tables, axis=2).mean(0))
    # of class and member: the mean divergence of members from what they say together
    divergence = stats.entropy(tables, np.broadcast_to(mean, tables.shape), axis=2).mean(0)
    assert ensemble.mutual_information.numpy() == pytest.approx(divergence)


@pytest.mark.parametrize("kind", ["spearman", "pearson"])
def test_entropy_and_its_parts_are_correlated_with_that_of_people(kind):
    ensemble, theirs = whole(), stats.entropy(people(), axis=1).round(12)
    correlation = stats.spearmanr if kind == "spearman" else stats.pearsonr
    found = ensemble.correlations(kind)
    assert set(found) == {"entropy", "expected_entropy", "mutual_information"}
    for part, value in found.items():
        assert value == pytest.approx(correlation(getattr(ensemble, part), theirs)[0])


def test_every_score_is_that_of_the_mean_prediction():
    ensemble = whole()
    mean = torch.from_numpy(np.mean([said(seed) for seed in range(5)], axis=0))
    target = torch.from_numpy(people())
    for metric, value in every_score(mean, target).items():
        assert ensemble.score(metric) == pytest.approx(value, nan_ok=True), metric
    hlv = stratum_scores(mean, target, (target > 0).sum(1) > 1, "hlv")
    assert ensemble.score("kl_hlv") == pytest.approx(hlv["kl_hlv"])
    nohlv = stratum_scores(mean, target, (target > 0).sum(1) == 1, "nohlv")
    assert ensemble.score("soft_nll_nohlv") == pytest.approx(nohlv["soft_nll_nohlv"])
    assert math.isnan(ensemble.score("hessian_max"))


def test_alone_is_the_mean_over_members_where_all_tested_the_same():
    ensemble, target = whole(), torch.from_numpy(people())
    of_members = [every_score(torch.from_numpy(said(seed)), target) for seed in range(5)]
    for metric in ("soft_nll", "ece", "entropy_pearson", "accuracy"):
        assert ensemble.alone(metric) == pytest.approx(np.mean([m[metric] for m in of_members]))


def test_a_convex_score_is_never_worse_than_that_of_members_alone():
    for ensemble in (whole(), split()[0]):
        for metric in ("soft_nll", "kl", "soft_brier"):
            assert ensemble.score(metric) < ensemble.alone(metric)


def test_with_splits_of_their_own_an_item_is_judged_by_those_who_tested_it():
    ensemble, members = split()
    by_item: dict[int, list[np.ndarray]] = {}
    for member in members:
        for item, probs in zip(member.items, member.probs, strict=True):
            by_item.setdefault(int(item), []).append(probs)
    several = {item: rows for item, rows in sorted(by_item.items()) if len(rows) > 1}
    assert not ensemble.whole
    assert ensemble.items.tolist() == list(several)
    assert ensemble.tested.tolist() == [len(rows) for rows in several.values()]
    assert ensemble.left_out == len(by_item) - len(several) > 0
    assert ensemble.annotators.numpy() == pytest.approx(people()[list(several)])
    for place, rows in enumerate(several.values()):
        mean = np.mean(rows, axis=0)
        assert ensemble.probs[place].numpy() == pytest.approx(mean)
        expected = np.mean([stats.entropy(row) for row in rows])
        assert float(ensemble.expected_entropy[place]) == pytest.approx(expected)
    # in turns: where an item has fewer members than there are turns, it begins anew
    turns = [
        np.array([rows[turn % len(rows)] for rows in several.values()])
        for turn in range(max(map(len, several.values())))
    ]
    target = torch.from_numpy(people()[list(several)])
    alone = [every_score(torch.from_numpy(table), target)["ece"] for table in turns]
    assert ensemble.alone("ece") == pytest.approx(np.mean(alone))


def test_members_that_agree_are_the_model_that_each_of_them_is():
    members = [Member(str(k), np.arange(ITEMS), said(0), people()) for k in range(3)]
    ensemble = ensemble_of(members)
    assert float(ensemble.mutual_information.max()) < 1e-12
    assert ensemble.score("kl") == pytest.approx(ensemble.alone("kl"))


def test_constant_members_have_no_correlation_and_no_error():
    even = np.full((ITEMS, CLASSES), 1 / CLASSES)
    members = [Member(str(k), np.arange(ITEMS), even, people()) for k in range(2)]
    assert all(math.isnan(value) for value in ensemble_of(members).correlations("pearson").values())


def test_what_is_no_ensemble_is_refused_in_a_sentence():
    one = Member("a", np.arange(ITEMS), said(0), people())
    with pytest.raises(InputError, match="there are 1 models of 4 classes"):
        ensemble_of([one])
    fewer = Member("b", np.arange(ITEMS), said(1)[:, :2], people()[:, :2])
    with pytest.raises(InputError, match="2 models of 2 and 4 classes"):
        ensemble_of([one, fewer])
    apart = Member("b", np.arange(ITEMS) + ITEMS - 2, said(1), people())
    with pytest.raises(InputError, match="other votes of item 58"):
        ensemble_of([one, apart])
    others = people()
    others[7] = np.roll(others[7], 1)
    with pytest.raises(InputError, match="b has other votes of item 7 than another seed"):
        ensemble_of([one, Member("b", np.arange(ITEMS), said(1), others)])
    two = Member("b", np.arange(2), said(1)[:2], people()[:2])
    with pytest.raises(InputError, match="2 test items are shared"):
        ensemble_of([one, two])
