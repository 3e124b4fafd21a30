"""Where the weights of frozen models come from: a package, the hub, or a file of the user's.

They are never unpickled.
"""

import hashlib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from huggingface_hub import snapshot_download

from core.errors import InputError
from datamodules.io.files import sha256


def package_folder(package: str) -> Path | None:
    """Where an installed package lies, without running any of its code; None if it is absent.

    >>> package_folder("no_such_package") is None
    True
    """
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


def hub_folder(repository: str, instead: str) -> Path:
    """A model's files from the hub, kept in the hub's own cache on this machine.

    `instead` says what to do where there is no hub.
    """
    kinds = ["*.safetensors", "*.json", "*.txt", "*.model"]
    try:
        return Path(snapshot_download(repository, allow_patterns=kinds))
    except Exception as error:  # network libraries raise many types; all mean the same to the user
        raise InputError(
            f"{repository} could not be fetched from the hub ({type(error).__name__}); {instead}."
        ) from error


def check_weights(path: Path, expected: str) -> Path:
    """The same path, if the file's sha256 is the published one."""
    digest = sha256(path)
    if digest != expected:
        raise InputError(
            f"{path} does not hold the published weights (its sha256 starts with {digest[:8]}, it "
            f"should be {expected[:8]}); install it again."
        )
    return path


def digest_of_files(folder: Path, paths: Iterable[Path]) -> str:
    """One sha256 over the names and contents of some files of a folder."""
    listed = [f"{path.relative_to(folder).as_posix()} {sha256(path)}" for path in sorted(paths)]
    return hashlib.sha256("\n".join(listed).encode()).hexdigest()
