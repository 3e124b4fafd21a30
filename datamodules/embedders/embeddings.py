"""Embeddings of a whole dataset, made once and kept on disk.

They are kept in shards, so an interruption loses little, and are checked whenever they are read.
"""

import hashlib
import json
import os
import re
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor
from tqdm import tqdm

from core.atomic_io import remove_partial_files, write_atomically
from core.errors import InputError, name_rows
from core.folder_lock import folder_lock
from datamodules.embedders.embedder import Embedder, Inputs


def embed_all(
    embedder: Embedder, inputs: Inputs, folder: str | os.PathLike, chunk: int = 256
) -> Tensor:
    """The embeddings [N, dimensions] of all inputs.

    Those that `folder` holds already are read; the others are made and kept there.

    Each combination of embedder and inputs has a folder of its own, named by a digest of both, with
    a shard for every `chunk` inputs. A shard appears whole or not at all, so a process that is
    killed loses one shard's work; one that was cut short or altered is made again. Of several
    processes that want the same embeddings, one makes them (it holds a lock) and the others wait.
    """
    if len(inputs) == 0:
        raise InputError(
            f"there is nothing to embed with {embedder.name}; give it at least one input."
        )
    origin = {
        "embedder": json.dumps(embedder.identity, sort_keys=True),
        "inputs": digest_of(inputs),
    }
    key = hashlib.sha256(json.dumps(origin, sort_keys=True).encode()).hexdigest()[:16]
    place = Path(folder) / f"{re.sub('[^a-z0-9]+', '-', embedder.name.lower()).strip('-')}-{key}"
    values = torch.empty(len(inputs), embedder.dimensions)
    shards = [
        Shard(place, slice(start, min(start + chunk, len(inputs))), origin)
        for start in range(0, len(inputs), chunk)
    ]
    if all(shard.read_into(values) for shard in shards):
        return values
    with folder_lock(place, "makes the embeddings"):
        remove_partial_files(place)
        # another process may have made some meanwhile
        missing = [shard for shard in shards if not shard.read_into(values)]
        if missing:
            _make(embedder, inputs, missing, values, place)
    return values


def digest_of(inputs: Inputs) -> str:
    """A sha256 that two datasets share only if they are equal item by item, in the same order.

    >>> digest_of(["ab", "c"]) == digest_of(["a", "bc"])
    False
    """
    if isinstance(inputs, Tensor):
        shape, parts = [str(inputs.dtype), *inputs.shape], [inputs.cpu().contiguous().numpy().data]
    else:
        strange = [row for row, text in enumerate(inputs) if not isinstance(text, str)]
        if strange:
            raise InputError(
                f"{name_rows(strange)} of the texts: there is a "
                f"{type(inputs[strange[0]]).__name__} where a text should be."
            )
        encoded = [text.encode(errors="surrogatepass") for text in inputs]
        lengths = np.fromiter(map(len, encoded), "<i8").tobytes()
        shape, parts = ["texts", len(inputs)], [lengths, b"".join(encoded)]
    digest = hashlib.sha256(json.dumps(shape).encode())
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class Shard:
    """The embeddings of consecutive inputs as one safetensors file, which says what it was made of
    and carries a digest of its values.
    """

    def __init__(self, place: Path, rows: slice, origin: dict[str, str]):
        self.rows, self.origin = rows, {**origin, "rows": f"{rows.start}:{rows.stop}"}
        self.path = place / f"{rows.start:09d}-{rows.stop:09d}.safetensors"

    def read_into(self, values: Tensor) -> bool:
        """Copy the shard to its rows of all values; False where it is absent, cut short, altered,
        of something else, or holds other than finite numbers: a cache may be somebody else's.
        """
        wanted = values[self.rows]
        try:
            with safe_open(self.path, framework="pt") as file:
                written, result = file.metadata() or {}, file.get_tensor("embeddings")
        except (OSError, SafetensorError):
            return False
        if result.shape != wanted.shape or result.dtype != wanted.dtype:
            return False
        if written != {**self.origin, "values": _digest(result)}:
            return False
        if not result.isfinite().all():
            return False
        wanted.copy_(result)
        return True

    def write(self, result: Tensor) -> None:
        """Keep these embeddings, with what they were made of and a digest of their values."""
        content = save({"embeddings": result}, metadata={**self.origin, "values": _digest(result)})
        write_atomically(self.path, content)


def _digest(values: Tensor) -> str:
    return hashlib.sha256(values.contiguous().numpy().data).hexdigest()


def _make(
    embedder: Embedder, inputs: Inputs, missing: list[Shard], values: Tensor, place: Path
) -> None:
    for shard in missing:
        if shard.path.exists():
            print(f"{shard.path} was cut short or altered; its embeddings are made again")
    notes = embedder.look_over(inputs)
    about = {
        "embedder": embedder.name,
        "identity": embedder.identity,
        "items": len(inputs),
        "notes": notes,
    }
    # for people; nothing reads it
    write_atomically(place / "about.json", json.dumps(about, indent=2) + "\n")
    estimate = embedder.estimate(inputs[shard.rows] for shard in missing)
    for sentence in [*notes, *([estimate] if estimate else [])]:
        print(sentence)
    left = sum(shard.rows.stop - shard.rows.start for shard in missing)
    with tqdm(
        total=len(inputs),
        initial=len(inputs) - left,
        desc=embedder.name,
        unit=" items",
        disable=None,
    ) as bar:
        for shard in missing:
            rows = shard.rows
            result = embedder.embed(inputs[rows])
            values[rows] = _checked(result, values[rows], embedder.name, rows.start)
            shard.write(values[rows])
            bar.update(rows.stop - rows.start)


def _checked(result: Tensor, wanted: Tensor, name: str, start: int) -> Tensor:
    if result.shape != wanted.shape or result.dtype != wanted.dtype:
        raise InputError(
            f"{name} gave {result.dtype} {list(result.shape)} where {wanted.dtype} "
            f"{list(wanted.shape)} was expected."
        )
    bad = (~result.isfinite().all(1)).nonzero().flatten() + start
    if len(bad):
        raise InputError(
            f"{name} gave values that are not finite numbers for {name_rows(bad.numpy())} of the "
            "inputs; nothing of them was kept."
        )
    return result
