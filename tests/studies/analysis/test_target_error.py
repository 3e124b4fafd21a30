"""Gains by the error of sparse targets: a hand-made dataset where the answer is known, checked with
numpy and scipy.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.stats import spearmanr

from callbacks.prediction_table import write_predictions
from core.errors import InputError
from datamodules import MajorityVote, VoteDataModule
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable
from studies.analysis import target_error
from studies.analysis.collect import Record
from studies.analysis.target_error import (
    Gains,
    bin_edges,
    distances,
    gain_by_bin,
    item_distances,
    target_errors,
)
from studies.figures.kinds.target_error import (
    TargetErrorFigure,
    draw_target_error,
    target_error_caption,
    target_error_listings,
)
from studies.report.section import ABSENT, Section

ITEMS, VOTES = 90, 4
SPEC = TargetErrorFigure(
    "gap",
    "Gain by error",
    rows="delivery",
    levels={"delivery": ["SoftLabels", "Near", "Far"], "votes": [VOTES]},
    reference="SoftLabels",
    bins=3,
)


class Opinions(VoteDataModule):
    """A third of the items is unanimous, the others are split 7 to 3 or 3 to 7; the training rows
    are in no order.
    """

    num_classes = 2
    input_shape = (1,)

    def load(self) -> Corpus:
        counts = np.array([[10, 0], [7, 3], [3, 7]])[np.arange(ITEMS) % 3]
        rows = np.random.default_rng([9, self.seed]).permutation(ITEMS)
        return Corpus(
            torch.zeros(ITEMS, 1),
            VoteTable(counts),
            {"train": rows[:60], "val": rows[60:75], "test": rows[75:]},
        )


def data_of(seed: int, votes: int | None = VOTES) -> Opinions:
    data = Opinions(votes_per_item=votes, seed=seed)
    data.setup()
    return data


def sparse_and_full(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Independently of the datamodule's delivery."""
    corpus = data_of(seed).load()
    votes = corpus.votes.take(corpus.splits["train"])
    return votes.subsample(VOTES, seed).probs, votes.probs


def expected_distance(seed: int, kind: str = "js") -> np.ndarray:
    sparse, full = sparse_and_full(seed)
    return jensenshannon(sparse, full, axis=1) if kind == "js" else np.abs(sparse - full).sum(1)


def finish(folder: Path, delivery: str, seed: int) -> Record:
    """A run whose predictions are even for soft labels, and which otherwise come the closer to
    annotators the larger the error is, or the smaller.
    """
    data = data_of(seed)
    share = torch.zeros(ITEMS, dtype=torch.float64)
    error = torch.from_numpy(np.nan_to_num(expected_distance(seed)))
    share[torch.from_numpy(data.rows("train"))] = {
        "SoftLabels": 0 * error,
        "Near": error,
        "Far": 0.9 - error,
    }[delivery]
    probs = 0.5 + share[:, None] * (data.annotator_probs.double() - 0.5)
    own = folder / f"{delivery}-{seed}"
    write_predictions(own, probs, data.annotator_probs, torch.arange(ITEMS), data.corpus.splits)  # pyright: ignore
    config = {
        "seed": seed,
        "data": {
            "class_path": f"{__name__}.Opinions",
            "init_args": {"seed": seed, "votes_per_item": VOTES},
        },
    }
    return Record(
        own.name, own, {"delivery": delivery, "votes": VOTES, "seed": seed}, {}, {}, config
    )


@pytest.fixture
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    monkeypatch.setattr(target_error, "build_data", lambda config: data_of(config["seed"]))
    return [
        finish(tmp_path, delivery, seed)
        for delivery in SPEC.levels["delivery"]
        for seed in (0, 1, 2)
    ]


@pytest.mark.parametrize("kind", ["js", "l1"])
def test_the_distance_is_of_the_very_targets_that_soft_labels_trained_on(records, kind):
    result = target_errors(replace(SPEC, distance=kind), records, ["seed"])
    for seed in (0, 1, 2):
        data = data_of(seed)
        trained_on = data.bound.targets(0).numpy()
        sparse, full = sparse_and_full(seed)
        np.testing.assert_allclose(trained_on, sparse, atol=1e-7)
        np.testing.assert_allclose(
            full, data.annotator_probs[torch.from_numpy(data.rows("train"))], atol=1e-7
        )
        gains = result.cells["Near", ABSENT][seed,]
        np.testing.assert_allclose(
            gains.distance, np.nan_to_num(expected_distance(seed, kind)), atol=1e-6
        )


def test_gains_are_of_the_same_item_whatever_the_order_of_rows(records):
    result = target_errors(SPEC, records, ["seed"])
    for seed in (0, 1, 2):
        _, full = sparse_and_full(seed)
        share = np.nan_to_num(expected_distance(seed))[:, None]
        for method, closer in (("Near", share), ("Far", 0.9 - share)):
            nll = -(full * np.log(0.5 + closer * (full - 0.5))).sum(1)
            np.testing.assert_allclose(
                result.cells[method, ABSENT][seed,].gain, np.log(2) - nll, atol=1e-6
            )


def test_correlations_have_the_sign_and_size_of_scipys(records):
    result = target_errors(SPEC, records, ["seed"])
    for method, sign in (("Near", 1), ("Far", -1)):
        for unit, rho in result.spearman(method).items():
            gains = result.cells[method, ABSENT][unit]
            assert rho == pytest.approx(spearmanr(gains.distance, gains.gain)[0])
            assert sign * rho > 0.5
    split = target_errors(replace(SPEC, items="high", quantile=0.5), records, ["seed"])
    assert {len(gains.gain) for seeds in split.cells.values() for gains in seeds.values()} == {
        int((sparse_and_full(seed)[1].max(1) < 1).sum()) for seed in (0, 1, 2)
    }
    # items of one entropy: the gain depends on the error alone
    assert list(split.spearman("Near").values()) == pytest.approx([1, 1, 1])
    assert list(split.spearman("Far").values()) == pytest.approx([-1, -1, -1])


def test_bins_hold_every_item_and_their_means_are_those_of_numpy(records):
    result = target_errors(SPEC, records, ["seed"])
    bins = result.bins(ABSENT, 3)["Near"]
    assert bins[0].low == bins[0].high == bins[0].distance == 0
    assert sum(b.items for b in bins) == 3 * 60
    pooled = [result.cells["Near", ABSENT][seed,] for seed in (0, 1, 2)]
    for b in bins:
        inside = [
            (g.distance > b.low) & (g.distance <= b.high) if b.high else g.distance < 1e-6
            for g in pooled
        ]
        means = [g.gain[chosen].mean() for g, chosen in zip(pooled, inside, strict=True)]
        assert b.gain == pytest.approx(np.mean(means))
        assert b.gain_low <= b.gain <= b.gain_high
        assert b.distance == pytest.approx(
            np.concatenate(
                [g.distance[chosen] for g, chosen in zip(pooled, inside, strict=True)]
            ).mean()
        )
        assert b.seeds == 3


def test_bins_of_equal_mass_and_no_bin_that_some_seed_lacks():
    distance = np.concatenate([np.zeros(50), np.linspace(0.1, 1, 100)])
    edges = bin_edges(distance, 4)
    assert np.bincount(np.searchsorted(edges, distance)).tolist() == [50, 25, 25, 25, 25]
    assert bin_edges(np.zeros(5), 4).tolist() == [0]
    assert bin_edges(np.array([0.5, 0.5, 0.5]), 4).tolist() == [0, 0.5]  # ties make fewer bins
    one, two = Gains(distance, distance), Gains(distance[50:], distance[50:])
    assert [b.low for b in gain_by_bin([one, two], edges)] == pytest.approx(edges[:-1].tolist())
    assert len(gain_by_bin([one], edges)) == 5
    assert np.isnan(gain_by_bin([one], edges)[1].gain_low)  # one seed has no interval


def test_distances_are_those_of_scipy():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), 30), rng.dirichlet(np.full(4, 0.2), 30)
    np.testing.assert_allclose(
        distances(torch.from_numpy(p), torch.from_numpy(q), "js"),
        jensenshannon(p, q, axis=1),
        atol=1e-12,
    )
    np.testing.assert_allclose(
        distances(torch.from_numpy(p), torch.from_numpy(q), "l1"), np.abs(p - q).sum(1), atol=1e-12
    )


def test_figure_caption_and_tables_say_the_same(records):
    result, section = (
        target_errors(SPEC, records, ["seed"]),
        Section([], [], labels={"Near": "near by"}),
    )
    figure = draw_target_error(SPEC, result, section)
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    bins = result.bins(ABSENT, 3)
    assert np.asarray(lines["near by"].get_ydata()) == pytest.approx([b.gain for b in bins["Near"]])
    assert np.asarray(lines["Far"].get_xdata()) == pytest.approx([b.distance for b in bins["Far"]])
    assert "square root of the divergence" in axes.get_xlabel()
    assert "(nats)" in axes.get_ylabel()
    caption = " ".join(target_error_caption(SPEC, result, section))
    values = list(result.spearman("Near").values())
    assert f"near by {np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})" in caption
    assert "60 training items" in caption
    correlations, points = target_error_listings(SPEC, result, section, [])
    assert [row["delivery"] for row in correlations.rows] == ["near by", "Far"]
    assert correlations.rows[0]["mean"] == pytest.approx(np.mean(values))
    assert [row["gain"] for row in points.rows if row["delivery"] == "Far"] == [
        b.gain for b in bins["Far"]
    ]


def test_what_is_absent_is_said(records, tmp_path):
    assert target_errors(SPEC, [], ["seed"]).note == "none of its runs is finished"
    only_hard = [record for record in records if record.factors["delivery"] != "SoftLabels"]
    assert (
        "no seed has predictions of both SoftLabels"
        in target_errors(SPEC, only_hard, ["seed"]).note
    )
    some = [record for record in records if record.run != "SoftLabels-1"]
    result = target_errors(SPEC, some, ["seed"])
    assert set(result.cells["Near", ABSENT]) == {(0,), (2,)}
    for record in records:
        (record.folder / "predictions.parquet").unlink()
    assert "predictions.parquet" in target_errors(SPEC, records, ["seed"]).note


def test_predictions_of_another_split_are_refused(records, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(target_error, "build_data", lambda config: data_of(config["seed"] + 1))
    with pytest.raises(InputError, match="not of the training items"):
        target_error.training_nll(records[0].folder, data_of(1))
    assert "not of the training items" in target_errors(SPEC, records, ["seed"]).note


def test_the_sparse_target_is_the_distribution_of_the_few_votes_whatever_the_run_delivers():
    data = Opinions(delivery=MajorityVote(), seed=1)
    data.setup()
    result, chosen = item_distances(data, VOTES, "js", None)
    np.testing.assert_allclose(result, np.nan_to_num(expected_distance(1)), atol=1e-6)
    assert chosen.all()
