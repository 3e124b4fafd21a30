"""POPQUORN's politeness ratings from their published format: small files made in exactly that, and
the real one where it is at hand.
"""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from core.errors import InputError
from datamodules import POPQUORN
from datamodules.datasets.popquorn import read_ratings
from tests.datamodules.embedders.small_embedder import SmallEmbedder


def popquorn(root: Path, **options) -> POPQUORN:
    return POPQUORN(SmallEmbedder(), root=str(root), cache=str(root / "embeddings"), **options)


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, newline="") as stream:
        return list(csv.DictReader(stream))


def test_scores_become_votes_and_annotators_are_kept(small_texts: Path):
    data = popquorn(small_texts)
    texts, votes = data.read()
    rows = rows_of(small_texts / POPQUORN.FILE.path)
    expected = Counter((row["text"], float(row["politeness"]) - 1) for row in rows)
    assert votes.counts is not None
    assert {(texts[item], k): n for (item, k), n in np.ndenumerate(votes.counts) if n} == expected
    assert len(texts) == len(set(texts)) == 60
    messages = {(texts[item], who, label) for item, who, label in zip(*data.ratings, strict=True)}
    assert messages == {
        (row["text"], row["user_id"], int(row["politeness"][0]) - 1) for row in rows
    }
    assert len(data.ratings.item) == len(rows)
    assert len(data.class_names) == data.num_classes == 5


def test_the_order_of_the_rows_does_not_matter(small_texts: Path):
    path = small_texts / POPQUORN.FILE.path
    texts, ratings = read_ratings(path)
    rows = rows_of(path)
    with open(path, "w", newline="") as stream:
        table = csv.DictWriter(stream, rows[0])
        table.writeheader()
        table.writerows(reversed(rows))
    again, reversed_ratings = read_ratings(path)
    assert texts == again
    assert np.array_equal(ratings.item[::-1], reversed_ratings.item)
    assert np.array_equal(ratings.annotator[::-1], reversed_ratings.annotator)


def test_texts_that_look_like_something_else_stay_texts(tmp_path: Path):
    path = tmp_path / "raw_data.csv"
    path.write_text("instance_id,user_id,text,politeness\n1,0,NA,3.0\n1,7,NA,5\n02,0,12.50,1.0\n")
    texts, ratings = read_ratings(path)
    assert texts == ["12.50", "NA"]
    assert ratings.item.tolist() == [1, 1, 0]
    assert ratings.annotator.tolist() == ["0", "7", "0"]
    assert ratings.label.tolist() == [2, 4, 0]


def test_set_up_in_three_parts_with_items_as_text(small_texts: Path):
    data = popquorn(small_texts)
    data.prepare_data()
    data.setup()
    assert [len(data.rows(part)) for part in ("train", "val", "test")] == [42, 9, 9]
    assert data.input_shape == (8,)
    assert data.original([2]) == [data.read()[0][2]]
    assert "please read" in data.original([2])[0]


GOOD = "5,0,Hello.,3.0\n5,1,Hello.,4.0\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (GOOD + "6,1,Go away.,\n", "has no politeness in row 2; every rating needs one"),
        (
            GOOD + "6,1,Go away.,6.0\n",
            "has politeness outside the scale in row 2; every rating must be 1, 2, 3, 4 or 5",
        ),
        (GOOD + "6,1,Go away.,0\n", "has politeness outside the scale in row 2"),
        (GOOD + "6,1,Go away.,2.5\n", "has politeness outside the scale in row 2"),
        (GOOD + "6,1, ,2.0\n", "has no text in row 2"),
        (GOOD + ",1,Go away.,2.0\n", "has no instance_id in row 2"),
        (GOOD + "6,,Go away.,2.0\n", "has no user_id in row 2"),
        (
            GOOD + "5,2,Go away.,2.0\n",
            "has another text than before under the same instance_id in row 2; two items must "
            "not share an id",
        ),
        (
            GOOD + "5,1,Hello.,2.0\n",
            "has a second rating of one item by the same user_id in row 2; each person has one "
            "vote",
        ),
        (GOOD + '6,1,"Go aw', "cannot be read as CSV; it was cut short or altered"),
        (
            GOOD + "6,1",
            "has more or fewer than 4 values in row 2; every row must have one for each name",
        ),
        ("", "cannot be read as CSV; it was cut short or altered"),
    ],
)
def test_a_bad_rating_is_told_in_one_sentence_with_its_file_and_row(
    tmp_path: Path, capfd, rows: str, message: str
):
    path = tmp_path / "raw_data.csv"
    path.write_text(f"instance_id,user_id,text,politeness\n{rows}")
    with pytest.raises(InputError, match=f"raw_data.csv {message}") as mistake:
        read_ratings(path)
    assert "\n" not in str(mistake.value)
    assert capfd.readouterr().err == ""


def test_a_missing_column(tmp_path: Path):
    path = tmp_path / "raw_data.csv"
    path.write_text("instance_id,user_id,text,offensiveness\n5,0,Hello.,3.0\n")
    with pytest.raises(
        InputError,
        match="has no column politeness; it must have instance_id, user_id, text, politeness",
    ):
        read_ratings(path)


def test_a_file_of_unknown_digest_is_taken_by_its_totals(
    small_texts: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(POPQUORN, "KNOWN", {})
    rows = rows_of(small_texts / POPQUORN.FILE.path)
    with pytest.raises(
        InputError,
        match=rf"holds {len(rows)} ratings of 60 items by 12 people, but 25,042 of 3,718 by 506 "
        r"were published",
    ):
        popquorn(small_texts).read()
    monkeypatch.setattr(POPQUORN, "TOTALS", (len(rows), 60, 12))
    assert len(popquorn(small_texts).read()[0]) == 60
    path = small_texts / POPQUORN.FILE.path
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-4]))
    with pytest.raises(
        InputError, match="it was cut short or altered, so delete it to have it downloaded again"
    ):
        popquorn(small_texts).read()


def test_the_published_data_is_that_of_the_papers_table_1(
    real_data: Path, monkeypatch: pytest.MonkeyPatch
):
    data = POPQUORN(SmallEmbedder(), root=str(real_data), seed=1)
    texts, votes = data.read()
    assert len(texts) == len(set(texts)) == 3718
    assert votes.counts is not None
    assert votes.counts.sum(1).mean() == pytest.approx(6.7, abs=0.05)
    # the paper counts 3,700 items, 18 fewer than were published, with a mean of 0.62: it does not
    # say which it left out
    assert votes.normalized_entropy.mean() == pytest.approx(0.601, abs=0.001)
    assert votes.normalized_entropy.std() == pytest.approx(0.18, abs=0.005)
    assert len(np.unique(data.ratings.annotator)) == 506
    splits = data.split(votes)
    assert [len(rows) for rows in splits.values()] == [2603, 557, 558]
    assert np.ptp([votes.normalized_entropy[rows].mean() for rows in splits.values()]) < 0.01
    monkeypatch.setattr(POPQUORN, "KNOWN", {})
    assert np.array_equal(data.read()[1].probs, votes.probs)  # by its totals alone
