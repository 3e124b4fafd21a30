"""ChaosNLI from its published format: small files made in exactly that, and the real ones where
they are at hand.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from core.errors import InputError
from datamodules import ChaosNLI
from datamodules.datasets.chaosnli import NLI, read_subset
from datamodules.embedders.embeddings import embed_all
from tests.conftest import trust_texts
from tests.datamodules.embedders.small_embedder import SmallEmbedder


def chaosnli(root: Path, **options) -> ChaosNLI:
    return ChaosNLI(SmallEmbedder(), root=str(root), cache=str(root / "embeddings"), **options)


def rows_of(root: Path, subset: str) -> list[dict]:
    return [
        json.loads(line) for line in (root / ChaosNLI.FILES[subset].path).read_text().splitlines()
    ]


def test_both_subsets_one_after_the_other_with_votes_in_the_order_of_the_classes(small_texts: Path):
    texts, votes = chaosnli(small_texts).read()
    published = rows_of(small_texts, "snli") + rows_of(small_texts, "mnli")
    assert votes.counts is not None
    # e, n, c, which the loader does not look at
    assert votes.counts.tolist() == [row["label_count"] for row in published]
    assert texts[0] == "Premise: The premise of snli-0.\nHypothesis: The hypothesis of snli-0."
    assert [text.split("Hypothesis: ")[1] for text in texts] == [
        row["example"]["hypothesis"] for row in published
    ]


def test_each_subset_alone_and_its_classes(small_texts: Path):
    for subset in ("snli", "mnli"):
        data = chaosnli(small_texts, subsets=[subset])
        assert len(data.read()[0]) == 40
        assert data.class_names == ("entailment", "neutral", "contradiction")
    data = chaosnli(small_texts, subsets=["alphanli"], template="{hyp2} {obs1}")
    texts, votes = data.read()
    assert (data.num_classes, votes.num_classes, len(data.class_names)) == (2, 2, 2)
    assert texts[3] == "The hyp2 of alphanli-3. The obs1 of alphanli-3."
    assert votes.counts is not None
    assert votes.counts.tolist() == [row["label_count"] for row in rows_of(small_texts, "alphanli")]


def test_inputs_are_embeddings_of_the_texts_standardised_by_the_training_part(small_texts: Path):
    data = chaosnli(small_texts, seed=2)
    data.prepare_data()
    data.setup()
    assert data.corpus
    raw = embed_all(SmallEmbedder(), data.read()[0], small_texts / "embeddings").double()
    train = raw[torch.from_numpy(data.rows("train"))]
    torch.testing.assert_close(
        data.corpus.inputs.double(), (raw - train.mean(0)) / train.std(0), atol=1e-5, rtol=1e-5
    )  # pyright: ignore
    assert data.input_shape == (8,)
    assert data.embedder_name == "Small (test)"
    assert sorted(
        np.concatenate([data.rows(part) for part in ("train", "val", "test")]).tolist()
    ) == list(range(80))
    assert [len(data.rows(part)) for part in ("train", "val", "test")] == [56, 12, 12]


def test_the_split_follows_the_seed_and_the_fractions(small_texts: Path):
    _, votes = chaosnli(small_texts).read()
    first, again, other = (
        chaosnli(small_texts, seed=seed).split(votes)["test"].tolist() for seed in (0, 0, 1)
    )
    assert first == again != other
    halves = chaosnli(small_texts, fractions=[0.5, 0.25, 0.25]).split(votes)
    assert [len(part) for part in halves.values()] == [40, 20, 20]
    with pytest.raises(
        InputError, match=r"data.fractions is \[0.5, 0.5\]; it must be three shares"
    ):
        chaosnli(small_texts, fractions=[0.5, 0.5]).split(votes)


def test_originals_are_the_texts_of_the_rows_and_need_no_embeddings(small_texts: Path):
    data = chaosnli(small_texts)
    assert data.original(np.array([41, 3])) == [data.read()[0][41], data.read()[0][3]]
    assert not (small_texts / "embeddings").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"subsets": ["snli", "anli"]},
            "data.subsets names anli; it must be of snli, mnli, alphanli",
        ),
        ({"subsets": []}, r"data.subsets is \[\]; it must name at least one"),
        ({"subsets": ["snli", "snli"]}, "and none twice"),
        ({"subsets": ["snli", "alphanli"]}, "alphanli has other classes than snli and mnli"),
        (
            {"template": "{premise} {hypotheses}"},
            r"names \{hypotheses\}; the fields of these items are premise, hypothesis",
        ),
        ({"template": "{premise.__class__}"}, r"names \{premise.__class__\}"),
        ({"template": "nothing"}, "names no field"),
        ({"template": "{premise"}, "does not read as a template"),
        (
            {"subsets": ["alphanli"], "template": "{premise}"},
            "the fields of these items are obs1, obs2, hyp1, hyp2",
        ),
    ],
)
def test_a_wrong_option_is_named(tmp_path: Path, options: dict, message: str):
    with pytest.raises(InputError, match=message):
        chaosnli(tmp_path, **options)


def without(row: dict, *path: str) -> dict:
    """A copy of a row without one of its fields."""
    first, *rest = path
    return {
        name: without(value, *rest) if name == first else value
        for name, value in row.items()
        if name != first or rest
    }


ROW = {
    "uid": "new",
    "label_counter": {"e": 60, "n": 40},
    "example": {"uid": "new", "premise": "P.", "hypothesis": "H.", "source": "x"},
}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {**ROW, "label_counter": {}},
            "has no votes at all in row 40; every item needs at least one vote",
        ),
        (without(ROW, "label_counter"), "has no votes at all in row 40"),
        (
            {**ROW, "label_counter": {"e": 99, "x": 1}},
            "has a label outside the scale in row 40; labels must be e, n, c",
        ),
        ({**ROW, "label_counter": {"e": 1.5}}, "has fractional votes in row 40"),
        (
            {**ROW, "uid": "snli-3"},
            "has the uid of an earlier row in row 40; two items must not share an id",
        ),
        (without(ROW, "uid"), "has no uid in row 40"),
        (
            {**ROW, "example": {**ROW["example"], "premise": " \n"}},
            "has an empty premise in row 40",
        ),
        (
            without(ROW, "example", "hypothesis"),
            "has no hypothesis in row 40; every example needs the fields premise, hypothesis",
        ),
        (without(ROW, "example"), "has no premise in row 40"),
    ],
)
def test_a_bad_item_is_told_in_one_sentence_with_its_file_and_row(
    small_texts: Path, row: dict, message: str
):
    path = small_texts / ChaosNLI.FILES["snli"].path
    path.write_text(path.read_text() + json.dumps(row) + "\n")
    with pytest.raises(InputError, match=f"chaosNLI_snli.jsonl {message}") as mistake:
        read_subset(path, NLI, NLI.template)
    assert "\n" not in str(mistake.value)


def test_one_id_in_two_subsets(small_texts: Path, monkeypatch: pytest.MonkeyPatch):
    path = small_texts / ChaosNLI.FILES["mnli"].path
    path.write_text(path.read_text() + json.dumps({**ROW, "uid": "snli-7"}) + "\n")
    trust_texts(monkeypatch, small_texts)
    with pytest.raises(
        InputError,
        match=r"snli.jsonl and .*mnli_m.jsonl both hold the uid snli-7; two items must not share "
        r"an id",
    ):
        chaosnli(small_texts).read()


def test_a_missing_field_in_all_rows(small_texts: Path):
    path = small_texts / ChaosNLI.FILES["snli"].path
    path.write_text(
        "".join(
            json.dumps(without(row, "label_counter")) + "\n" for row in rows_of(small_texts, "snli")
        )
    )
    with pytest.raises(
        InputError, match="has no column label_counter; it must have uid, label_counter, example"
    ):
        read_subset(path, NLI, NLI.template)


def test_a_file_cut_short(small_texts: Path, capfd):
    path = small_texts / ChaosNLI.FILES["snli"].path
    content = path.read_bytes()
    for length in (len(content) - 20, 30, 0):
        path.write_bytes(content[:length])
        with pytest.raises(
            InputError,
            match=r"chaosNLI_snli.jsonl is not the published file .* delete it to have it "
            r"downloaded again",
        ):
            chaosnli(small_texts).read()
        with pytest.raises(
            InputError,
            match=r"chaosNLI_snli.jsonl cannot be read as JSON lines; it was cut short or altered",
        ):
            read_subset(path, NLI, NLI.template)
    assert capfd.readouterr().err == ""


def test_the_published_data_is_that_of_the_papers_table_1(real_data: Path):
    texts, votes = ChaosNLI(SmallEmbedder(), root=str(real_data)).read()
    assert len(texts) == len(set(texts)) == len(votes) == 3113
    assert votes.counts is not None
    assert (votes.counts.sum(1) == 100).all()
    assert votes.normalized_entropy.mean() == pytest.approx(0.59, abs=0.005)
    assert votes.normalized_entropy.std() == pytest.approx(0.20, abs=0.01)
    splits = ChaosNLI(SmallEmbedder(), seed=4).split(votes)
    assert [len(rows) for rows in splits.values()] == [2179, 467, 467]
    means = [votes.normalized_entropy[rows].mean() for rows in splits.values()]
    assert np.ptp(means) < 0.01
    shares = [
        np.bincount(votes.majority[rows], minlength=3) / len(rows) for rows in splits.values()
    ]
    assert np.ptp(shares, axis=0).max() < 0.02


def test_published_distributions_agree(real_data: Path):
    for subset, items in (("snli", 1514), ("mnli", 1599), ("alphanli", 1532)):
        _, votes = ChaosNLI(SmallEmbedder(), root=str(real_data), subsets=(subset,)).read()
        assert len(votes) == items
        assert np.array_equal(
            votes.probs, [row["label_dist"] for row in rows_of(real_data, subset)]
        )
