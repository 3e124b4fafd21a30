"""CIFAR-10N: three votes train and validate, all of CIFAR-10H tests; its file of labels holds
arrays or is refused.
"""

import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from core.errors import InputError
from datamodules import CIFAR10H, CIFAR10N, CIFAR10HFrozen, CIFAR10NFrozen
from datamodules.datasets.cifar10h import RECORD
from datamodules.datasets.cifar10n import VOTES, read_human_labels
from tests.conftest import trust_cifar10n, write_human_labels
from tests.datamodules.embedders.small_embedder import SmallEmbedder

LABELS = {name: np.arange(20) % 10 for name in ("clean_label", *VOTES)}


def set_up(data: Any) -> Any:
    data.prepare_data()
    data.setup()
    return data


def test_three_votes_train_and_validate_and_all_of_cifar10h_tests(small_cifar10n: Path):
    data = set_up(CIFAR10N(root=str(small_cifar10n), val_fraction=0.2, seed=4))
    assert data.corpus
    counts = data.corpus.votes.counts
    assert counts is not None
    assert [len(data.rows(part)) for part in ("train", "val", "test")] == [48, 12, 60]
    assert sorted([*data.rows("train"), *data.rows("val")]) == list(range(60))
    assert data.rows("test").tolist() == list(range(60, 120))
    assert (counts[:60].sum(1) == 3).all()
    judged = CIFAR10H(root=str(small_cifar10n))
    images, votes = judged.read()
    assert np.array_equal(counts[60:], votes.counts)  # pyright: ignore[reportArgumentType]
    assert torch.equal(data.corpus.inputs[60:], images)  # pyright: ignore
    # the second batch holds images 12 to 23
    raw = (small_cifar10n / CIFAR10N.IMAGES[1].path).read_bytes()
    image = np.frombuffer(raw[RECORD + 1 : 2 * RECORD], np.uint8).reshape(3, 32, 32)
    assert np.array_equal(data.corpus.inputs[13], image)  # pyright: ignore


def test_votes_are_those_of_the_three_people(tmp_path: Path):
    rng = np.random.default_rng(0)
    content = {name: rng.integers(10, size=30) for name in ("clean_label", *VOTES)}
    labels, counts = read_human_labels(write_human_labels(tmp_path / "x.pt", content), 10)
    assert np.array_equal(labels, content["clean_label"])
    one_hot = sum(np.eye(10, dtype=int)[content[name]] for name in VOTES)
    assert np.array_equal(counts, one_hot)


def test_images_in_another_order_are_refused(small_cifar10n: Path, monkeypatch: pytest.MonkeyPatch):
    labels = {name: np.arange(60) % 10 for name in ("clean_label", *VOTES)}
    labels["clean_label"][[3, 4]] = labels["clean_label"][[4, 3]]
    write_human_labels(small_cifar10n / CIFAR10N.LABELS.path, labels)
    trust_cifar10n(monkeypatch, small_cifar10n)
    with pytest.raises(InputError, match=r"clean_label of .*CIFAR-10_human.pt is not what CIFAR"):
        CIFAR10N(root=str(small_cifar10n)).setup()


class Touch:
    """Unpickled by a careless reader, it makes a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_code_in_the_file_of_labels_is_never_run(tmp_path: Path):
    mark, path = tmp_path / "mark", tmp_path / "x.pt"
    write_human_labels(path, {**LABELS, "extra": Touch(mark)})
    with zipfile.ZipFile(path) as archive:
        pickle.loads(archive.read("archive/data.pkl"))  # it would run
    assert mark.exists()
    mark.unlink()
    with pytest.raises(InputError, match=r"x.pt is no file of plain arrays"):
        read_human_labels(path, 10)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "must hold clean_label, random_label1"),
        ({**LABELS, "random_label2": np.arange(3)}, "must hold clean_label"),
        ({**LABELS, "random_label2": "x"}, "must hold clean_label"),
        ({**LABELS, "random_label2": np.zeros((20, 1), int)}, "must hold clean_label"),
        ({name: np.empty(0, int) for name in LABELS}, "is no file of plain arrays"),
        ({name: LABELS[name] for name in VOTES}, "must hold clean_label"),
        ({**LABELS, "random_label3": np.full(20, 10)}, "no class in rows 0, 1, 2 and 17 more"),
        ({**LABELS, "random_label3": -np.eye(20, dtype=int)[4]}, "no class in row 4"),
    ],
)
def test_other_content_is_refused_by_name(content: object, message: str, tmp_path: Path):
    path = write_human_labels(tmp_path / "x.pt", content)
    with pytest.raises(InputError, match=message) as error:
        read_human_labels(path, 10)
    assert str(path) in str(error.value)


def test_embeddings_of_cifar10h_are_made_once_for_both_datasets(small_cifar10n: Path):
    places: dict[str, Any] = {
        "root": str(small_cifar10n),
        "cache": str(small_cifar10n / "embeddings"),
    }
    images = set_up(CIFAR10N(root=str(small_cifar10n), seed=2))
    data = set_up(CIFAR10NFrozen(SmallEmbedder(), standardize=False, seed=2, **places))
    assert data.corpus
    assert torch.equal(data.corpus.inputs, SmallEmbedder().embed(images.corpus.inputs))
    assert all(
        np.array_equal(data.rows(part), images.rows(part)) for part in ("train", "val", "test")
    )
    folders = set((small_cifar10n / "embeddings").iterdir())
    assert len(folders) == 2
    set_up(CIFAR10HFrozen(SmallEmbedder(), **places))
    assert set((small_cifar10n / "embeddings").iterdir()) == folders


def test_the_published_labels(real_data: Path):
    labels, counts = read_human_labels(real_data / CIFAR10N.LABELS.path, 10)
    assert counts.shape == (50_000, 10)
    assert (counts.sum(1) == 3).all()
    assert (counts.max(1) == 3).mean() == pytest.approx(0.604, abs=5e-4)
    # the mean of the published rates of noise, 17.23 %, 18.12 % and 17.64 %
    wrong = 1 - counts[np.arange(50_000), labels].mean() / 3
    assert wrong == pytest.approx((0.1723 + 0.1812 + 0.1764) / 3, abs=1e-4)


def test_high_disagreement_is_told_among_items_with_as_many_votes(small_cifar10n: Path):
    data = set_up(CIFAR10N(root=str(small_cifar10n)))
    own = CIFAR10H(root=str(small_cifar10n)).read()[1].high_disagreement(0.8)
    assert np.array_equal(data.high_disagreement_rows("test", 0.8), 60 + np.flatnonzero(own))
    assert set(data.high_disagreement_rows("val", 0.5)) <= set(data.rows("val"))
