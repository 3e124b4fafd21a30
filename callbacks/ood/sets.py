"""OOD sets by name: what metrics and files call them, and whether they are to be had."""

import re
from pathlib import Path

from core.errors import InputError
from core.ranks import from_first_rank, rank_and_ranks
from datamodules.io.files import AbsentFile
from datamodules.io.ood_sets import PUBLISHED, fetch_ood_set

LONGEST = 100  # bytes of a set's name, which becomes part of a file's


def set_name(source: str) -> str:
    """A set's name in metrics and files: a published one's own, any other's file or folder.

    >>> set_name("svhn"), set_name("images/My textures"), set_name("mnist/images-idx3-ubyte.gz")
    ('svhn', 'my_textures', 'images_idx3_ubyte')
    """
    if source in PUBLISHED:
        return source
    return re.sub(r"\W+", "_", Path(source).name.split(".")[0]).strip("_").lower()


def why_absent(source: str, root: str) -> str | None:
    """Why a set is not to be had; None where it is.

    The first rank tries to fetch it, so that ranks neither race nor disagree.
    """
    reason = None
    if rank_and_ranks()[0] == 0:
        try:
            fetch_ood_set(source, root)
        except AbsentFile as absent:
            reason = str(absent)
    return from_first_rank(reason)


def check_names(option: str, names: list[str]) -> None:
    """Refuse names that metrics or files cannot have, or that occur twice."""
    for name in names:
        if not re.fullmatch(r"\w+", name):
            raise InputError(
                f"OODScores's {option} hold the name '{name}'; it goes into metrics, so it must "
                "be made of letters, digits and underscores."
            )
        if len(name.encode()) > LONGEST:
            raise InputError(
                f"OODScores's {option} hold the name {name[:30]}…, of {len(name.encode())} bytes; "
                f"it names files, so it must be at most {LONGEST} bytes long."
            )
        if names.count(name) > 1:
            raise InputError(
                f"OODScores's {option} name {name} twice; give each a name of its own."
            )
