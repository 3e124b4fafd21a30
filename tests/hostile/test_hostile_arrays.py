"""Arrays and pictures made to deceive: sizes that are not there, objects instead of numbers, bombs,
programs in the place of images.
"""

import gzip
import io
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from callbacks.cartography.records import read_epochs
from core.errors import InputError
from corpora.annotation.soft_digits_table import read_soft_digits
from corpora.sources import AMBIGUOUS
from datamodules.custom.own_items import read_images
from datamodules.io.files import read_array
from datamodules.io.idx import read_idx
from datamodules.io.ood_sets import read_image, read_svhn
from tests.hostile.outcomes import MEMORY, check_sentence, limits, outcome
from tests.hostile.readers import (
    on_disk,
    picture,
    read_ambiguous,
    soft_digits_table,
    write_soft_digits,
)


class Touch:
    """Unpickled, it creates a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def refused(read: Callable[[], object], *names: str, memory: int = MEMORY) -> str:
    """The sentence with which a reader refuses, within limits of time and memory."""
    with pytest.raises(InputError) as error, limits(memory=memory):
        read()
    check_sentence(str(error.value), *names)
    return str(error.value)


def npy_header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    encoded = text.encode()
    return (
        b"\x93NUMPY"
        + bytes(version)
        + struct.pack("<H" if version == (1, 0) else "<I", len(encoded))
        + encoded
    )


@pytest.mark.parametrize(
    "header",
    [
        npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000, 10), }\n"),
        npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-1, 10), }\n"),
        npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (-2, -4), }\n"),
        npy_header(
            "{'descr': '<i8', 'fortran_order': False, 'shape': (18446744073709551616,), }\n"
        ),
        npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': 'many', }\n"),
        npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (8,), }\n"),
        npy_header("{'descr': '<U1000000000', 'fortran_order': False, 'shape': (8,), }\n"),
        npy_header(
            "{'descr': [('a', '<i4'), ('b', '|O')], 'fortran_order': False, 'shape': (8,), }\n"
        ),
        npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (8,), 'more': 1}\n"),
        npy_header("__import__('os').system('true')\n"),
        npy_header("(" * 9000),
        npy_header("{'descr': '<i8', 'fortran_order': False, 'shape': (8,), }\n", version=(9, 9)),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        b"PK\x05\x06" + bytes(18),  # an empty .npz
    ],
)
def test_npy_headers_are_checked_before_anything_is_read(header: bytes, tmp_path: Path):
    (tmp_path / "counts.npy").write_bytes(header + bytes(64))
    refused(lambda: read_array(tmp_path / "counts.npy"), "counts.npy")


def test_an_array_of_objects_is_not_unpickled(tmp_path: Path):
    np.save(
        tmp_path / "counts.npy",
        np.array([Touch(tmp_path / "made")], dtype=object),
        allow_pickle=True,
    )
    assert "not a plain array of numbers" in refused(
        lambda: read_array(tmp_path / "counts.npy"), "counts.npy"
    )
    (tmp_path / "bare.npy").write_bytes(pickle.dumps(Touch(tmp_path / "made")))
    refused(lambda: read_array(tmp_path / "bare.npy"), "bare.npy")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("dtype", ["<i8", ">i8", "u1", "f4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_read_as_numpy_reads_them(dtype: str, order: str, tmp_path: Path):
    array = np.asarray(np.arange(12).reshape(3, 4), dtype=dtype, order=order)  # pyright: ignore
    np.save(tmp_path / "counts.npy", array)
    np.testing.assert_array_equal(
        read_array(tmp_path / "counts.npy"), np.load(tmp_path / "counts.npy", allow_pickle=False)
    )


@pytest.mark.parametrize("shape", [(2**32 - 1,), (2**32 - 1,) * 4, (1, 2**31)])
@pytest.mark.parametrize("compress", [False, True])
def test_idx_sizes_that_are_not_there(shape: tuple[int, ...], compress: bool, tmp_path: Path):
    content = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(100)
    (tmp_path / "some.idx").write_bytes(gzip.compress(content) if compress else content)
    assert "its header announces" in refused(lambda: read_idx(tmp_path / "some.idx"), "some.idx")


def test_a_compressed_idx_file_unpacks_no_more_than_it_announces(tmp_path: Path):
    with gzip.open(tmp_path / "some.gz", "wb", compresslevel=1) as stream:
        stream.write(bytes([0, 0, 8, 1, 0, 0, 0, 9]))
        for _ in range(16):
            stream.write(bytes(2**24))
    refused(lambda: read_idx(tmp_path / "some.gz"), "some.gz", memory=2**27)


def test_a_matlab_file_of_cells_within_cells(tmp_path: Path):
    """scipy reads cells by recursion without a bound, which ends the process."""

    def element(kind: int, content: bytes) -> bytes:
        return struct.pack("<II", kind, len(content)) + content + bytes(-len(content) % 8)

    def matrix(name: bytes, content: bytes) -> bytes:
        flags = element(6, struct.pack("<II", 1, 0))  # a cell
        return element(
            14, flags + element(5, struct.pack("<ii", 1, 1)) + element(1, name) + content
        )

    content = matrix(b"", b"")
    for _ in range(20_000):
        content = matrix(b"", content) if len(content) < 2**20 else content
    head = b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM"
    (tmp_path / "deep.mat").write_bytes(head + matrix(b"X", content))
    assert "SVHN's layout" in refused(lambda: read_svhn(tmp_path / "deep.mat"), "deep.mat")


@pytest.mark.parametrize(
    "content",
    [{"X": np.array([[1, "a"]], dtype=object)}, {"X": "text"}, {"X": {"a": 1}}, {"y": np.zeros(3)}],
)
def test_a_matlab_file_of_anything_else(content: dict, tmp_path: Path):
    savemat(tmp_path / "some.mat", content)
    refused(lambda: read_svhn(tmp_path / "some.mat"), "some.mat")


def png_of(width: int, height: int) -> bytes:
    """A png that announces a size and holds next to nothing."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(
    "size", [(2**31 - 1, 2**31 - 1), (30_000, 30_000), (10_000, 10_000), (0, 5), (10, 10**8)]
)
def test_a_picture_that_announces_too_many_pixels(size: tuple[int, int], tmp_path: Path):
    (tmp_path / "bomb.png").write_bytes(png_of(*size))
    refused(lambda: read_image(tmp_path / "bomb.png"), "bomb.png")


def test_a_program_is_no_picture(tmp_path: Path):
    """Pillow would hand it to Ghostscript, whatever its name."""
    eps = (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n("
        + str(tmp_path / "made").encode()
        + b") (w) file closefile\nshowpage\n%%EOF\n"
    )
    (tmp_path / "some.png").write_bytes(eps)
    with Image.open(io.BytesIO(eps)) as image:
        assert image.format == "EPS"
    for read in (
        lambda: read_image(tmp_path / "some.png"),
        lambda: read_images(["some.png"], tmp_path, 8),
    ):
        assert "cannot be read as an image" in refused(read, "some.png")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "image",
    [
        {"bytes": png_of(30_000, 30_000), "path": None},
        {"bytes": picture("PNG")[:60], "path": None},
        {"bytes": b"", "path": None},
        {"bytes": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 28 28\n", "path": None},
        {"bytes": None, "path": __file__},
        {"bytes": None, "path": "http://127.0.0.1:9/picture.png"},
    ],
)
def test_pictures_in_a_table_are_their_bytes_alone(image: dict, tmp_path: Path):
    """A row that names a path or an address instead of holding a picture gets neither opened."""
    path = tmp_path / "soft.parquet"
    path.write_bytes(
        on_disk("soft.parquet", lambda path: write_soft_digits(path, soft_digits_table()))
    )
    table = pq.read_table(path)
    images = [*table["images"].to_pylist()[:-1], image]
    column = pa.array(images, pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    table = table.set_column(table.column_names.index("images"), "images", column)
    # with the metadata by which the datasets library would know a column of pictures
    pq.write_table(table, path)
    assert "row 3" in refused(lambda: read_soft_digits(str(path)), "soft.parquet")


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.zeros(1).expand(10**9, 1, 28, 28),  # a few bytes that stand for terabytes
        lambda: torch.zeros(4, 1, 28, 28).to_sparse(),
        lambda: torch.quantize_per_tensor(torch.zeros(4, 1, 28, 28), 0.1, 0, torch.quint8),
        lambda: torch.zeros(4, 1, 28, 28, device="meta"),
        lambda: torch.zeros(4, 1, 28, 28, dtype=torch.complex64),
    ],
    ids=["expanded", "sparse", "quantized", "meta", "complex"],
)
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
def test_tensors_that_are_no_plain_arrays(make: Callable[[], torch.Tensor], tmp_path: Path):
    path = tmp_path / AMBIGUOUS[0].path
    path.parent.mkdir()
    torch.save(make(), path)
    refused(lambda: read_ambiguous(path), path.name)


def test_records_of_an_enormous_epoch(tmp_path: Path):
    np.array([np.inf, np.nan, 1e38, -1], "<f4").tofile(tmp_path / "cartography_train.f32")
    for items in (0, 1, 10**15):
        assert (
            outcome(lambda items=items: read_epochs(tmp_path / "cartography_train.f32", items))
            == "result"
        )
