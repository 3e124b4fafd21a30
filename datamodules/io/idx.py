"""The idx format, in which MNIST and its kin publish images and labels: a short header, then plain
bytes; compressed or not.
"""

import gzip
import zlib
from io import BufferedIOBase
from math import prod
from pathlib import Path

import numpy as np

from core.errors import InputError

DEFLATES_TO = 1032  # bytes at most that one compressed byte can stand for


def read_idx(path: Path) -> np.ndarray:
    """The array of bytes that an idx file holds: labels [N] or images [N, height, width].

    Whether it is compressed shows in its first bytes.
    """
    with open(path, "rb") as stream:
        compressed = stream.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if compressed else open(path, "rb") as stream:
            return _array(path, stream, path.stat().st_size * (DEFLATES_TO if compressed else 1))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} does not decompress; it was cut short or altered.") from error


def _array(path: Path, stream: BufferedIOBase, most: int) -> np.ndarray:
    """The array in a stream that can hold `most` bytes.

    No more is read, or unpacked, than its header announces.
    """
    # two zero bytes, 8 for unsigned bytes, the number of dimensions, then each dimension as four
    # bytes
    start = stream.read(4)
    dimensions = start[3] if len(start) == 4 and start[:3] == b"\0\0\x08" else 0
    sizes = stream.read(4 * dimensions)
    if not 1 <= dimensions <= 4 or len(sizes) < 4 * dimensions:
        raise InputError(
            f"{path} is not an idx file of bytes; such a file starts with the bytes 0, 0, 8 and "
            "its dimensions."
        )
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    content = stream.read(prod(shape) + 1) if prod(shape) <= most else b""
    if len(content) != prod(shape):
        held = (
            f"{len(content)} bytes{' or more' * (len(content) > prod(shape))}"
            if prod(shape) <= most
            else "fewer bytes"
        )
        raise InputError(
            f"{path} holds {held} of data, but its header announces {prod(shape)} "
            f"({' x '.join(map(str, shape))}); it was cut short or altered."
        )
    return np.frombuffer(content, np.uint8).reshape(shape).copy()
