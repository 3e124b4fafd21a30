"""idx files: read as torchvision reads them, and refused by name where they are not whole."""

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from torchvision.datasets.mnist import read_sn3_pascalvincent_tensor

from core.errors import InputError
from datamodules.io.idx import read_idx

IMAGES = np.random.default_rng(0).integers(256, size=(5, 7, 6), dtype=np.uint8)


def idx_bytes(array: np.ndarray) -> bytes:
    return (
        bytes([0, 0, 8, array.ndim])
        + struct.pack(f">{array.ndim}I", *array.shape)
        + array.tobytes()
    )


@pytest.mark.parametrize("array", [IMAGES, np.arange(9, dtype=np.uint8)], ids=["images", "labels"])
def test_plain_and_compressed_files_hold_what_another_reader_finds(
    array: np.ndarray, tmp_path: Path
):
    plain, compressed = tmp_path / "some-idx-ubyte", tmp_path / "some-idx-ubyte.gz"
    plain.write_bytes(idx_bytes(array))
    compressed.write_bytes(gzip.compress(idx_bytes(array)))
    np.testing.assert_array_equal(
        read_idx(plain), read_sn3_pascalvincent_tensor(str(plain)).numpy()
    )
    np.testing.assert_array_equal(read_idx(compressed), array)
    read_idx(plain)[...] = (
        0  # an array of one's own: torch would warn of one that cannot be written to
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            idx_bytes(IMAGES)[:-1],
            "holds 209 bytes of data, but its header announces 210 (5 x 7 x 6)",
        ),
        (idx_bytes(IMAGES) + b"x", "holds 211 bytes"),
        (idx_bytes(IMAGES)[:9], "not an idx file"),
        (b"", "not an idx file"),
        (b"\x89PNG and so on", "not an idx file"),
        (b"\0\0\x0d\x01" + bytes(8), "not an idx file of bytes"),  # floats
        (gzip.compress(idx_bytes(IMAGES), mtime=0)[:-12], "does not decompress"),
        (gzip.compress(idx_bytes(IMAGES), mtime=0)[:30] + b"xxxx", "does not decompress"),
        (gzip.compress(b"text", mtime=0), "not an idx file"),
    ],
)
def test_a_file_that_is_not_whole_is_refused_by_name(content: bytes, message: str, tmp_path: Path):
    path = tmp_path / "t10k-images-idx3-ubyte.gz"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_idx(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


def test_real_labels_are_the_published_ones(real_data: Path):
    labels = read_idx(real_data / "mnist/t10k-labels-idx1-ubyte.gz")
    # as in MNIST's papers
    assert np.bincount(labels).tolist() == [
        980,
        1135,
        1032,
        1010,
        982,
        892,
        958,
        1028,
        974,
        1009,
    ]
    official = "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    assert hashlib.sha256(idx_bytes(labels)).hexdigest() == official
