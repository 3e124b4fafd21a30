"""Options that all datasets share: fewer training items, validation by few votes, and images that
are augmented or of another side.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from cli import main
from core.errors import InputError
from datamodules import CIFAR10H, CIFAR10HFrozen, Digits, FashionMNISTH, VoteTable
from datamodules.corpus import ENTROPY_BINS, Corpus
from datamodules.preparation import CropFlip, Moments
from datamodules.votes.splitting import stratified_order
from experiment.configuration import resolve
from experiment.identity import run_name
from studies.launch.pack_job import run_pack
from studies.launch.pack_members import build_members
from studies.plan.study import Run
from tests.datamodules.embedders.small_embedder import SmallEmbedder
from tests.datamodules.test_vote_datamodule import SPLITS, VOTES, Small
from tests.quiet import QUIET

DIGITS = ["--config", str(Path(__file__).parents[2] / "configs/digits.yaml")]


def small(**options) -> Small:
    data = Small(**options)
    data.setup()
    return data


def digits(**options) -> Digits:
    data = Digits(**options)
    data.setup()
    return data


# fewer training items


def test_fewer_items_are_a_function_of_seed_and_table_and_the_fewer_are_among_the_more():
    whole, fewer = digits(seed=3), digits(seed=3, train_items=50)
    assert all(np.array_equal(fewer.rows(part), whole.rows(part)) for part in ("val", "test"))
    rows = {50: fewer.rows("train"), 700: digits(seed=3, train_items=700).rows("train")}
    assert [len(chosen) for chosen in rows.values()] == [50, 700]
    assert set(rows[50]) < set(rows[700]) < set(whole.rows("train"))
    assert np.array_equal(rows[700], digits(seed=3, train_items=700).rows("train"))
    assert not np.array_equal(rows[700], digits(seed=4, train_items=700).rows("train"))
    every = digits(seed=3, train_items=len(whole.rows("train")))
    assert np.array_equal(every.rows("train"), whole.rows("train"))


def test_every_beginning_of_the_order_holds_its_share_of_every_stratum():
    rng = np.random.default_rng(1)
    for _ in range(20):
        strata = rng.choice(12, size=600, p=rng.dirichlet(np.ones(12)))
        order = stratified_order(strata, seed=int(rng.integers(100)))
        assert sorted(order) == list(range(600))
        for items in (30, 150, 599):
            share = np.bincount(strata, minlength=12) * items / 600
            assert np.abs(np.bincount(strata[order[:items]], minlength=12) - share).max() < 2


def test_every_item_has_the_same_chance():
    """By chi-square over many seeds, with strata so small that most give no item or one."""
    strata, items, seeds = np.repeat(np.arange(8), [1, 2, 3, 4, 5, 6, 9, 10]), 10, 2000
    times = np.zeros(40)
    for seed in range(seeds):
        times[stratified_order(strata, seed)[:items]] += 1
    expected = seeds * items / 40
    # of independent draws it would be larger: shares of strata are nearly fixed
    assert ((times - expected) ** 2 / expected).sum() < chi2.ppf(0.999, 40)


def test_entropy_is_stratified_too():
    counts = np.repeat([[20, 0], [15, 5], [11, 9]], [600, 300, 100], axis=0)
    corpus = Corpus(torch.zeros(1000, 1), VoteTable(counts), {"train": np.arange(1000)})
    rows = corpus.trained_on(100, seed=0).splits["train"]
    levels = np.unique(corpus.votes.strata(ENTROPY_BINS)[rows], return_counts=True)[1]
    assert np.abs(levels - [60, 30, 10]).max() <= 1


def test_delivery_and_batches_are_of_the_chosen_items_alone():
    data = small(train_items=7, seed=1, batch_size=3)
    rows = data.rows("train")
    seen = torch.cat([index for _, index in data.train_dataloader()])
    assert sorted(seen.tolist()) == sorted(rows.tolist())
    assert len(seen) == 7
    targets = data.bound.targets(0)
    assert torch.equal(targets, torch.from_numpy(VOTES.take(rows).float_probs()))
    assert data.training_row[torch.from_numpy(rows)].tolist() == list(range(7))


def test_features_are_standardised_by_the_chosen_items(small_cifar: Path):
    places: dict[str, Any] = {"root": str(small_cifar), "cache": str(small_cifar / "embeddings")}
    data = CIFAR10HFrozen(SmallEmbedder(), train_items=20, **places)
    data.setup()
    raw = CIFAR10HFrozen(SmallEmbedder(), standardize=False, **places)
    raw.setup()
    assert data.corpus
    assert raw.corpus
    seen = raw.corpus.inputs[torch.from_numpy(data.rows("train"))]  # pyright: ignore
    assert len(seen) == 20
    torch.testing.assert_close(data.corpus.inputs, Moments.of(seen)(raw.corpus.inputs))  # pyright: ignore


@pytest.mark.parametrize(
    ("items", "message"),
    [(0, "data.train_items is 0; it must be 1 or more"), (26, "there are only 25 training items")],
)
def test_a_number_of_items_that_there_are_not(items: int, message: str):
    with pytest.raises(InputError, match=message):
        small(train_items=items)


# validation by few votes


def batch_targets(data: Small, stage: str, index: torch.Tensor) -> torch.Tensor:
    stages = ("training", "validating", "sanity_checking", "testing", "predicting")
    trainer = SimpleNamespace(**{name: name == stage for name in stages}, current_epoch=0)
    data.trainer = trainer  # pyright: ignore[reportAttributeAccessIssue]
    return data.on_after_batch_transfer((torch.zeros(len(index), 2), index), 0).targets


def test_validation_sees_few_votes_and_tests_see_all():
    data, index = small(votes_per_item=3, sparse_validation=True, seed=5), torch.arange(3)
    full = torch.from_numpy(VOTES.float_probs())[:3]
    for stage in ("validating", "sanity_checking"):
        few = batch_targets(data, stage, index)
        torch.testing.assert_close((3 * few).round(), 3 * few, atol=1e-6, rtol=0)
        torch.testing.assert_close(few.sum(1), torch.ones(3))
        assert not torch.equal(few, full)
    for stage in ("testing", "predicting"):
        assert torch.equal(batch_targets(data, stage, index), full)
    again = small(votes_per_item=3, sparse_validation=True, seed=5)
    assert torch.equal(batch_targets(again, "validating", index), few)
    other = small(votes_per_item=3, sparse_validation=True, seed=6)
    assert not torch.equal(batch_targets(other, "validating", torch.arange(30)), few)


def test_without_the_option_or_without_sparse_votes_validation_sees_all_votes():
    full = torch.from_numpy(VOTES.float_probs())[:3]
    for options in ({"votes_per_item": 3}, {"sparse_validation": True}, {}):
        assert torch.equal(batch_targets(small(**options), "validating", torch.arange(3)), full)


def test_training_items_keep_their_draws():
    """Those of earlier versions, written out: a run that goes on must see the same votes."""
    expected = VOTES.take(SPLITS["train"]).subsample(4, seed=5).float_probs()
    for sparse in (False, True):
        data = small(votes_per_item=4, sparse_validation=sparse, seed=5)
        assert torch.equal(data.bound.targets(0), torch.from_numpy(expected))
    evaluation = small(seed=5).evaluation_votes(4).take(SPLITS["train"]).float_probs()
    assert not np.array_equal(evaluation, expected)


def test_draws_of_evaluation_items_are_unbiased():
    data = small()
    drawn = [Small(seed=seed) for seed in range(300)]
    for each in drawn:
        each.use(data.load())
    mean = np.mean([each.evaluation_votes(5).probs for each in drawn], axis=0)
    spread = np.sqrt(VOTES.probs * (1 - VOTES.probs) / (5 * 300))
    assert (np.abs(mean - VOTES.probs) <= 4.5 * spread + 1e-12).all()


# both, in runs: alone, in packs, and continued

RUN = [
    *DIGITS,
    *QUIET,
    *("--data.train_items", "300", "--data.sparse_validation", "true"),
    *("--trainer.max_epochs", "2", "--trainer.callbacks+=EpochScores"),
]


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_packed_as_alone(tmp_path: Path):
    """Members of other numbers of votes have validations of their own, by which the best epoch is
    chosen, alone and in packs.
    """
    configs = [resolve([*RUN, "--data.votes_per_item", votes]) for votes in ("5", "1")]
    runs = [Run(run_name(config), config, {}) for config in configs]
    assert run_pack(runs, tmp_path / "pack", tmp_path / "state.pt", False, lambda share: None) == {}
    options = [*RUN, "--data.votes_per_item", "1", "--trainer.default_root_dir", str(tmp_path)]
    for command in ("fit", "test"):
        main([command, *options])
    alone, packed = tmp_path / runs[1].name, tmp_path / "pack" / runs[1].name
    results, others = (read(folder, "results.json")["metrics"] for folder in (alone, packed))
    assert others == pytest.approx(results, abs=1e-4)
    history = read(alone, "history.json")
    for epoch, other in zip(history, read(packed, "history.json"), strict=True):
        shared = [name for name in epoch if name.startswith(("val/", "test/"))]
        assert {name: other[name] for name in shared} == pytest.approx(
            {name: epoch[name] for name in shared}, abs=1e-4
        )
    assert results["val_loss"] == pytest.approx(min(epoch["val/soft_nll"] for epoch in history))
    # one vote is a distribution without entropy, so its soft NLL and KL are one number
    assert history[0]["val/kl"] == pytest.approx(history[0]["val/soft_nll"], abs=1e-6)
    assert history[0]["test/kl"] < history[0]["test/soft_nll"] - 0.01
    members, _ = build_members(runs, tmp_path)
    assert len({id(member.data) for member in members}) == 2


def test_members_that_are_validated_by_all_votes_share_their_data_still(tmp_path: Path):
    options = [*DIGITS, *QUIET, "--data.train_items", "300"]
    configs = [resolve([*options, "--data.votes_per_item", votes]) for votes in ("2", "5")]
    runs = [Run(run_name(config), config, {}) for config in configs]
    members, _ = build_members(runs, tmp_path)
    assert len({id(member.data) for member in members}) == 1


# images


def test_images_of_another_side(small_cifar: Path, small_fashion: Path):
    for kind, root in ((CIFAR10H, small_cifar), (FashionMNISTH, small_fashion)):
        own = kind(root=str(root))
        data = kind(root=str(root), image_side=16)
        for each in (own, data):
            each.setup()
        assert data.corpus
        assert own.corpus
        channels = own.input_shape[0]
        assert data.input_shape == (channels, 16, 16)
        assert kind.input_shape != data.input_shape
        stored = data.corpus.inputs
        assert stored.shape == (60, channels, 16, 16)  # pyright: ignore
        assert stored.dtype == torch.uint8  # pyright: ignore
        # brightness stays
        means = [each.corpus.inputs.double().mean((1, 2, 3)) for each in (own, data)]  # pyright: ignore
        torch.testing.assert_close(*means, atol=2.5, rtol=0)
        assert torch.equal(data.original([0, 1]), own.original([0, 1]))  # pyright: ignore
    with pytest.raises(InputError, match=r"data.image_side is 4; it must be from 8 to 256"):
        CIFAR10H(image_side=4)


def test_augmentation_is_an_option_and_shifts_by_an_eighth(small_cifar: Path):
    def prepare(**options):
        data = CIFAR10H(root=str(small_cifar), **options)
        data.setup()
        return data.train_dataloader().prepare  # pyright: ignore[reportAttributeAccessIssue]

    assert not isinstance(prepare(augment=False), CropFlip)
    for side, shifts in ((None, 9), (16, 5)):
        crops = prepare(image_side=side)
        assert isinstance(crops, CropFlip)
        assert crops._crops.shape[3:5] == (shifts, shifts)
    index = torch.arange(20)
    assert not torch.equal(prepare()(index, 0), prepare()(index, 1))
    assert torch.equal(prepare(augment=False)(index, 0), prepare(augment=False)(index, 1))


def test_no_existing_run_changes_its_name(small_cifar: Path):
    """Options at their defaults are no part of a name, and options with other values are."""
    config = ["--config", str(Path(__file__).parents[2] / "configs/cifar10h.yaml")]
    plain = run_name(resolve(config))
    same = [
        *("--data.train_items", "null", "--data.sparse_validation", "false"),
        *("--data.augment", "true", "--data.image_side", "null"),
    ]
    assert run_name(resolve([*config, *same])) == plain
    for option, value in (
        ("train_items", "100"),
        ("sparse_validation", "true"),
        ("augment", "false"),
        ("image_side", "16"),
    ):
        assert run_name(resolve([*config, f"--data.{option}", value])) != plain
