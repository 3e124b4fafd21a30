"""Arrays in numpy's .npz format: a zip archive of .npy files."""

import math
import zipfile
from pathlib import Path

import numpy as np

from core.errors import InputError
from datamodules.io.archives import ZIP_ERRORS
from datamodules.io.files import header_of

MOST = 2**30  # bytes of one array


def read_npz(path: Path, names: tuple[str, ...]) -> list[np.ndarray]:
    """The arrays of these names; others are left alone.

    An array that would need unpickling, and so could run code, is refused, and no memory is taken
    for more than the archive says that it holds.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return [_array(path, archive, f"{name}.npy") for name in names]
    except InputError:
        raise
    except ZIP_ERRORS as error:
        raise InputError(
            f"{path} is no .npz file that holds {', '.join(names)}; it was cut short or altered."
        ) from error


def _array(path: Path, archive: zipfile.ZipFile, member: str) -> np.ndarray:
    size = archive.getinfo(member).file_size
    with archive.open(member) as stream:
        shape, by_columns, kind = header_of(stream, f"{path}: {member}")
        held, announced = size - stream.tell(), math.prod(shape) * kind.itemsize
        content = stream.read(announced) if held == announced <= MOST else b""
    if len(content) != announced or min(shape, default=0) < 0:
        raise InputError(
            f"{path} holds {held:,} bytes of {member}, but its header announces {announced:,}; it "
            "was cut short or altered."
        )
    return np.frombuffer(content, kind).reshape(shape, order="F" if by_columns else "C").copy()
