"""Raw judgements from long tables: every way of writing them gives the same arrays, and every
contradiction ends in one sentence.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.errors import InputError
from corpora.annotation.judgements import NO, UNSURE, YES, judgements_from_rows, read_judgements

WORDS = {NO: "no", UNSURE: "unsure", YES: "yes"}


def long_rows(
    annotations: dict[tuple[str, str], list[int]], **columns: dict[tuple[str, str], object]
) -> dict[str, list]:
    """The long table of some annotations, ten rows each, with further columns where they
    are given.
    """
    table: dict[str, list] = {
        name: [] for name in ("annotator", "image", "label", "answer", *columns)
    }
    for whose, answers in annotations.items():
        for digit, answer in enumerate(answers):
            for name, value in zip(
                ("annotator", "image", "label", "answer"),
                (*whose, digit, WORDS[answer]),
                strict=True,
            ):
                table[name].append(value)
            for name, values in columns.items():
                table[name].append(values.get(whose, ""))
    return table


def sure_of(*digits: int) -> list[int]:
    return [YES if digit in digits else NO for digit in range(10)]


ANNOTATIONS = {
    ("ann", "a.png"): sure_of(3),
    ("bob", "a.png"): sure_of(),
    ("ann", "b.png"): [UNSURE] * 10,
}


def test_answers_are_found_by_annotator_and_image_whatever_the_order():
    table = long_rows(
        ANNOTATIONS, milliseconds={("ann", "a.png"): "1500", ("ann", "b.png"): "900.5"}
    )
    order = np.random.default_rng(0).permutation(30)
    result = judgements_from_rows(
        {name: [values[row] for row in order] for name, values in table.items()}, Path("raw.csv")
    )
    assert len(result) == 3
    messages = {
        (result.annotators[a], result.images[i]): row.tolist()
        for a, i, row in zip(result.annotator, result.image, result.answers, strict=True)
    }
    assert messages == ANNOTATIONS
    times = dict(
        zip(
            zip(result.annotators[result.annotator], result.images[result.image], strict=True),
            result.milliseconds,
            strict=True,
        )
    )
    assert times[("ann", "a.png")] == 1500
    assert times[("ann", "b.png")] == 900.5
    assert np.isnan(times[("bob", "a.png")])
    assert (result.check == -1).all()


def test_csv_and_parquet_hold_the_same(tmp_path: Path):
    table = long_rows(ANNOTATIONS, milliseconds=dict.fromkeys(ANNOTATIONS, 700))
    csv = tmp_path / "raw.csv"
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    csv.write_text("\n".join(lines) + "\n")
    typed = {
        **table,
        "answer": [word.title() for word in table["answer"]],
        "label": [float(label) for label in table["label"]],
    }
    pq.write_table(
        pa.table({**typed, "check": pa.nulls(30, pa.float64())}), tmp_path / "raw.parquet"
    )
    first, second = read_judgements(csv), read_judgements(tmp_path / "raw.parquet")
    for name in ("images", "annotators", "image", "annotator", "answers", "milliseconds", "check"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert first.milliseconds.tolist() == [700] * 3


def test_who_fails_one_attention_check_is_out_with_all_they_said():
    good, unsure, wrong, double = "good", "unsure", "wrong", "double"
    annotations = {(who, "item"): sure_of(1) for who in (good, unsure, wrong, double)}
    annotations |= {(who, "gold-4"): sure_of(4) for who in (good, unsure, wrong)} | {
        (double, "gold-4"): sure_of(4, 9)
    }
    annotations |= {
        (good, "gold-7"): sure_of(7),
        (unsure, "gold-7"): [*sure_of()[:7], UNSURE, NO, NO],
        (wrong, "gold-7"): sure_of(1),
    }
    checks = {whose: whose[1][-1] for whose in annotations if whose[1].startswith("gold")}
    left = judgements_from_rows(long_rows(annotations, check=checks), Path("raw.csv")).attentive()
    assert left.annotators.tolist() == [good]
    assert left.images.tolist() == ["item"]
    assert left.answers.tolist() == [sure_of(1)]


def test_an_unsure_about_another_digit_passes_a_check():
    answers = sure_of(4)
    answers[9] = UNSURE
    table = long_rows(
        {("ann", "gold"): answers, ("ann", "item"): sure_of(1)}, check={("ann", "gold"): 4}
    )
    assert judgements_from_rows(table, Path("raw.csv")).attentive().images.tolist() == ["item"]


def test_nobody_is_left():
    table = long_rows(
        {("ann", "gold"): sure_of(3), ("ann", "item"): sure_of(1)}, check={("ann", "gold"): 4}
    )
    with pytest.raises(InputError, match="no annotation is left"):
        judgements_from_rows(table, Path("raw.csv")).attentive()


def changed(**changes: tuple[int, object]) -> dict[str, list]:
    table = long_rows(ANNOTATIONS, milliseconds=dict.fromkeys(ANNOTATIONS, 700), check={})
    for column, (row, value) in changes.items():
        table[column][row] = value
    return table


def longer(**row: object) -> dict[str, list]:
    table = long_rows(ANNOTATIONS)
    return {name: [*values, row[name]] for name, values in table.items()}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            changed(answer=(4, "maybe")),
            "raw.csv has the answer 'maybe' in row 4; every answer must be yes, no or unsure.",
        ),
        (
            changed(answer=(4, "")),
            "raw.csv has the answer '' in row 4; every answer must be yes, no or unsure.",
        ),
        (
            changed(label=(12, 10)),
            "raw.csv has another label than a digit in row 12; every label must be one of 0 to 9.",
        ),
        (
            changed(annotator=(0, " ")),
            "raw.csv has no annotator in row 0; every judgement needs one.",
        ),
        (changed(image=(29, None)), "raw.csv has no image in row 29; every judgement needs one."),
        (
            longer(annotator="ann", image="a.png", label=3, answer="no"),
            "raw.csv has an answer that contradicts an earlier one of the same annotator in row "
            "30; each class of an image is judged once.",
        ),
        (
            longer(annotator="ann", image="a.png", label=3, answer="yes"),
            "raw.csv has an answer of the same annotator that was there before in row 30; each "
            "class of an image is judged once.",
        ),
        (
            {name: values[:13] + values[14:] for name, values in long_rows(ANNOTATIONS).items()},
            "raw.csv has no answer of annotator bob on class 3 of image a.png; whoever judges an "
            "image must answer to all ten classes.",
        ),
        (
            changed(milliseconds=(5, "soon")),
            "raw.csv has milliseconds that are no time in row 5; they must be numbers above 0, "
            "or empty.",
        ),
        (
            changed(milliseconds=(5, -3)),
            "raw.csv has milliseconds that are no time in row 5; they must be numbers above 0, "
            "or empty.",
        ),
        (
            changed(milliseconds=(5, 701)),
            "raw.csv has milliseconds that differ from those of another row of the annotation in "
            "row 5; all ten rows of one must say the same.",
        ),
        (
            changed(check=(5, "x")),
            "raw.csv has another check than a digit in row 5; it must be the digit shown, or "
            "empty for ordinary images.",
        ),
    ],
)
def test_a_bad_judgement_is_told_in_one_sentence(table: dict[str, list], message: str):
    with pytest.raises(InputError) as mistake:
        judgements_from_rows(table, Path("raw.csv"))
    assert str(mistake.value) == message
