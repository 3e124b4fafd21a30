"""Files that a report wrote to a folder, known again by their names and contents: they may be
replaced or removed, and nothing else ever is.

A list of them lies beside them. It is written before they are, with what was there and what will
be, so that a report killed in between knows its own files again, and once more when all are in
place.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from core.atomic_io import write_atomically, write_together
from core.errors import InputError

LIST = ".plurality-files.json"
_NAME = re.compile(r"(?!\.)[^/\0]+(/(?!\.)[^/\0]+)*")  # below the folder, and nothing hidden
_SHA256 = re.compile(r"[0-9a-f]{64}")

Kind = Literal["report", "copy"]
# the contents that each file may have, by their sha256; None: any
Owned = dict[str, set[str] | None]


class Owner(NamedTuple):
    """Whose files they are: those of a study's report, or of a copy of it.

    `advice` is what to do where something else is in the way.
    """

    kind: Kind
    study: str
    advice: str


def owned_files(folder: Path, owner: Owner) -> Owned | None:
    """What the list in a folder says; None where there is no list.

    Another owner's is refused: what it lists is in use.
    """
    path = folder / LIST
    if not os.path.lexists(path):
        return None
    try:
        if path.is_symlink():
            raise ValueError("a link")
        content = json.loads(path.read_text())
        kind, study, files = content["kind"], content["study"], content["files"]
        if kind not in get_args(Kind) or not isinstance(study, str):
            raise ValueError("nobody's")
        owned: Owned = {
            name: {digest for digest in digests if _SHA256.fullmatch(digest)}
            for name, digests in files.items()
        }
        if not all(map(_NAME.fullmatch, owned)):
            raise ValueError("a name that leads elsewhere")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"{path} is not a list of files that a report wrote; move it, and what is beside it, "
            "away."
        ) from error
    if (kind, study) != (owner.kind, owner.study):
        raise InputError(
            f"{folder} holds a {kind} of the study {study}, as its {LIST} says; {owner.advice}."
        )
    return owned


def same_files(folder: Path, files: Mapping[str, bytes]) -> Owned:
    """Those that are there already, byte for byte: without a list, nothing else is known to be
    ours.
    """
    places = {name: folder / name for name in files}
    there = {
        name: path for name, path in places.items() if path.is_file() and not path.is_symlink()
    }
    return {
        name: {digest}
        for name, path in there.items()
        if (digest := _sha256(files[name])) == _sha256(path)
    }


def check_files(folder: Path, names: Iterable[str], owned: Owned, owner: Owner) -> None:
    """Refuse, by name, the first file that would be replaced or removed but is not ours, or was
    changed since.
    """
    for path in sorted({folder / name for name in (*names, *owned)}):
        for above in reversed(path.relative_to(folder).parents[:-1]):
            if os.path.lexists(folder / above) and (
                (folder / above).is_symlink() or not (folder / above).is_dir()
            ):
                raise InputError(
                    f"{folder / above} is not a folder that a {owner.kind} made; {owner.advice}."
                )
        if not os.path.lexists(path):
            continue
        if (
            not stat.S_ISREG(os.lstat(path).st_mode)
            or path.relative_to(folder).as_posix() not in owned
        ):
            raise InputError(
                f"{path} was not written by a {owner.kind} that keeps a list of its files; "
                f"{owner.advice}."
            )
        contents = owned[path.relative_to(folder).as_posix()]
        # an empty file holds nothing of anybody's: a disk that lost power leaves such
        if contents is not None and path.stat().st_size and _sha256(path) not in contents:
            raise InputError(
                f"{path} was changed after it was written; move it away, or delete it to have it "
                "written again."
            )


def replace_files(
    folder: Path, files: Mapping[str, bytes | Path], owned: Owned, owner: Owner
) -> None:
    """Write files in place of those that are `owned`, of which none stays that is not written
    again. A path is that of a file to be moved there.

    Nothing is written or removed before all of it is known to be ours. Files take their places in
    the order given.
    """
    check_files(folder, files, owned, owner)
    new = {name: {_sha256(content)} for name, content in files.items()}
    old = {
        name: {_sha256(folder / name)} if contents is None else contents
        for name, contents in owned.items()
        if (folder / name).exists()
    }
    _write_list(
        folder, owner, {name: new.get(name, set()) | old.get(name, set()) for name in (*new, *old)}
    )
    write_together({folder / name: content for name, content in files.items()})
    for name in owned.keys() - files.keys():
        (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # where something else lies in it
            (folder / name).parent.rmdir()
    _write_list(folder, owner, new)


def _write_list(folder: Path, owner: Owner, files: Mapping[str, set[str]]) -> None:
    about = "Files that cli.py study report wrote here, by sha256: it replaces these and no others."
    content = {"about": about, "kind": owner.kind, "study": owner.study, "files": files}
    write_atomically(
        folder / LIST, json.dumps(content, indent=1, sort_keys=True, default=sorted) + "\n"
    )


def _sha256(content: bytes | Path) -> str:
    if isinstance(content, bytes):
        return hashlib.sha256(content).hexdigest()
    with open(content, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
