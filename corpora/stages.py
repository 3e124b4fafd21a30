"""A long computation in stages, each of which keeps its arrays on disk: a computation that was
killed goes on after the last finished stage.
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from core.atomic_io import write_atomically

Arrays = dict[str, np.ndarray]
Shapes = Mapping[str, tuple[int | None, ...]]  # None: of any length


def key_of(*origin: Any) -> str:
    """A digest of all that a stage depends on, as plain data: options, digests of files, keys of
    other stages.

    >>> key_of("vae", {"seed": 0}) == key_of("vae", {"seed": 1})
    False
    """
    return hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()


def stage(path: Path, key: str, make: Callable[[], Arrays], shapes: Shapes) -> Arrays:
    """What `make` gave when it was last asked for under this key; asked now where that is not kept,
    was cut short or is of another key.

    What is kept may be somebody else's, so it must have these arrays in these shapes, and only
    finite numbers.
    """
    kept = _read(path, key, shapes)
    if kept is None:
        made = make()
        # one entry: the library writes several in any order
        about = json.dumps({"key": key, "values": _digest(made)})
        write_atomically(path, save(made, metadata={"about": about}))
        kept = _read(path, key, shapes)
        assert kept is not None, (
            f"{path.name} was made with other shapes, or without finite numbers"
        )
    return kept


def _read(path: Path, key: str, shapes: Shapes) -> Arrays | None:
    try:
        with safe_open(path, framework="numpy") as file:
            about = json.loads((file.metadata() or {}).get("about", "{}"))
            if not isinstance(about, dict) or about.get("key") != key:
                return None
            values = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, ValueError, RecursionError, SafetensorError):
        return None
    return values if about.get("values") == _digest(values) and _fits(values, shapes) else None


def _fits(values: Arrays, shapes: Shapes) -> bool:
    """
    >>> arrays = np.ones((2, 9)), np.ones(2), np.ones((3, 9)), np.full((2, 9), np.nan)
    >>> [_fits({"share": array}, {"share": (2, None)}) for array in arrays]
    [True, False, False, False]
    """
    return values.keys() == shapes.keys() and all(
        _is_like(values[name], shape) for name, shape in shapes.items()
    )


def _is_like(array: np.ndarray, shape: tuple[int | None, ...]) -> bool:
    lengths = len(array.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    return lengths and (array.dtype.kind != "f" or bool(np.isfinite(array).all()))


def _digest(values: Arrays) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(values.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
