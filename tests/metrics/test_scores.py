"""The torchmetrics classes: equal to their functional twins however items come, also over processes
with uneven shards.
"""

import re

import pytest
import torch

import metrics
from metrics import functional
from tests import processes
from tests.metrics.score_shard import SHARDS, pair, shard


def in_batches(table: torch.Tensor, sizes: list[int]) -> tuple[torch.Tensor, ...]:
    return table.split([*sizes, len(table) - sum(sizes)])


def every_value(probs: torch.Tensor, targets: torch.Tensor) -> dict[str, torch.Tensor]:
    """What `every_metric` should say, from the functions alone; of scores that somebody added, from
    their entries.
    """
    parts = functional.brier_decomposition(probs, targets)
    added = {name: score.value(probs, targets) for name, score in metrics.registered().items()}
    return added | {
        "soft_nll": functional.soft_nll(probs, targets),
        "hard_nll": torch.nn.functional.nll_loss(
            probs.double().clamp_min(1e-300).log(), targets.argmax(-1)
        ),
        "kl": functional.kl_divergence(probs, targets),
        "soft_brier": functional.soft_brier(probs, targets),
        "accuracy": functional.hard_accuracy(probs, targets),
        "entropy_spearman": functional.entropy_correlation(probs, targets, "spearman"),
        "entropy_pearson": functional.entropy_correlation(probs, targets, "pearson"),
        "ece": functional.equal_mass_ece(probs, targets),
        "ece_annotators": functional.equal_mass_ece(probs, targets, against="annotators"),
        "smooth_ece": functional.smooth_ece(probs, targets),
        "smooth_ece_annotators": functional.smooth_ece(probs, targets, against="annotators"),
        "brier_reliability": parts.reliability,
        "brier_resolution": parts.resolution,
        "brier_uncertainty": parts.uncertainty,
    }


def assert_same(values: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert values.keys() == expected.keys()
    for name, value in values.items():
        same = pytest.approx(expected[name].item(), abs=1e-12, nan_ok=True)
        assert value.item() == same, name


TWINS = [
    (metrics.SoftNLL(), functional.soft_nll),
    (metrics.KLDivergence(), functional.kl_divergence),
    (metrics.SoftBrier(), functional.soft_brier),
    (metrics.HardAccuracy(), functional.hard_accuracy),
    (metrics.EntropyCorrelation(), lambda p, t: functional.entropy_correlation(p, t, "spearman")),
    (
        metrics.EntropyCorrelation("pearson"),
        lambda p, t: functional.entropy_correlation(p, t, "pearson"),
    ),
    (metrics.EqualMassECE(bins=4), lambda p, t: functional.equal_mass_ece(p, t, bins=4)),
    (
        metrics.EqualMassECE(bins=6, against="annotators"),
        lambda p, t: functional.equal_mass_ece(p, t, bins=6, against="annotators"),
    ),
    (metrics.SmoothECE(), functional.smooth_ece),
    (
        metrics.SmoothECE(against="annotators"),
        lambda p, t: functional.smooth_ece(p, t, against="annotators"),
    ),
    (
        metrics.BrierDecomposition(bins=4),
        lambda p, t: functional.brier_decomposition(p, t, bins=4)._asdict(),
    ),
]


@pytest.mark.parametrize(("metric", "twin"), TWINS, ids=lambda value: type(value).__name__)
def test_each_class_equals_its_functional_twin_over_ragged_batches(metric, twin):
    probs, targets = pair(40, seed=0)
    earlier = pair(9, seed=1)
    metric.reset()
    metric.update(*earlier)
    metric.compute()
    metric.reset()
    for batch in zip(in_batches(probs, [1, 16, 5]), in_batches(targets, [1, 16, 5]), strict=True):
        metric.update(*batch)
    value, expected = metric.compute(), twin(probs, targets)
    if isinstance(expected, dict):
        assert_same(value, {f"brier_{name}": part for name, part in expected.items()})
    else:
        assert_same({"": value}, {"": expected})
        assert value.item() != pytest.approx(twin(*earlier).item(), abs=1e-6)


def test_every_metric_equals_the_functions_and_carries_the_prefix():
    probs, targets = pair(40, seed=2)
    collection = metrics.every_metric("test/")
    for batch in zip(in_batches(probs, [7, 16]), in_batches(targets, [7, 16]), strict=True):
        collection.update(*batch)
    assert_same(
        collection.compute(),
        {f"test/{name}": value for name, value in every_value(probs, targets).items()},
    )


def test_mean_metrics_are_the_cheap_part_of_every_metric():
    probs, targets = pair(40, seed=3)
    collection = metrics.mean_metrics("val/")
    collection.update(probs, targets)
    expected = every_value(probs, targets)
    assert_same(
        collection.compute(),
        {
            f"val/{name}": expected[name]
            for name, score in metrics.registered().items()
            if score.every_epoch
        },
    )
    usual = {f"val/{name}" for name in ("soft_nll", "hard_nll", "kl", "soft_brier", "accuracy")}
    assert usual <= collection.compute().keys()


UNANIMOUS = torch.eye(3, dtype=torch.float64)


@pytest.mark.parametrize(
    "collection",
    [metrics.mean_metrics(""), metrics.every_metric("")],
    ids=["mean_metrics", "every_metric"],
)
@pytest.mark.parametrize(
    "first", [(pair(3, seed=4)[0], UNANIMOUS), (UNANIMOUS, UNANIMOUS)], ids=["unanimous", "perfect"]
)
def test_scores_that_agree_on_the_first_batch_may_differ_later(collection, first):
    collection.reset()
    probs, targets = pair(20, seed=5)
    collection.update(*first)
    collection.update(probs, targets)
    expected = every_value(torch.cat([first[0], probs]), torch.cat([first[1], targets]))
    values = collection.compute()
    assert_same(values, {name: expected[name] for name in values})


def test_all_items_are_kept_in_order_and_in_their_own_type():
    probs, targets = (table.float() for table in pair(11, seed=6))
    kept = metrics.AllItems()
    for batch in zip(in_batches(probs, [4, 1]), in_batches(targets, [4, 1]), strict=True):
        kept.update(*batch)
    assert all(
        torch.equal(table, given)
        for table, given in zip(kept.compute(), (probs, targets), strict=True)
    )


def test_items_that_are_kept_hold_no_graph():
    probs, targets = pair(4, seed=7)
    kept = metrics.AllItems()
    kept.update(probs.clone().requires_grad_(), targets)
    assert not kept.compute()[0].requires_grad


# Two processes


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """What each of two processes found."""
    folder = tmp_path_factory.mktemp("two")
    both = [processes.Process([rank, folder], "tests/metrics/score_shard.py") for rank in SHARDS]
    for process in both:
        message, error = process.communicate()
        assert process.returncode == 0, message + error
    return [torch.load(folder / f"rank{rank}.pt") for rank in SHARDS]


def test_what_one_rank_was_given_wrongly_is_told_on_all(two_processes: list[dict]):
    one, other = (result["refused"] for result in two_processes)
    assert one == other
    assert len(one) == 10
    assert all(
        re.match(
            r"target_probs does not sum to 1( in rows [^:]+)?: row sums are 1 to \d\d;", sentence
        )
        for sentence in one
    )
    # means know no rows of other ranks, but say the same of them
    assert one[:2] == one[2:4] == one[6:8]


def test_a_validation_that_diverged_on_one_rank_is_nan_on_all(two_processes: list[dict]):
    for result in two_processes:
        assert all(value.isnan() for value in result["diverged"].values())


def test_two_processes_with_uneven_shards_give_the_value_of_one(two_processes: list[dict]):
    started, ended = (
        [
            torch.cat(tables)
            for tables in zip(
                *(batch for rank in SHARDS for batch in shard(rank)[:batches]), strict=True
            )
        ]
        for batches in (1, None)
    )
    assert (len(started[0]), len(ended[0])) == (4, 11)
    for result in two_processes:
        assert_same(result["in the middle"], every_value(*started))
        assert_same(result["at the end"], every_value(*ended))
        assert sorted(result["items"].tolist()) == sorted(torch.cat(ended, 1).tolist())
