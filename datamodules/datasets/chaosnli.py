"""ChaosNLI: pairs of sentences, each judged by 100 people (Nie et al. 2020; CC BY-NC 4.0)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import ClassVar

import numpy as np

from core.errors import InputError
from datamodules.embedders import Embedder, SentenceEmbedder
from datamodules.frozen import FrozenInThreeParts
from datamodules.io.files import PublishedFile, find
from datamodules.io.tables import read_table, refuse
from datamodules.votes.table import VoteTable


@dataclass(frozen=True)
class Task:
    """What people were asked."""

    labels: dict[str, str]  # as the files write them, in the order of the classes, and their names
    fields: tuple[str, ...]  # of an example
    template: str  # of its text


NLI = Task(
    {"e": "entailment", "n": "neutral", "c": "contradiction"},
    ("premise", "hypothesis"),
    "Premise: {premise}\nHypothesis: {hypothesis}",
)
ABDUCTION = Task(  # which of two hypotheses explains how one observation led to the other
    {"1": "hypothesis 1", "2": "hypothesis 2"},
    ("obs1", "obs2", "hyp1", "hyp2"),
    "Beginning: {obs1}\nEnd: {obs2}\nHypothesis 1: {hyp1}\nHypothesis 2: {hyp2}",
)
TASKS = {"snli": NLI, "mnli": NLI, "alphanli": ABDUCTION}


def _published(name: str, sha256: str) -> PublishedFile:
    archive = "https://www.dropbox.com/s/h4j7dqszmpt2679/chaosNLI_v1.0.zip?dl=1"
    file = f"chaosNLI_{name}.jsonl"
    return PublishedFile(f"chaosnli/{file}", sha256, archive, member=f"chaosNLI_v1.0/{file}")


class ChaosNLI(FrozenInThreeParts):
    """SNLI and MNLI as one dataset of three classes, or any of the subsets.

    The files are `chaosnli/chaosNLI_*.jsonl` below `root`.
    """

    FILES: ClassVar = {
        "snli": _published(
            "snli", "99f9015ddda7d85f66a087452bc30d53974314fe27e7d589e2f41ad44bd509c1"
        ),
        "mnli": _published(
            "mnli_m", "8eb49b589488e7b1a9ec95fb8a864bd50f0509b4f808eed0aed3f8167617664d"
        ),
        "alphanli": _published(
            "alphanli", "f55817ecc11a02ba3030cd7d2c567d23843456809020723abad53f4fde024c9e"
        ),
    }

    def __init__(
        self,
        embedder: Embedder = SentenceEmbedder(),
        subsets: tuple[str, ...] = ("snli", "mnli"),
        template: str | None = None,
        **kwargs,
    ):
        """
        Args:
            embedder: A class of datamodules.embedders by name, with its own options; the paper used
                text-embedding-3-large (OpenAIEmbedder).
            subsets: snli, mnli or both (three classes), or alphanli alone (two classes).
            template: The text of an item, with its fields in braces: premise and hypothesis, of
                alphanli obs1, obs2, hyp1 and hyp2. Null for one line per field. The paper does not
                state how it joined them.
        """
        super().__init__(embedder=embedder, **kwargs)
        self.task = _task_of(subsets)
        self.subsets = tuple(subsets)
        self.template = _checked_template(template or self.task.template, self.task.fields)
        self.class_names = tuple(self.task.labels.values())
        self.num_classes = len(self.class_names)

    def read(self) -> tuple[list[str], VoteTable]:
        """The texts by the template, and the votes, of one subset after the other."""
        paths = [find(self.root, self.FILES[subset]) for subset in self.subsets]
        subsets = [read_subset(path, self.task, self.template) for path in paths]
        ids, texts, tables = zip(*subsets, strict=True)
        times = Counter(uid for part in ids for uid in part)
        shared = [uid for uid, number in times.items() if number > 1]
        if shared:
            raise InputError(
                f"{' and '.join(map(str, paths))} both hold the uid {shared[0]}; two items must "
                "not share an id."
            )
        counts = np.concatenate([table.counts for table in tables])
        votes = VoteTable(counts, source=" and ".join(map(str, paths)))
        return [text for part in texts for text in part], votes

    def item_ids(self) -> list[str]:
        """The uids."""
        paths = [find(self.root, self.FILES[subset]) for subset in self.subsets]
        return [uid for path in paths for uid in read_table(path, ("uid",))["uid"]]


def read_subset(path: Path, task: Task, template: str) -> tuple[list[str], list[str], VoteTable]:
    """Ids, texts by the template, and votes of one file's items."""
    table = read_table(path, ("uid", "label_counter", "example"))
    ids = table["uid"]
    counters, examples = (
        [value if isinstance(value, dict) else {} for value in table[name]]
        for name in ("label_counter", "example")
    )
    nameless = [row for row, uid in enumerate(ids) if not isinstance(uid, str) or not uid]
    refuse(nameless, path, "no uid", "every item needs one")
    first = {uid: row for row, uid in reversed(list(enumerate(ids)))}
    again = [row for row, uid in enumerate(ids) if first[uid] != row]
    refuse(again, path, "the uid of an earlier row", "two items must not share an id")
    needed = f"every example needs the fields {', '.join(task.fields)}"
    for field in task.fields:
        texts = [example.get(field) for example in examples]
        absent = [row for row, text in enumerate(texts) if not isinstance(text, str)]
        refuse(absent, path, f"no {field}", needed)
        empty = [row for row, example in enumerate(examples) if not example[field].strip()]
        refuse(empty, path, f"an empty {field}", "there is nothing to judge or to embed in it")
    # a label that nobody chose is absent, or null where the library made all rows alike
    strange = [
        row
        for row, counter in enumerate(counters)
        if any(votes for label, votes in counter.items() if label not in task.labels)
    ]
    refuse(strange, path, "a label outside the scale", f"labels must be {', '.join(task.labels)}")
    counts = [[counter.get(label) or 0 for label in task.labels] for counter in counters]
    votes = VoteTable(counts, source=str(path))
    return ids, [template.format(**example) for example in examples], votes


def _task_of(subsets: Sequence[str]) -> Task:
    unknown = [subset for subset in subsets if subset not in TASKS]
    if unknown:
        raise InputError(f"data.subsets names {unknown[0]}; it must be of {', '.join(TASKS)}.")
    if not subsets or len(set(subsets)) < len(subsets):
        raise InputError(
            f"data.subsets is {list(subsets)}; it must name at least one subset, and none twice."
        )
    if len({len(TASKS[subset].labels) for subset in subsets}) > 1:
        raise InputError(
            f"data.subsets is {list(subsets)}; alphanli has other classes than snli and mnli, so "
            "it goes alone."
        )
    return TASKS[subsets[0]]


def _checked_template(template: str, fields: tuple[str, ...]) -> str:
    try:
        named = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise InputError(
            f"data.template does not read as a template ({error}); write fields in braces, as in "
            f"{{{fields[0]}}}."
        ) from error
    strange = [name for name in named if name not in fields]
    if strange or not named:
        fault = f"names {{{strange[0]}}}" if strange else "names no field"
        raise InputError(
            f"data.template {fault}; the fields of these items are {', '.join(fields)}."
        )
    return template
