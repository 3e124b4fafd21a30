"""One named member of an archive to one path.

Nothing in an archive can choose where it lands, how much is unpacked, or what is run.
"""

import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import IO

from core.atomic_io import write_atomically
from core.errors import InputError

MOST = 4 * 2**30  # bytes of a member; no published file comes near
# of a zip archive that was altered; the last two where it is encrypted, or compressed in a way that
# is not known here
ZIP_ERRORS = (
    zipfile.BadZipFile,
    KeyError,
    EOFError,
    OSError,
    zlib.error,
    ValueError,
    RuntimeError,
    NotImplementedError,
)


def take_from_tar(archive: Path, member: str, path: Path) -> None:
    """Write a file of a tar archive, compressed or not, to `path`.

    A member that is a link, a folder or a device is refused.
    """
    try:
        with tarfile.open(archive) as tar:
            entry = tar.getmember(member)
            source = tar.extractfile(entry) if entry.isfile() else None
            if source is None:
                raise InputError(
                    f"{archive} does not hold {member} as a file; it is not the published archive."
                )
            _write(archive, source, member, entry.size, path)
    except (tarfile.TarError, KeyError, EOFError, OSError, zlib.error, ValueError) as error:
        raise _not_an_archive(archive, member, error) from error


def take_from_zip(archive: Path, member: str, path: Path) -> None:
    """The same of a zip archive."""
    try:
        with zipfile.ZipFile(archive) as zipped, zipped.open(member) as source:
            _write(archive, source, member, zipped.getinfo(member).file_size, path)
    except ZIP_ERRORS as error:
        raise _not_an_archive(archive, member, error) from error


def _write(archive: Path, source: IO[bytes], member: str, size: int, path: Path) -> None:
    if size > MOST:
        raise InputError(
            f"{archive} announces {size:,} bytes of {member}; no published file has more than "
            f"{MOST:,}."
        )
    write_atomically(path, source)


def _not_an_archive(archive: Path, member: str, error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    return InputError(
        f"{archive} is no archive that {member} can be taken from ({type(error).__name__}); it "
        "was cut short or altered."
    )
