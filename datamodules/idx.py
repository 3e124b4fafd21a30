"""The idx format, in which MNIST and its kin publish images and labels: a short header, then plain bytes; compressed or not."""

import gzip
import zlib
from math import prod
from pathlib import Path

import numpy as np

from errors import InputError


def read_idx(path: Path) -> np.ndarray:
    """The array of bytes that an idx file holds: labels [N] or images [N, height, width]. Whether it is compressed shows in its first bytes."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(f"{path} does not decompress; it was cut short or altered.") from error
    # two zero bytes, 8 for unsigned bytes, the number of dimensions, then each dimension as four bytes
    if len(content) < 4 or content[:3] != b"\0\0\x08" or not 1 <= content[3] <= 4 or len(content) < 4 + 4 * content[3]:
        raise InputError(f"{path} is not an idx file of bytes; such a file starts with the bytes 0, 0, 8 and its dimensions.")
    start = 4 + 4 * content[3]
    shape = tuple(np.frombuffer(content, ">u4", count=content[3], offset=4).tolist())
    if len(content) != start + prod(shape):
        raise InputError(
            f"{path} holds {len(content) - start} bytes of data, but its header announces {prod(shape)} ({' x '.join(map(str, shape))}); "
            "it was cut short or altered."
        )
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy()
