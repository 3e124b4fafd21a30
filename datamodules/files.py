"""Published data files: found where the user keeps them, fetched where they are absent, and always checked."""

import gzip
import hashlib
import os
import tarfile
import zipfile
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pooch

from errors import InputError


class AbsentFile(InputError):
    """A file that is not there and could not be fetched, which whoever can do without it may want to tell from one that is wrong."""


@dataclass(frozen=True)
class PublishedFile:
    """One file of a dataset: where it lies below the data root, its sha256, and where it can be downloaded."""

    path: str
    # of a .gz: that of its uncompressed content, because the same content is often compressed anew; None where it is not known: who reads the
    # file then checks what is in it
    sha256: str | None
    url: str
    archive_sha256: str | None = (
        None  # of what the url gives, where that is a tar archive that holds the file under the same path, or a .gz
    )
    member: str | None = None  # its path in a zip archive that the url gives; the archive's own sha256 need not be known


def find(root: str | os.PathLike, file: PublishedFile) -> Path:
    """The checked file below `root`; downloaded first, with a progress bar, where it is absent.

    A file that differs from the published one (cut short, altered) is refused and left as it is.
    """
    path = fetch(root, file)
    digest = sha256(path)
    if file.sha256 is not None and digest != file.sha256:
        raise InputError(
            f"{path} is not the published file (its sha256 starts with {digest[:8]}, it should be {file.sha256[:8]}); "
            "delete it to have it downloaded again."
        )
    return path


def fetch(root: str | os.PathLike, file: PublishedFile) -> Path:
    """Where the file lies below `root`, after a download where it was absent; a file that lies there already is not looked into."""
    path = Path(root) / file.path
    if not path.exists():
        _download(path, file)
    return path


def read_array(path: Path) -> np.ndarray:
    """A .npy file; one that would need unpickling, and so could run code, is refused."""
    try:
        return np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InputError(f"{path} is not a plain array of numbers in .npy format; nothing in it was loaded.") from error


def sha256(path: Path) -> str:
    """The digest of a file's content; of a .gz, that of what is compressed in it."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} was cut short or is no gzip file; delete it to have it downloaded again.") from error


def _download(path: Path, file: PublishedFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    name = file.url.rsplit("/", 1)[-1].partition("?")[0]
    known = file.archive_sha256 or (None if file.member else file.sha256)
    try:
        # pooch downloads to a temporary name and moves the file into place only when its hash is right
        fetched = pooch.retrieve(file.url, known_hash=known and f"sha256:{known}", fname=name, path=path.parent, progressbar=True)
    except Exception as error:  # network libraries raise many types; all mean the same to the user
        with suppress(OSError):
            path.parent.rmdir()  # where nothing lies in it
        raise AbsentFile(
            f"{path} is absent and {file.url} could not be downloaded ({type(error).__name__}); put the file there by hand."
        ) from error
    if file.member is not None:
        _extract_zipped(Path(fetched), file, path)
    elif file.archive_sha256 is not None and path.suffix != ".gz":
        _extract(Path(fetched), file.path, path)


def _extract(archive: Path, member: str, path: Path) -> None:
    """Write one named member of a tar archive to `path`: nothing in the archive can choose where it lands."""
    partial = path.with_name(path.name + ".part")
    with tarfile.open(archive) as tar:
        source = tar.extractfile(member)
        if source is None:
            raise InputError(f"{archive} does not hold {member}; it is not the published archive.")
        with source, open(partial, "wb") as target:
            while chunk := source.read(1 << 20):
                target.write(chunk)
    os.replace(partial, path)


def _extract_zipped(archive: Path, file: PublishedFile, path: Path) -> None:
    """Write one named member of a zip archive to `path`. The archive is not kept: nothing could tell later whether it is whole."""
    partial = path.with_name(path.name + ".part")
    try:
        with zipfile.ZipFile(archive) as zipped:
            partial.write_bytes(zipped.read(str(file.member)))
    except (zipfile.BadZipFile, KeyError, zlib.error) as error:
        raise AbsentFile(
            f"{path} is absent and what {file.url} gave is no archive with {file.member}; put the file there by hand."
        ) from error
    finally:
        archive.unlink()
    os.replace(partial, path)
