"""What was understood of a dataset's votes, before anything is trained on them.

These are the lines that `python cli.py describe` prints.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from torch import Tensor

from core.errors import name_rows, name_some
from datamodules.custom.describe_worth import describe_worth
from datamodules.custom.duplicates import first_equal
from datamodules.memmap_inputs import MemmapInputs
from datamodules.summary import DatasetSummary
from datamodules.vote_datamodule import VoteDataModule
from datamodules.votes.agreement import (
    FAR,
    FEWEST,
    RARE,
    annotator_records,
    far_below,
    krippendorff_alpha,
    one_label_only,
)
from datamodules.votes.labels import LookAlikes, look_alikes, printed

WIDTH = 40  # of the longest bar
MOST_BARS = 12  # of one histogram
MOST_CLASSES = 20  # that are listed one by one, as are annotators and pairs


def describe(data: VoteDataModule) -> Iterator[str]:
    """What there is to say about a dataset, line by line."""
    summary = data.summarize()
    labels = data.class_names or tuple(map(str, range(data.num_classes)))
    votes, names = summary.votes, tuple(f"'{printed(label)}'" for label in labels)
    crowd = "SIMULATED annotators" if data.simulated else "not marked as simulated"
    order = ", in this order" if data.ordinal else ""
    yield f"{data.name}: {votes.source}"
    yield _line("annotators", crowd)
    yield _line("items", f"{len(votes) + len(summary.unvoted):,}, {_kind(summary.items)}")
    unvoted = _named(summary.unvoted, "they cannot be trained on")
    yield _line("without votes", unvoted if len(summary.unvoted) else "none")
    yield _line("classes", f"{len(names)}{order}: {name_some(names, shown=MOST_CLASSES)}")
    yield from _of_look_alikes(look_alikes(labels))
    yield from _of_votes(summary)
    if votes.counts is None:
        shares = votes.float_probs().mean(0, dtype=np.float64)
    else:
        shares = _shares(votes.counts)
    yield from _of_classes(shares, names)
    yield _line(
        "entropy",
        f"mean {votes.normalized_entropy.mean():.3f} of an even spread; "
        f"{votes.unanimous.mean():.1%} of items are unanimous",
    )
    edges = np.linspace(0, 1, 11)
    heights, _ = np.histogram(votes.normalized_entropy.clip(0, 1), edges)
    yield from bars([f"{low:.1f} to {high:.1f}" for low, high in pairwise(edges)], heights)
    yield _line("agreement", _agreement(summary, data.ordinal))
    yield from describe_worth(votes, data.ordinal)
    yield from _of_duplicates(summary)
    yield from _of_annotators(summary, names)


def _of_look_alikes(alike: Sequence[LookAlikes]) -> Iterator[str]:
    if alike:
        yield _line(
            "LOOK ALIKE",
            f"{len(alike):,} pair(s) of classes: count them as one in the file, if they are one",
        )
        yield from (f"  {pair}" for pair in alike[:MOST_CLASSES])
    if len(alike) > MOST_CLASSES:
        yield f"  and {len(alike) - MOST_CLASSES:,} more"


def _of_votes(summary: DatasetSummary) -> Iterator[str]:
    if summary.votes.counts is None:
        yield _line(
            "votes", "not known, there are only probabilities: Multipass needs data.votes_per_item"
        )
        return
    each = summary.votes.counts.sum(1, dtype=np.int64)
    people = f" by {len(summary.annotations.names):,} annotators" if summary.annotations else ""
    yield _line("votes", f"{each.sum():,}{people}, read from {summary.form}")
    yield _line("votes per item", f"{each.min()} to {each.max()}, mean {each.mean():.2f}")
    width = -(-int(each.max() - each.min() + 1) // MOST_BARS)
    heights = np.bincount((each - each.min()) // width)
    lows = [int(each.min()) + width * place for place in range(len(heights))]
    labels = [str(low) if width == 1 else f"{low} to {low + width - 1}" for low in lows]
    yield from bars(labels, heights)


def _of_classes(shares: np.ndarray, names: Sequence[str]) -> Iterator[str]:
    yield _line("class shares", f"of all votes, from {shares.min():.2%} to {shares.max():.2%}")
    if len(names) <= MOST_CLASSES:
        yield from bars(names, shares, [f"{share:.1%}" for share in shares])
    never = [name for name, share in zip(names, shares, strict=True) if share == 0]
    if never:
        yield _line("never chosen", name_some(never))


def _agreement(summary: DatasetSummary, ordinal: bool) -> str:
    if summary.votes.counts is None:
        return "not known, there are only probabilities"
    alpha = krippendorff_alpha(summary.votes.counts)
    if np.isnan(alpha):
        return (
            "Krippendorff's alpha is not defined: no item has two votes, or all votes name one "
            "class"
        )
    of_order = ""
    if ordinal:
        of_order = f", {krippendorff_alpha(summary.votes.counts, interval=True):.3f} as ratings"
    return f"Krippendorff's alpha {alpha:.3f} (nominal; 1 is perfect, 0 is chance){of_order}"


def _of_duplicates(summary: DatasetSummary) -> Iterator[str]:
    first = first_equal(summary.items)
    if first is None:
        yield _line("duplicates", "not looked for, the inputs are read one by one")
    else:
        again = np.flatnonzero(first != np.arange(len(first)))
        pairs = [f"{_id(summary, row)} = {_id(summary, first[row])}" for row in again[:4].tolist()]
        equal = f"{len(again):,} items equal an earlier one: {name_some(pairs, len(again))}"
        yield _line("duplicates", equal if pairs else "no two items are equal")
    if summary.annotations is not None:
        rows = summary.repeated
        repeated = f"{len(rows):,}, in {name_rows(rows)} of the file" if len(rows) else "none"
        yield _line("repeated votes", f"{repeated} (one annotator, one item)")


def _of_annotators(summary: DatasetSummary, names: Sequence[str]) -> Iterator[str]:
    if summary.annotations is None or summary.votes.counts is None:
        yield _line("suspicious", "not looked for, it is not known who voted")
        return
    people = summary.annotations.names
    records = annotator_records(summary.annotations, summary.votes.counts)
    yield _line(
        "votes by person",
        f"{records.votes.min():,} to {records.votes.max():,}, mean {records.votes.mean():.1f}",
    )
    below, median, spread = far_below(records)
    constant = one_label_only(records, _shares(summary.votes.counts))
    yield _line(
        "suspicious",
        f"{len(np.union1d(below, constant))} of {(records.compared >= FEWEST).sum():,} "
        f"annotators with {FEWEST} or more votes beside others'",
    )
    yield (
        f"  rule 1: agrees with others' votes more than {FAR:g} standard deviations less than "
        f"the median annotator ({median:.3f}, spread {spread:.3f})"
    )
    yield from (
        f"    {printed(people[who])}: {records.agreement[who]:.3f} over "
        f"{records.compared[who]:,} votes"
        for who in below[:MOST_CLASSES].tolist()
    )
    yield (
        f"  rule 2: always gave one label in {FEWEST} or more votes, the chance of which is "
        f"below {RARE:g} at that label's share"
    )
    yield from (
        f"    {printed(people[who])}: {names[int(records.favourite[who])]} in all of "
        f"{records.votes[who]:,} votes"
        for who in constant[:MOST_CLASSES].tolist()
    )
    if max(len(below), len(constant)) > MOST_CLASSES:
        yield f"    and more: the first {MOST_CLASSES} of each are listed"


def bars(
    labels: Sequence[str], heights: np.ndarray, numbers: Sequence[str] | None = None
) -> Iterator[str]:
    """A histogram as lines of text.

    >>> print("\\n".join(bars(["no", "yes"], np.array([1, 4]))))
      no  |##########                               1
      yes |######################################## 4
    """
    wide, most = max(map(len, labels)), max(float(heights.max()), 1e-300)
    for place, (label, height) in enumerate(zip(labels, heights, strict=True)):
        bar = "#" * int(np.ceil(height / most * WIDTH))
        yield f"  {label:{wide}s} |{bar:{WIDTH}s} {numbers[place] if numbers else f'{height:,}'}"


def _shares(counts: np.ndarray) -> np.ndarray:
    of_class = counts.sum(0, dtype=np.int64)
    return of_class / of_class.sum()


def _kind(items: Any) -> str:
    if isinstance(items, list):
        return "texts"
    if isinstance(items, Tensor):
        return f"each {' x '.join(map(str, items.shape[1:]))} numbers"
    if isinstance(items, MemmapInputs):
        return f"each {len(items[0]):,} numbers in a file"
    return "read one by one"


def _id(summary: DatasetSummary, row: Any) -> str:
    return str(row) if summary.ids is None else printed(summary.ids[int(row)].as_py())


def _named(ids: Any, consequence: str) -> str:
    some = name_some([printed(name) for name in ids[:4].to_pylist()], len(ids))
    return f"{len(ids):,} items ({some}); {consequence}"


def _line(name: str, message: str) -> str:
    return f"{name:16s}{message}"
