"""Fashion-MNIST-H from its published formats: small files made in exactly those, and the real ones
where they are at hand.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from core.errors import InputError
from datamodules import FashionMNISTH
from datamodules.datasets.fashion_mnist_h import read_counts
from datamodules.io.idx import read_idx
from tests.conftest import trust_fashion


def fashion(root: Path, **options) -> FashionMNISTH:
    data = FashionMNISTH(root=str(root), **options)
    data.setup()
    return data


def test_reads_images_and_votes_in_the_same_order(small_fashion: Path):
    data = fashion(small_fashion)
    assert data.corpus
    images = read_idx(small_fashion / FashionMNISTH.IMAGES.path)
    assert np.array_equal(data.corpus.inputs[:, 0], images)  # pyright: ignore
    counts = np.genfromtxt(small_fashion / FashionMNISTH.COUNTS.path, int, delimiter=",")
    assert np.array_equal(data.corpus.votes.counts, counts)  # pyright: ignore
    assert data.input_shape == (1, 28, 28)
    assert len(data.rows("train")) == 48
    assert np.array_equal(data.rows("val"), data.rows("test"))
    assert not set(data.rows("train")) & set(data.rows("val"))
    shown = data.original([3, 5])
    assert np.array_equal(shown, np.repeat(images[[3, 5], None], 3, axis=1))


def test_inputs_are_normalised_by_fashion_mnists_own_moments(small_fashion: Path):
    data = fashion(small_fashion)
    stored = data.corpus.inputs  # pyright: ignore
    inputs, index = next(iter(data.val_dataloader()))
    expected = (stored[index].double() / 255 - 0.2860) / 0.3530  # pyright: ignore
    torch.testing.assert_close(inputs.double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is no table of whole numbers that commas separate"),
        ("1,2,x\n", "is no table of whole numbers"),
        ("1,2\n1,2,3\n", "is no table of whole numbers"),
        ("0.5,0.5\n", "is no table of whole numbers"),
        ("1,2\n# 3,4\n", "is no table of whole numbers"),
        ("99999999999999999999,1\n", "is no table of whole numbers"),
        ("3,-1\n", "negative"),
        ("0,0\n", "no votes at all"),
    ],
)
def test_a_wrong_table_is_refused_by_name(content: str, message: str, tmp_path: Path):
    (tmp_path / "fmh_counts.csv").write_text(content)
    with pytest.raises(InputError, match=message) as error:
        read_counts(tmp_path / "fmh_counts.csv")
    assert "fmh_counts.csv" in str(error.value)


def test_counts_of_other_images(small_fashion: Path, monkeypatch: pytest.MonkeyPatch):
    path = small_fashion / FashionMNISTH.COUNTS.path
    path.write_text("\n".join(["1,2,3,4,5,6,7,8,9,10"] * 59))
    with pytest.raises(InputError, match="is not the published file"):
        fashion(small_fashion)
    trust_fashion(monkeypatch, small_fashion)
    with pytest.raises(InputError, match=r"shape \(60, 28, 28\) but .*fmh_counts.csv has 59 rows"):
        fashion(small_fashion)


def test_the_published_data(real_data: Path):
    data = fashion(real_data)
    assert data.corpus
    votes = data.corpus.votes
    assert votes.counts is not None
    given = votes.counts.sum(1)
    assert (given.sum(), given.min(), given.max()) == (667_020, 53, 79)
    labels = read_idx(real_data / "fashion-mnist/t10k-labels-idx1-ubyte.gz")
    assert (votes.majority == labels).mean() == pytest.approx(0.8202, abs=1e-9)
    assert votes.entropy.mean() == pytest.approx(0.819, abs=5e-4)
    assert [len(data.rows(split)) for split in ("train", "test")] == [8000, 2000]
