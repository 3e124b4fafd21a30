"""The published files of digits in one form, and refusals of files that are not what they should
be.
"""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from core.errors import InputError
from corpora.sources import (
    AMBIGUOUS,
    ARDIS,
    ambiguous_source,
    ardis_source,
    mnist_source,
    read_source,
    source_digests,
)


def write_ambiguous(root: Path, images: torch.Tensor, labels: torch.Tensor) -> Path:
    """In the form of the published files: fractions [N, 1, 28, 28] and so many drawn labels of each
    image.
    """
    for file, tensor in zip(AMBIGUOUS, (images, labels), strict=True):
        (root / file.path).parent.mkdir(parents=True, exist_ok=True)
        torch.save(tensor, root / file.path)
    return root


def write_ardis(root: Path, images: np.ndarray, digits: np.ndarray, test_items: int = 2) -> Path:
    """In the form of the published tables, numbers with blanks between them."""
    (root / "ardis").mkdir(parents=True, exist_ok=True)
    for part, rows in (("train", slice(None, -test_items)), ("test", slice(-test_items, None))):
        np.savetxt(root / ARDIS[part][0], images.reshape(len(images), -1)[rows], fmt="%d")
        np.savetxt(root / ARDIS[part][1], np.eye(10)[digits[rows]], fmt="%.1f")
    return root


def test_mnist_is_both_parts_one_after_the_other(small_mnist: Path):
    result = mnist_source(str(small_mnist))
    assert result.images.shape == (1000, 28, 28)
    assert result.part.tolist() == ["train"] * 900 + ["test"] * 100
    assert result.digits[:12].tolist() == [*range(10), 0, 1]
    assert (result.labels.sum(1) == 1).all()


def test_shares_of_the_ten_drawn_labels_are_the_distribution(tmp_path: Path):
    images = torch.rand(6_003, 1, 28, 28)
    labels = torch.zeros(6_003, 10, dtype=torch.int64)
    labels[1] = torch.tensor([4] * 7 + [9] * 3)
    result = ambiguous_source(str(write_ambiguous(tmp_path, images, labels)))
    assert result.name == "mukhoti"
    assert result.labels[0, 0] == 1
    np.testing.assert_allclose(result.labels[1, [4, 9]], [0.7, 0.3])
    np.testing.assert_array_equal(result.images, np.rint(images[:, 0].double().numpy() * 255))
    assert result.part[5_999] == "train"
    assert result.part[6_000:].tolist() == ["test"] * 3


class Payload:
    def __reduce__(self):
        return (Path.touch, (Path("ran"),))


def test_a_file_that_would_run_code_is_refused_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write_ambiguous(tmp_path, torch.rand(3, 1, 28, 28), torch.zeros(3, 10, dtype=torch.int64))
    for write in (
        lambda path: torch.save(Payload(), path),
        lambda path: path.write_bytes(pickle.dumps(Payload())),
    ):
        write(tmp_path / AMBIGUOUS[1].path)
        with pytest.raises(InputError) as mistake:
            ambiguous_source(str(tmp_path))
        expected = (
            f"{tmp_path}/AmbiguousMNIST/amnist_labels.pt is no file of plain tensors, or "
            "was cut short; nothing in it was loaded."
        )
        assert str(mistake.value) == expected
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (
            torch.rand(3, 28, 28),
            torch.zeros(3, 10).long(),
            r"amnist_samples.pt holds torch.float32 \[3, 28, 28\]; it must hold grey images",
        ),
        (
            torch.rand(3, 1, 28, 28),
            torch.zeros(2, 10).long(),
            r"amnist_labels.pt holds torch.int64 \[2, 10\]; it must hold whole labels of each of 3",
        ),
        (torch.rand(3, 1, 28, 28), torch.zeros(3, 10), "amnist_labels.pt holds torch.float32"),
        (
            torch.rand(3, 1, 28, 28) - 2,
            torch.zeros(3, 10).long(),
            "amnist_samples.pt has grey values outside 0 to 1 in rows 0, 1, 2; it must be",
        ),
        (
            torch.rand(3, 1, 28, 28),
            torch.full((3, 10), 10),
            "amnist_labels.pt has labels that are no digit in rows 0, 1, 2; they must be from 0 "
            "to 9",
        ),
    ],
)
def test_other_tensors_than_published(
    tmp_path: Path, images: torch.Tensor, labels: torch.Tensor, message: str
):
    with pytest.raises(InputError, match=message):
        ambiguous_source(str(write_ambiguous(tmp_path, images, labels)))


def test_a_dictionary_is_no_tensor(tmp_path: Path):
    write_ambiguous(tmp_path, torch.rand(3, 1, 28, 28), torch.zeros(3, 10).long())
    torch.save({"labels": torch.zeros(3, 10)}, tmp_path / AMBIGUOUS[1].path)
    with pytest.raises(InputError, match=r"amnist_labels.pt holds a dict; it must hold one tensor"):
        ambiguous_source(str(tmp_path))


def test_ardis_by_its_tables(tmp_path: Path):
    images, digits = (
        np.random.default_rng(0).integers(256, size=(7, 28, 28)),
        np.array([3, 1, 4, 1, 5, 9, 2]),
    )
    result = read_source("ardis", str(write_ardis(tmp_path, images, digits)))
    np.testing.assert_array_equal(result.images, images)
    assert result.digits.tolist() == digits.tolist()
    assert result.part.tolist() == ["train"] * 5 + ["test"] * 2
    before = source_digests("ardis", str(tmp_path))
    write_ardis(tmp_path, 255 - images, digits)
    assert source_digests("ardis", str(tmp_path)) != before


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (0, "a b c\n", "ARDIS_train_2828.csv is no table of numbers that blanks separate"),
        (0, "1 2 3\n" * 5, "ARDIS_train_2828.csv has rows of 3 numbers; each must have 784"),
        (
            0,
            ("256 " * 784 + "\n") * 5,
            "ARDIS_train_2828.csv has other values than grey ones in rows 0, 1, 2 and 2 more",
        ),
        (
            1,
            "1 1 0 0 0 0 0 0 0 0\n" * 5,
            "ARDIS_train_labels.csv has labels that are no single digit in rows 0, 1, 2 and 2 more",
        ),
        (
            1,
            "1 0 0 0 0 0 0 0 0 0\n",
            "ARDIS_train_2828.csv has 5 rows, but .*ARDIS_train_labels.csv has 1; they must be "
            "the same items",
        ),
    ],
)
def test_a_bad_table_of_ardis(tmp_path: Path, file: int, content: str, message: str):
    write_ardis(tmp_path, np.zeros((7, 28, 28), int), np.zeros(7, int))
    (tmp_path / ARDIS["train"][file]).write_text(content)
    with pytest.raises(InputError, match=message):
        ardis_source(str(tmp_path))


def test_ardis_that_is_absent(tmp_path: Path):
    with pytest.raises(
        InputError,
        match=r"ARDIS_train_2828.csv is absent; put the files of ARDIS's dataset IV there by "
        r"hand, or leave ardis out",
    ):
        source_digests("ardis", str(tmp_path))
