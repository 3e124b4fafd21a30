"""Inputs that stay in their file, so that there may be more of them than memory.

A batch is one gather from a memory map.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch.utils.data import Dataset

from core.errors import InputError, name_rows
from datamodules.io.files import array_header
from datamodules.preparation import Moments

try:
    import resource
except ImportError:  # neither Linux nor macOS
    resource = None

AT_ONCE = 1 << 22  # numbers that a pass over the whole file looks at
COLD = 64  # batches that are asked for ahead after one had to wait for the disk


class MemmapInputs(Dataset[Tensor]):
    """Rows of an array [N, features] in a file, as float32, standardised if `moments` are given.

    `rows` says where in the array each item is. It serves as `TensorLoader`'s `prepare`: no
    workers, and no Python for single items. Where the system does not hold the file in memory, the
    rows of a batch are asked for all at once before they are read: one after the other, they would
    take ten times as long.

    >>> values = np.array([[1, 2], [3, 4], [5, 6]], np.float16)
    >>> inputs = MemmapInputs(values, rows=np.array([2, 0]))
    >>> inputs(torch.tensor([1, 0]))
    tensor([[1., 2.],
            [5., 6.]])
    """

    def __init__(self, values: np.ndarray, rows: np.ndarray, moments: Moments | None = None):
        self._file = (values.filename, values.offset) if isinstance(values, np.memmap) else None
        self._values = np.asarray(values)  # the plain view indexes faster than a memmap
        self._rows, self._moments = rows, moments
        self._cold = COLD  # until it is known better

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def stored(self) -> tuple[np.ndarray, np.ndarray, str | None]:
        """The array, the row of each item in it, and the name of its file, if it has one."""
        return self._values, self._rows, str(self._file[0]) if self._file else None

    def __getitem__(self, item: int) -> Tensor:
        return self(torch.tensor([item]))[0]

    def __call__(self, index: Tensor, epoch: int = 0) -> Tensor:
        """The items of one batch as float32; the epoch plays no part."""
        rows = self._rows[index.cpu().numpy()]
        if self._cold:
            self._ask_for(rows)
        waits = _waits()
        result = torch.from_numpy(self._values[rows]).float()
        self._cold = COLD if _waits() > waits else max(0, self._cold - 1)
        return result if self._moments is None else self._moments(result)

    def _ask_for(self, rows: np.ndarray) -> None:
        """Have the system read these rows, neighbours as one, without waiting for it."""
        if self._file is None or not hasattr(os, "posix_fadvise"):
            return
        ordered, (path, offset), width = np.sort(rows), self._file, self._values.strides[0]
        starts = np.flatnonzero(np.diff(ordered, prepend=-2) > 1)
        first, last = ordered[starts], ordered[np.append(starts[1:], len(ordered)) - 1]
        file = os.open(str(path), os.O_RDONLY)
        try:
            begins, lengths = offset + first * width, (last - first + 1) * width
            for start, length in zip(begins.tolist(), lengths.tolist(), strict=True):
                os.posix_fadvise(file, start, length, os.POSIX_FADV_WILLNEED)
        finally:
            os.close(file)

    def blocks(self) -> Iterator[Tensor]:
        """All items in order, some at a time."""
        for part in torch.arange(len(self)).split(_rows_at_once(self._values)):
            yield self(part)


def memmap_array(path: Path) -> np.ndarray:
    """The array [N, features] of a .npy or .safetensors file, without reading it.

    Nothing is unpickled.
    """
    if not path.is_file():
        raise InputError(
            f"there is no {path}; data.embeddings must be a .npy or .safetensors file."
        )
    if path.suffix not in (".npy", ".safetensors"):
        raise InputError(
            f"{path} is neither .npy nor .safetensors; write the embeddings as one of these."
        )
    values = _map_npy(path) if path.suffix == ".npy" else _map_safetensors(path)
    if values.ndim != 2 or values.dtype.kind != "f" or 0 in values.shape:
        raise InputError(
            f"{path} holds {values.dtype} {list(values.shape)}; embeddings must be floats of the "
            "shape [items, features]."
        )
    if not values.flags.c_contiguous:
        raise InputError(
            f"{path} holds its columns one after the other; write it with "
            "numpy.ascontiguousarray, or every item is spread over the file."
        )
    return values


def _map_npy(path: Path) -> np.ndarray:
    shape, order, kind, start = array_header(path)
    return np.memmap(path, kind, mode="r", offset=start, shape=shape, order=order)


def _map_safetensors(path: Path) -> np.ndarray:
    try:
        # checks the header against the length of the file
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
    except (ValueError, OSError, SafetensorError) as error:
        raise InputError(
            f"{path} is not in safetensors format, or was cut short; nothing in it was loaded."
        ) from error
    if len(names) != 1:
        raise InputError(f"{path} holds {len(names)} tensors; it must hold one, the embeddings.")
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        entry = json.loads(stream.read(length))[names[0]]
    kinds = {"F16": np.float16, "F32": np.float32, "F64": np.float64}
    if entry["dtype"] not in kinds:
        raise InputError(f"{path} holds {entry['dtype']}; embeddings must be F16, F32 or F64.")
    start = 8 + length + entry["data_offsets"][0]
    return np.memmap(path, kinds[entry["dtype"]], "r", start, tuple(entry["shape"]))


def refuse_unusual(values: np.ndarray, source: str) -> None:
    """Raises an `InputError` for what is not a finite number, before it can spoil a training.

    It takes one pass over the file.
    """
    step = _rows_at_once(values)
    starts = range(0, len(values), step)
    finite = [np.isfinite(values[start : start + step]).all(1) for start in starts]
    bad = np.flatnonzero(~np.concatenate(finite))
    if len(bad):
        raise InputError(
            f"{source} has values that are not finite numbers in {name_rows(bad)}; every "
            "embedding needs all of its numbers."
        )


def moments_of(inputs: MemmapInputs, chosen: np.ndarray) -> Moments:
    """`Moments.of` the chosen items, from sums over one pass.

    In float64 and about the first of them, so that nothing cancels.
    """
    wanted, first = torch.zeros(len(inputs), dtype=torch.bool), inputs[int(chosen[0])].double()
    wanted[torch.from_numpy(chosen)] = True
    total, squares, start = torch.zeros_like(first), torch.zeros_like(first), 0
    for block in inputs.blocks():
        shifted = block[wanted[start : start + len(block)]].double() - first
        total, squares = total + shifted.sum(0), squares + shifted.square().sum(0)
        start += len(block)
    items = len(chosen)
    variance = (squares - total.square() / items) / max(items - 1, 1)
    scale = torch.where(squares > 0, variance.clamp(min=0).sqrt(), 1.0).float()
    return Moments((first + total / items).float(), torch.where(scale > 0, scale, 1.0))


def _waits() -> int:
    """How often this process has waited for a page from the disk, where the system counts that."""
    return 0 if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def _rows_at_once(values: np.ndarray) -> int:
    return max(1, AT_ONCE // values.shape[1])
