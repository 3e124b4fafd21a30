"""Names that become files and folders.

One that is too long is refused before anything is computed, not when its file is to be written.
"""

import os
import re
from pathlib import Path
from typing import Any

from core.errors import InputError

NAME_MAX, PATH_MAX = 255, 4096  # bytes, of Linux and of nearly all file systems
# bytes of a name: the rest is for endings (-grad_cam_high.svg), also of files that are being
# written
LONGEST = 180
BELOW = 300  # bytes that paths below a folder of runs or of a report may take


def length_error(name: Any) -> str:
    """Why a name cannot be that of files, to be put after the name of its option; empty if it can.

    >>> length_error("x" * 180), length_error("ü" * 91)
    ('', 'is üüüüüüüüüüüüüüüüüüüüüüüüüüüüüü…, of 182 bytes; it names files, so it must be at most
    180 bytes long')
    """
    size = _bytes(str(name))
    return (
        f"is {_shortened(str(name))}, of {size} bytes; it names files, so it must be at most "
        f"{LONGEST} bytes long"
        if size > LONGEST
        else ""
    )


def check_name(name: Any) -> None:
    """Refuse what cannot be `data.name`, which becomes a part of folders' names; None is fine."""
    if name is not None and not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", str(name)):
        raise InputError(f"data.name is {name}; it must be 1 to 40 letters, digits, - or _.")


def check_run_name(name: str) -> None:
    """Refuse a run's name, which follows from those of its classes, if no folder can have it."""
    if error := length_error(name):
        raise InputError(
            f"the name that a run has by its data and data.delivery {error}; give these classes "
            "shorter names."
        )


def check_folder(folder: Path, option: str) -> None:
    """Refuse a folder if files of runs or of a report below it would have too long a path."""
    longest, whole = max(map(_bytes, folder.parts), default=0), _bytes(os.path.abspath(folder))
    if longest > NAME_MAX:
        raise InputError(
            f"{option} is {_shortened(str(folder))}, with a name of {longest} bytes in it; a "
            f"folder's name may have {NAME_MAX}."
        )
    if whole + BELOW > PATH_MAX:
        raise InputError(
            f"{option} is {_shortened(str(folder))}, a path of {whole} bytes; files below it "
            f"would be beyond {PATH_MAX}, so choose a shorter one."
        )


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:30]}…"
