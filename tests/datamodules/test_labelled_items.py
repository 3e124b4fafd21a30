"""What predictions are judged by is what a run would be tested by."""

import csv
from pathlib import Path

import numpy as np
import pytest

from datamodules import CIFAR10H, POPQUORN, ChaosNLI, CIFAR10HFrozen, Digits, VoteDataModule
from datamodules.labelled_items import labelled_items


@pytest.mark.parametrize("seed", [0, 3])
def test_votes_and_splits_are_those_of_a_run(seed: int):
    run = Digits(seed=seed)
    run.setup()
    assert run.corpus is not None
    items = labelled_items(Digits(seed=seed))
    np.testing.assert_array_equal(items.votes.counts, run.corpus.votes.counts)
    np.testing.assert_array_equal(items.unanimous, run.corpus.votes.unanimous)
    for split in ("train", "val", "test"):
        np.testing.assert_array_equal(items.splits[split], run.rows(split))
    assert items.class_names == tuple("0123456789")
    assert items.id_texts()[:2].to_pylist() == ["0", "1"]


def test_frozen_items_are_judged_without_embeddings(real_data: Path, tmp_path: Path):
    frozen = CIFAR10HFrozen(root=str(real_data), cache=str(tmp_path / "none"))
    items, same = labelled_items(frozen), labelled_items(CIFAR10H(root=str(real_data)))
    np.testing.assert_array_equal(items.splits["test"], same.splits["test"])
    np.testing.assert_array_equal(items.votes.counts, same.votes.counts)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("kind", [ChaosNLI, POPQUORN])
def test_published_ids_are_each_item_s_own(kind: type[VoteDataModule], real_data: Path):
    items = labelled_items(kind(root=str(real_data)))  # pyright: ignore[reportCallIssue]
    assert items.ids is not None
    assert len(items.ids) == len(items.votes) == len(items.ids.unique())


def test_ids_of_popquorn_are_no_row_numbers(real_data: Path):
    """They are numbers as well, in another order."""
    data = POPQUORN(root=str(real_data))
    with open(real_data / POPQUORN.FILE.path, newline="", encoding="utf-8-sig") as stream:
        text = {row["instance_id"]: row["text"] for row in csv.DictReader(stream)}
    ids = labelled_items(data).id_texts().to_pylist()
    assert [text[name] for name in ids] == data.read()[0]
    assert ids != list(map(str, range(len(ids))))
