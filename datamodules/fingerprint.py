"""What a run was trained on, in a few digests: of the votes, the items and their split.

Digests are of decoded values, so a file that is saved again with the same content has the same
fingerprint. Inputs that are larger than memory are not read for it: they are told by the size and
time of their file and by blocks of it.
"""

import json
import os
from datetime import UTC, datetime
from typing import Any

import numpy as np
import xxhash
from torch import Tensor
from torch.utils.data import Dataset

from datamodules.memmap_inputs import MemmapInputs
from datamodules.votes.table import VoteTable

BLOCKS = 64  # of a file that is larger than memory
BLOCK = 1 << 16  # bytes of one
ITEMS = 16  # of a dataset of single inputs

# by part: where it came from, its digest and, of a file, its size and time
Fingerprint = dict[str, dict[str, Any]]


def digest_of_values(*values: np.ndarray) -> str:
    """Equal for arrays of equal shape, kind and numbers.

    >>> values = np.array([1, 2])
    >>> digest_of_values(values) == digest_of_values(values.copy())
    True
    >>> digest_of_values(values) == digest_of_values(values[::-1])
    False
    """
    digest = xxhash.xxh3_128()
    for array in values:
        digest.update(json.dumps([array.dtype.str, *array.shape]).encode())
        digest.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return digest.hexdigest()


def digest_of_votes(votes: VoteTable) -> str:
    """Of the counts, or of the probabilities where there are no counts."""
    return digest_of_values(votes.probs if votes.counts is None else votes.counts)


def digest_of_items(items: Any) -> dict[str, Any]:
    """Of texts, of a tensor, of a file that stays on disk, or of a dataset of single inputs.

    Of such a dataset only some items are looked at. A file adds its size and time to the digest.
    """
    if isinstance(items, MemmapInputs):
        return _of_mapped(items)
    if isinstance(items, Tensor):
        return {"digest": digest_of_values(items.detach().cpu().numpy())}
    if isinstance(items, Dataset):
        some = np.linspace(0, len(items) - 1, min(ITEMS, len(items))).astype(int)  # pyright: ignore[reportArgumentType]
        number = np.array(len(items))  # pyright: ignore[reportArgumentType]
        return {"digest": digest_of_values(number, *(np.asarray(items[int(row)]) for row in some))}
    encoded = [text.encode(errors="surrogatepass") for text in items]
    lengths = np.fromiter(map(len, encoded), np.int64)
    return {"digest": digest_of_values(lengths, np.frombuffer(b"".join(encoded), np.uint8))}


def _of_mapped(inputs: MemmapInputs) -> dict[str, Any]:
    values, rows, file = inputs.stored
    if file is None:
        return {"digest": digest_of_values(values, rows)}
    about = os.stat(file)
    plain = values.reshape(-1).view(np.uint8)  # still in its file
    starts = np.linspace(0, max(0, len(plain) - BLOCK), BLOCKS).astype(int)
    blocks = [plain[start : start + BLOCK] for start in np.unique(starts)]
    time = datetime.fromtimestamp(about.st_mtime_ns // 1_000_000_000, UTC)
    return {
        "digest": digest_of_values(np.array(values.shape), rows, *blocks),
        "size": about.st_size,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def fingerprint(data: Any, labels: VoteTable | None = None) -> Fingerprint:
    """Of a datamodule that is set up.

    `labels` is what it trains on, where that is not what it is judged by.
    """
    corpus = data.corpus
    items = corpus.items or digest_of_items(corpus.inputs)
    parts: Fingerprint = {
        "votes": {"source": corpus.votes.source, "digest": digest_of_votes(corpus.votes)},
        "items": {"source": data.items_source, **items},
        "split": {"source": data.split_source, "digest": digest_of_split(corpus.splits)},
        **_classes(data, corpus.votes.source),
    }
    if labels is None or labels is corpus.votes:
        return parts
    return parts | fingerprint_of_labels(labels)


def digest_of_split(splits: dict[str, np.ndarray]) -> str:
    """Of the row numbers of train, val and test, in their order."""
    names = ("train", "val", "test")
    return digest_of_values(*(np.asarray(splits[name], np.int64) for name in names))


def _classes(data: Any, source: str) -> Fingerprint:
    """What the columns of the vote table mean, where they have names."""
    if not data.class_names:
        return {}
    names = json.dumps(list(data.class_names)).encode()
    return {"classes": {"source": source, "digest": xxhash.xxh3_128(names).hexdigest()}}


def fingerprint_of_labels(labels: VoteTable) -> Fingerprint:
    """The part of a fingerprint that says which labels were trained on, if not the votes."""
    return {"labels": {"source": labels.source, "digest": digest_of_votes(labels)}}


def fingerprint_at_hand(data: Any) -> Fingerprint:
    """What can be told of a datamodule that is not set up, without embedding anything.

    That is its votes, classes and items, and their split where the files say it.
    """
    summary = data.summarize()
    parts: Fingerprint = {
        "votes": {"source": summary.votes.source, "digest": digest_of_votes(summary.votes)},
        "items": {"source": data.items_source, **digest_of_items(summary.items)},
        **_classes(data, summary.votes.source),
    }
    if summary.splits is not None:
        split = digest_of_split(summary.splits)
        parts["split"] = {"source": data.split_source, "digest": split}
    return parts


def difference(trained_on: Fingerprint, now: Fingerprint) -> str | None:
    """What has changed, as a clause; None where nothing has that both know of.

    >>> before = {"votes": {"source": "votes.csv", "digest": "a1"}}
    >>> after = {"votes": {"source": "votes.csv", "digest": "b2"}}
    >>> difference(before, after)
    'the votes in votes.csv are not those that it was trained on'
    """
    for part in ("votes", "classes", "labels", "items", "split"):
        before, after = trained_on.get(part), now.get(part)
        if before is None or after is None:
            continue
        result = {name: value for name, value in after.items() if name != "source"}
        if result == {name: before.get(name) for name in result}:
            continue
        if result["digest"] == before.get("digest") and result.get("size") == before.get("size"):
            return (
                f"{after['source']} was written again since it was trained on (a file of this "
                "size is told by its time as well; if it is the same file, "
                f"give it its time back with: touch -d {before.get('time')} {after['source']})"
            )
        if part == "split":
            return f"{after['source']} is not the one that it was trained on"
        return f"the {part} in {after['source']} are not those that it was trained on"
    return None
