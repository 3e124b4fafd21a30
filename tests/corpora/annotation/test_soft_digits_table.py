"""soft-digits by its published columns: written and read again, in the forms that a published file
may have, and refused by row.
"""

from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli import main
from core.errors import InputError
from corpora.annotation.annotated_corpus import annotate
from corpora.annotation.judgements import NO, UNSURE, YES
from corpora.annotation.soft_digits_table import (
    COLUMNS,
    LABELS,
    SoftDigitsTable,
    read_soft_digits,
    write_soft_digits,
)
from datamodules.votes.table import VoteTable
from tests.corpora.annotation.test_judgements import long_rows, sure_of


def small_table(items: int = 12, simulated: bool = True) -> SoftDigitsTable:
    rng = np.random.default_rng(0)
    labels = {
        name: VoteTable.from_probs(rng.dirichlet(np.ones(11), items))
        for name in ("original", "equal", "uncertainty")
    }
    labels["majority"] = VoteTable.from_probs(np.eye(11)[labels["uncertainty"].majority])
    images = rng.integers(256, size=(items, 28, 28), dtype=np.uint8)
    # every source in every split
    split, source = (
        np.resize(["train", "val", "test", "train"], items),
        np.resize(["mnist", "mnist", "mukhoti"], items),
    )
    return SoftDigitsTable(
        images, labels, rng.random(items), rng.random(items), split, source, simulated
    )


def plain_columns(table: SoftDigitsTable) -> dict[str, list]:
    """The published columns as plain lists, without any of the datasets library's own types."""
    labels = {LABELS[name]: votes.probs.tolist() for name, votes in table.labels.items()}
    known = {
        name: getattr(table, name).tolist()
        for name in ("human_uncert_mean", "pct_ann_unsure", "split", "source")
    }
    return {"images": table.images.tolist(), **labels, **known}


@pytest.fixture
def columns() -> dict[str, list]:
    return plain_columns(small_table())


def write(columns: dict[str, list], path: Path) -> str:
    pq.write_table(pa.table(columns), path)
    return str(path)


def same(result: SoftDigitsTable, expected: SoftDigitsTable) -> bool:
    parts = ("images", "human_uncert_mean", "pct_ann_unsure", "split", "source")
    assert result.labels.keys() == expected.labels.keys()
    labels = all(
        np.allclose(result.labels[name].probs, expected.labels[name].probs, atol=1e-12)
        for name in expected.labels
    )
    return labels and all(
        np.array_equal(getattr(result, name), getattr(expected, name)) for name in parts
    )


@pytest.mark.parametrize("simulated", [True, False])
def test_what_is_written_is_read_again(simulated: bool, tmp_path: Path):
    table = small_table(simulated=simulated)
    write_soft_digits(tmp_path / "new" / "soft.parquet", table)
    again = read_soft_digits(str(tmp_path / "new" / "soft.parquet"))
    assert same(again, table)
    assert again.simulated == simulated
    assert {*COLUMNS, "indices", "file_name"} <= set(
        pq.read_schema(tmp_path / "new" / "soft.parquet").names
    )
    assert same(read_soft_digits(str(tmp_path / "new")), table)


def test_a_file_of_plain_lists_and_class_numbers(columns: dict[str, list], tmp_path: Path):
    table = small_table()
    columns["soft_label_argmax"] = table.labels["majority"].majority.tolist()
    again = read_soft_digits(write(columns, tmp_path / "soft.parquet"))
    assert same(again, table)
    assert not again.simulated


def test_labels_over_ten_digits_give_nothing_to_the_eleventh(
    columns: dict[str, list], tmp_path: Path
):
    columns["original_labels"] = np.eye(10)[np.arange(12) % 10].tolist()
    probs = read_soft_digits(write(columns, tmp_path / "soft.parquet")).labels["original"].probs
    np.testing.assert_array_equal(probs, np.eye(11)[np.arange(12) % 10])


def test_a_dataset_of_the_hub_is_all_its_parts(
    columns: dict[str, list], monkeypatch: pytest.MonkeyPatch
):
    whole = datasets.Dataset.from_dict(columns)
    parts = datasets.DatasetDict(
        {"train": whole.select(range(5)), "test": whole.select(range(5, 12))}
    )
    asked = []
    monkeypatch.setattr(
        datasets, "load_dataset", lambda *args, **options: asked.append((args, options)) or parts
    )
    assert same(read_soft_digits("somebody/soft-digits"), small_table())
    assert asked == [(("somebody/soft-digits",), {})]


def test_a_dataset_that_the_hub_does_not_give(monkeypatch: pytest.MonkeyPatch):
    def nothing(*args):
        raise ConnectionError("no route to\nhost")

    monkeypatch.setattr(datasets, "load_dataset", nothing)
    with pytest.raises(InputError) as mistake:
        read_soft_digits("somebody/soft-digits")
    expected = (
        "somebody/soft-digits could not be loaded from the hub (ConnectionError); give the "
        "id of a dataset, or a file."
    )
    assert str(mistake.value) == expected
    with pytest.raises(InputError, match=r"there is no missing.parquet; give a parquet file"):
        read_soft_digits("missing.parquet")


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        (
            "split",
            4,
            "validation",
            "soft.parquet has the split 'validation' in row 4; every split must be train, val or "
            "test.",
        ),
        (
            "images",
            7,
            np.zeros((27, 28), int).tolist(),
            "soft.parquet has an image of 27 x 28 in row 7; every image must have 28 x 28 pixels.",
        ),
        (
            "images",
            7,
            np.full((28, 28), 256).tolist(),
            "soft.parquet has other values than grey ones in the image of row 7; they must",
        ),
        ("images", 7, None, "soft.parquet has no image in row 7; it must be"),
        (
            "soft_label",
            3,
            [0.5] * 11,
            "soft.parquet, column soft_label, has probabilities that do not sum to 1 in row 3; "
            "every row must sum to 1.",
        ),
        (
            "soft_label",
            3,
            [1.5, -0.5, *[0.0] * 9],
            "soft.parquet, column soft_label, has probabilities outside 0 to 1 in row 3;",
        ),
        (
            "original_labels",
            3,
            [0.5, 0.5],
            "soft.parquet, column original_labels, has labels of different lengths or no "
            "numbers; all must",
        ),
        (
            "human_uncert_mean",
            2,
            1.2,
            "soft.parquet has human_uncert_mean outside 0 to 1 in row 2; it must be a share.",
        ),
        (
            "pct_ann_unsure",
            2,
            None,
            "soft.parquet has pct_ann_unsure outside 0 to 1 in row 2; it must be a share.",
        ),
    ],
)
def test_a_bad_row_is_told_in_one_sentence(
    columns: dict[str, list], tmp_path: Path, column: str, row: int, value: object, message: str
):
    columns[column][row] = value
    with pytest.raises(InputError) as mistake:
        read_soft_digits(write(columns, tmp_path / "soft.parquet"))
    assert str(mistake.value).startswith(f"{tmp_path}/{message}")
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "soft_label",
            [[0.25] * 4] * 12,
            "has labels of 4 numbers; they need one for each of 10 digits, and may have one for "
            "NaN",
        ),
        (
            "soft_label_argmax",
            [3] * 11 + [11],
            "has labels that are no class in row 11; they must be whole numbers from 0 to 10",
        ),
    ],
)
def test_a_bad_column_of_labels(
    columns: dict[str, list], tmp_path: Path, column: str, values: list, message: str
):
    columns[column] = values
    with pytest.raises(InputError, match=f"soft.parquet, column {column}, {message}"):
        read_soft_digits(write(columns, tmp_path / "soft.parquet"))


def test_a_missing_column_and_a_file_cut_short(columns: dict[str, list], tmp_path: Path):
    del columns["soft_label"]
    path = Path(write(columns, tmp_path / "soft.parquet"))
    with pytest.raises(
        InputError,
        match=r"soft.parquet has no column soft_label; it must have images, original_labels",
    ):
        read_soft_digits(str(path))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(
        InputError, match=r"soft.parquet cannot be read as parquet; it was cut short or altered"
    ):
        read_soft_digits(str(path))


def raw_and_items(folder: Path) -> tuple[Path, Path]:
    annotations = {
        ("ann", "p.png"): [YES, UNSURE, *[NO] * 8],
        ("bob", "p.png"): sure_of(),
        ("ann", "q.png"): sure_of(4),
    }
    annotations |= {
        ("eve", "q.png"): sure_of(5),
        ("eve", "gold"): sure_of(1),
        ("ann", "gold"): sure_of(2),
    }
    checks = {("eve", "gold"): 2, ("ann", "gold"): 2}
    pq.write_table(
        pa.table(
            long_rows(annotations, check={whose: str(digit) for whose, digit in checks.items()})
        ),
        folder / "raw.parquet",
    )
    items = {
        "image": ["q.png", "unused.png", "p.png"],
        "images": [np.full((28, 28), value).tolist() for value in (1, 2, 3)],
        "original_labels": [4, 0, 1],
        "split": ["test", "val", "train"],
        "source": ["mnist"] * 3,
    }
    pq.write_table(pa.table(items), folder / "items.parquet")
    return folder / "raw.parquet", folder / "items.parquet"


def test_judgements_and_images_become_the_published_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    main(["corpus", "annotate", *map(str, raw_and_items(tmp_path)), str(tmp_path / "soft.parquet")])
    assert capsys.readouterr().out.splitlines() == [
        "2 images, 3 annotations by 2 annotators; 1 failed an attention check and are left out",
        "images x annotations: 1 x 1, 1 x 2",
        "unanimous (NoHLV): 50.0%; no digit (NaN) by majority: 50.0%",
        "mean uncertainty: 0.025; unsure proportion: 0.250",
        "Pearson correlations over images of (1) milliseconds, (2) mean uncertainty, (3) unsure "
        "proportion, (4) entropy, equally weighted, "
        "(5) entropy, uncertainty weighted:",
        "  (1)       -",
        "  (2)       -   1.000",
        "  (3)       -   1.000   1.000",
        "  (4)       -   1.000   1.000   1.000",
        "  (5)       -   1.000   1.000   1.000   1.000",
    ]
    table = read_soft_digits(str(tmp_path / "soft.parquet"))
    assert not table.simulated
    assert table.images[:, 0, 0].tolist() == [3, 1]
    assert table.split.tolist() == ["train", "test"]
    assert table.labels["original"].majority.tolist() == [1, 4]
    assert table.labels["majority"].majority.tolist() == [10, 4]  # eve, who failed a check, said 5
    np.testing.assert_allclose(
        table.labels["uncertainty"].probs[0, [0, 1, 10]], [1 / 3, 1 / 6, 1 / 2]
    )
    np.testing.assert_allclose(table.labels["equal"].probs[0, [0, 1, 10]], [1 / 4, 1 / 4, 1 / 2])
    np.testing.assert_allclose(table.human_uncert_mean, [0.05, 0])
    np.testing.assert_allclose(table.pct_ann_unsure, [0.5, 0])


def test_models_of_annotators_become_columns_and_times_are_correlated(tmp_path: Path):
    raw, items = raw_and_items(tmp_path)
    rows = pq.read_table(raw)
    times = {"p.png": 900.0, "q.png": 2500.0, "gold": 10.0}
    pq.write_table(
        rows.append_column(
            "milliseconds", pa.array([times[image] for image in rows["image"].to_pylist()])
        ),
        raw,
    )
    lines = annotate(raw, items, tmp_path / "soft.parquet", models=["dawid_skene"])
    # who took longer was sure
    assert lines[-5:-2] == [
        "  (1)   1.000",
        "  (2)  -1.000   1.000",
        "  (3)  -1.000   1.000   1.000",
    ]
    labels = read_soft_digits(str(tmp_path / "soft.parquet")).labels["dawid_skene"]
    assert labels.majority[1] == 4


def test_a_judged_image_that_is_not_among_the_items(tmp_path: Path):
    raw, items = raw_and_items(tmp_path)
    table = pq.read_table(items)
    pq.write_table(table.slice(0, 2), items)
    with pytest.raises(
        InputError, match=r"raw.parquet judges the image p.png, which .*items.parquet does not have"
    ):
        annotate(raw, items, tmp_path / "soft.parquet")
    pq.write_table(pa.concat_tables([table, table.slice(0, 1)]), items)
    with pytest.raises(
        InputError, match=r"items.parquet has an image id that was there before in row 3"
    ):
        annotate(raw, items, tmp_path / "soft.parquet")
