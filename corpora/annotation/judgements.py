"""Raw judgements: who said yes, no or unsure to each digit of which image.

Read from a long table, checked once, kept as arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import InputError
from datamodules.io.tables import read_table, refuse

DIGITS = 10  # that annotators are asked about
NO, UNSURE, YES = 0, 1, 2
ANSWERS = {"no": NO, "unsure": UNSURE, "yes": YES}
# tables may have turned numbers into fractions
LABELS = {form: digit for digit in range(DIGITS) for form in (str(digit), f"{digit}.0")}
ABSENT: dict[str, int] = {"": -1, "nan": -1, "none": -1}
COLUMNS = ("annotator", "image", "label", "answer")
OPTIONAL = ("milliseconds", "check")


@dataclass(frozen=True)
class Judgements:
    """One entry per annotation: what one annotator said about all ten digits of one image."""

    images: np.ndarray  # their ids, in order
    annotators: np.ndarray  # their ids, in order
    image: np.ndarray  # row number in `images`, [P]
    annotator: np.ndarray  # row number in `annotators`, [P]
    answers: np.ndarray  # NO, UNSURE or YES, int8 [P, 10]
    milliseconds: np.ndarray  # how long the annotator took, [P]; NaN where that is not given
    check: np.ndarray  # the digit that an attention check shows, [P]; -1 for an ordinary image

    def __len__(self) -> int:
        return len(self.image)

    def take(self, chosen: np.ndarray) -> "Judgements":
        """These annotations, with the images and annotators that are left."""
        images, image = np.unique(self.image[chosen], return_inverse=True)
        annotators, annotator = np.unique(self.annotator[chosen], return_inverse=True)
        rest = (self.answers[chosen], self.milliseconds[chosen], self.check[chosen])
        return Judgements(self.images[images], self.annotators[annotators], image, annotator, *rest)

    @property
    def inattentive(self) -> np.ndarray:
        """The row numbers in `annotators` of those who failed an attention check.

        Who says yes to the digit that a check shows, and to no other, has passed it; the paper does
        not state what it counted as failing.
        """
        checks = np.flatnonzero(self.check >= 0)
        wanted = (np.arange(DIGITS) == self.check[checks, None]) * YES
        return np.unique(
            self.annotator[checks[((self.answers[checks] == YES) * YES != wanted).any(1)]]
        )

    def attentive(self) -> "Judgements":
        """Without the annotators who failed an attention check, and without the checks
        themselves.
        """
        kept = (self.check < 0) & ~np.isin(self.annotator, self.inattentive)
        if not kept.any():
            raise InputError(
                "no annotation is left without the attention checks and those who failed one; "
                "some must have passed them all."
            )
        return self.take(np.flatnonzero(kept))


def read_judgements(path: Path) -> Judgements:
    """A .csv, .parquet or .jsonl file with one row per (annotator, image, class); failed attention
    checks are still in it.

    Its columns are annotator, image, label (0 to 9) and answer (yes, no or unsure). It may have
    milliseconds, the time that the annotator took for the image, and check, the digit that an
    attention check shows (empty for ordinary images); both are the same in the image's ten rows.
    """
    return judgements_from_rows(read_table(path, COLUMNS, OPTIONAL), path)


def judgements_from_rows(table: Mapping[str, Sequence[Any]], source: Path) -> Judgements:
    """Columns of equal length as one `Judgements`; `source` names them in errors.

    The order of the rows does not matter.

    >>> rows = {"annotator": ["ann"] * 10, "image": [7] * 10, "label": range(10)}
    >>> rows["answer"] = ["yes"] + ["no"] * 9
    >>> judgements_from_rows(rows, Path("raw.csv")).answers.tolist()
    [[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
    """
    if not len(table["answer"]):
        raise InputError(
            f"{source} has no rows; it must have one for each class of every image that somebody "
            "judged."
        )
    words = {column: _words(table[column]) for column in (*COLUMNS, *OPTIONAL) if column in table}
    for column in ("annotator", "image"):
        empty = np.flatnonzero(_codes(words[column], ABSENT, 0) < 0)
        refuse(empty, source, f"no {column}", "every judgement needs one")
    answer = _codes(words["answer"], ANSWERS, -1)
    unknown = np.flatnonzero(answer < 0)
    fault = f"the answer '{table['answer'][unknown[0]]}'" if len(unknown) else ""
    refuse(unknown, source, fault, "every answer must be yes, no or unsure")
    label = _codes(words["label"], LABELS, -1)
    fault, allowed = "another label than a digit", "every label must be one of 0 to 9"
    refuse(np.flatnonzero(label < 0), source, fault, allowed)
    (annotators, annotator), (images, image) = words["annotator"], words["image"]
    annotations, whose = np.unique(annotator * len(images) + image, return_inverse=True)
    annotator, image = np.divmod(annotations, len(images))
    _refuse_repeats(whose * DIGITS + label, answer, source)
    answers = np.full((len(annotations), DIGITS), -1, np.int8)
    answers[whose, label] = answer
    missing = np.argwhere(answers < 0)
    if len(missing):
        row, digit = missing[0]
        raise InputError(
            f"{source} has no answer of annotator {annotators[annotator[row]]} on class {digit} "
            f"of image {images[image[row]]}; "
            "whoever judges an image must answer to all ten classes."
        )
    millis = _once(_times(words, source), whose, len(annotations), source, "milliseconds")
    millis = np.where(millis < 0, np.nan, millis)
    checks = np.full(len(label), -1)
    if "check" in words:
        checks = _codes(words["check"], LABELS | ABSENT, -2)
    allowed = "it must be the digit shown, or empty for ordinary images"
    refuse(np.flatnonzero(checks < -1), source, "another check than a digit", allowed)
    check = _once(checks, whose, len(annotations), source, "check")
    return Judgements(images, annotators, image, annotator, answers, millis, check)


# the different words of a column, and which of them each row has
Words = tuple[np.ndarray, np.ndarray]


def _words(values: Sequence[Any]) -> Words:
    stripped = np.array([str(value).strip() for value in values])
    words, which = np.unique(stripped, return_inverse=True)
    return words, which


def _codes(column: Words, meaning: Mapping[str, int], otherwise: int) -> np.ndarray:
    words, which = column
    return np.array([meaning.get(word.lower(), otherwise) for word in words])[which]


def _times(words: dict[str, Words], source: Path) -> np.ndarray:
    """Milliseconds of each row; -1 where they are not given."""
    if "milliseconds" not in words:
        return np.full(len(words["answer"][1]), -1.0)
    different, which = words["milliseconds"]
    times = [-1.0 if word.lower() in ABSENT else _positive(word) for word in different]
    values = np.array(times)[which]
    fault, allowed = "milliseconds that are no time", "they must be numbers above 0, or empty"
    refuse(np.flatnonzero(np.isnan(values)), source, fault, allowed)
    return values


def _positive(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        return np.nan
    return number if 0 < number < np.inf else np.nan


def _refuse_repeats(cell: np.ndarray, answer: np.ndarray, source: Path) -> None:
    """A cell is a class of an image in the eyes of one annotator, who has one answer to it."""
    _, first, which = np.unique(cell, return_index=True, return_inverse=True)
    contradictory = np.flatnonzero(answer != answer[first][which])
    allowed = "each class of an image is judged once"
    fault = "an answer that contradicts an earlier one of the same annotator"
    refuse(contradictory, source, fault, allowed)
    again = np.setdiff1d(np.arange(len(cell)), first)
    refuse(again, source, "an answer of the same annotator that was there before", allowed)


def _once(
    values: np.ndarray, whose: np.ndarray, annotations: int, source: Path, column: str
) -> np.ndarray:
    """What all ten rows of each annotation say alike."""
    result = np.empty(annotations, values.dtype)
    result[whose] = values
    different = np.flatnonzero(values != result[whose])
    fault = f"{column} that differ from those of another row of the annotation"
    refuse(different, source, fault, "all ten rows of one must say the same")
    return result
