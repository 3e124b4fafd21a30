"""Published data files: found where the user keeps them, fetched if absent, and always checked."""

import gzip
import hashlib
import math
import os
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from tokenize import TokenError
from typing import IO, Literal

import numpy as np

from core.atomic_io import SUFFIX, remove_partial_files
from core.errors import InputError
from core.folder_lock import folder_lock
from datamodules.io.archives import take_from_tar, take_from_zip

# of .npy files, by their version
HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


class AbsentFile(InputError):
    """A file that is not there and could not be fetched; some callers can do without it."""


@dataclass(frozen=True)
class PublishedFile:
    """One file of a dataset: its path below the data root, its sha256, and where to download it."""

    path: str
    # Of a .gz: that of its uncompressed content, because the same content is often compressed anew.
    # None where it is not known: the reader of the file then checks what is in it.
    sha256: str | None
    url: str
    # of what the url gives, where that is a .gz, or a tar archive with the file under the same path
    archive_sha256: str | None = None
    # its path in a zip archive that the url gives; the archive's own sha256 need not be known
    member: str | None = None


def find(root: str | os.PathLike, file: PublishedFile) -> Path:
    """The checked file below `root`; downloaded first, with a progress bar, where it is absent.

    A file that differs from the published one (cut short, altered) is refused and left as it is.
    """
    path = fetch(root, file)
    digest = sha256(path)
    if file.sha256 is not None and digest != file.sha256:
        raise InputError(
            f"{path} is not the published file (its sha256 starts with {digest[:8]}, it should be "
            f"{file.sha256[:8]}); "
            "delete it to have it downloaded again."
        )
    return path


def fetch(root: str | os.PathLike, file: PublishedFile) -> Path:
    """Where the file lies below `root`; downloaded first where it is absent.

    A file that lies there already is not looked into.
    """
    path = Path(root) / file.path
    if not path.exists():
        with folder_lock(path.parent, "downloads a file"):
            remove_partial_files(path.parent)
            if not path.exists():  # of several processes the first fetches it for all
                _download(path, file)
    return path


def read_array(path: Path) -> np.ndarray:
    """A .npy file; one that would need unpickling, and so could run code, is refused."""
    shape, order, kind, start = array_header(path)
    return np.fromfile(path, kind, offset=start).reshape(shape, order=order)


def array_header(path: Path) -> tuple[tuple[int, ...], Literal["C", "F"], np.dtype, int]:
    """Shape, order and kind of the numbers in a .npy file, and where they begin.

    What the header announces is compared with the file's size, so that no memory is taken for what
    is not there.
    """
    try:
        with open(path, "rb") as stream:
            shape, by_columns, kind = header_of(stream, str(path))
            start = stream.tell()
    except OSError as error:
        raise InputError(f"{path} cannot be read as an array in .npy format.") from error
    held, announced = path.stat().st_size - start, math.prod(shape) * kind.itemsize
    if held != announced or min(shape, default=0) < 0:
        raise InputError(
            f"{path} holds {held} bytes of data, but its header announces {announced}; it was cut "
            "short or altered."
        )
    return shape, "F" if by_columns else "C", kind, start


def header_of(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, whether columns come first, and kind of the numbers of an array in .npy format.

    The stream is left where the numbers begin; errors call it by `name`.
    """
    try:
        # Python warns of a header that Python 2 wrote
        with warnings.catch_warnings(action="ignore"):
            shape, by_columns, kind = HEADERS[np.lib.format.read_magic(stream)](stream)
    # a header is read as an expression of Python, hence the last four; it is short, so the memory
    # is that of the parser's stack
    except (
        OSError,
        KeyError,
        ValueError,
        TypeError,
        SyntaxError,
        TokenError,
        RecursionError,
        MemoryError,
    ) as error:
        raise InputError(
            f"{name} is not an array in .npy format; nothing in it was loaded."
        ) from error
    if kind.kind not in "biuf" or kind.shape:
        raise InputError(
            f"{name} is not a plain array of numbers but of {kind}; nothing in it was loaded."
        )
    return shape, by_columns, kind


def sha256(path: Path) -> str:
    """The digest of a file's content; of a .gz, that of what is compressed in it."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path} was cut short or is no gzip file; delete it to have it downloaded again."
        ) from error


def _download(path: Path, file: PublishedFile) -> None:
    """Download into a folder of ours beside the file's place, so that nothing there is replaced.

    An archive that lies there is used as it is.
    """
    from pooch import file_hash

    name = file.url.rsplit("/", 1)[-1].partition("?")[0]
    known = file.archive_sha256 or (None if file.member else file.sha256)
    kept = path.parent / name
    with TemporaryDirectory(dir=path.parent, prefix=".download.", suffix=SUFFIX) as folder:
        if kept.is_file() and (known is None or file_hash(kept) == known):
            fetched = kept
        else:
            fetched = _fetched(file, known, Path(folder, name), path)
        if file.member is not None:
            try:
                take_from_zip(fetched, file.member, path)
            except InputError as error:
                what = kept if fetched == kept else f"what {file.url} gave"
                raise AbsentFile(
                    f"{path} is absent and {what} is no archive with {file.member}; put the file "
                    "there by hand."
                ) from error
        elif file.archive_sha256 is not None and path.suffix != ".gz":
            take_from_tar(fetched, file.path, path)
            if not os.path.lexists(kept):
                # for other files that it holds; its digest is known, unlike a zip archive's
                os.replace(fetched, kept)
        else:
            os.replace(fetched, path)


def _fetched(file: PublishedFile, known: str | None, to: Path, path: Path) -> Path:
    import pooch  # with all that downloads need, which files that are here do not

    try:
        # pooch downloads to a temporary name and moves the file into place only when its hash is
        # right
        return Path(
            pooch.retrieve(
                file.url, known and f"sha256:{known}", to.name, to.parent, progressbar=True
            )
        )
    except Exception as error:  # network libraries raise many types; all mean the same to the user
        raise AbsentFile(
            f"{path} is absent and {file.url} could not be downloaded ({type(error).__name__}); "
            "put the file there by hand."
        ) from error
