"""Votes of one's own: every form gives the same table, files are joined by id, and what cannot be
right is refused in one sentence.
"""

import csv
from pathlib import Path

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image
from safetensors.numpy import save_file

from core.errors import InputError
from datamodules import POPQUORN, OwnVotes
from tests.datamodules.embedders.small_embedder import SmallEmbedder

CLASSES = ("no", "unsure", "yes")
ITEMS = 12
COUNTS = (
    np.array([[3, 1, 0], [0, 2, 2], [1, 1, 2], [4, 0, 0]] * 3)
    + np.eye(3, dtype=int)[np.arange(ITEMS) % 3]
)
IDS = [f"post {number}" for number in range(ITEMS)]
LONG = {"votes": "votes.csv", "item": "id", "label": "said", "annotator": "who"}
ALL = {"fractions": (0.5, 0.25, 0.25), "entropy_bins": 1}


def write_csv(path: Path, columns: dict[str, list]) -> None:
    with open(path, "w", newline="") as stream:
        csv.writer(stream).writerows([columns, *zip(*columns.values(), strict=True)])


def long_columns(counts: np.ndarray = COUNTS) -> dict[str, list]:
    rng = np.random.default_rng(3)
    rows = [
        (IDS[item], CLASSES[label])
        for item, row in enumerate(counts)
        for label, votes in enumerate(row)
        for _ in range(votes)
    ]
    order = rng.permutation(len(rows))
    return {
        "said": [rows[row][1] for row in order],
        "who": [f"r{row}" for row in order],
        "id": [rows[row][0] for row in order],
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The same votes in all forms, and the same items as texts and as embeddings, in
    another order.
    """
    write_csv(tmp_path / "votes.csv", long_columns())
    pq.write_table(pa.table(long_columns()), tmp_path / "votes.parquet", row_group_size=7)
    counts = dict(zip(CLASSES, COUNTS.T.tolist(), strict=True))
    write_csv(tmp_path / "counts.csv", {"id": IDS, **counts})
    probs = COUNTS / COUNTS.sum(1, keepdims=True)
    pq.write_table(
        pa.table({"id": IDS, "share": probs.tolist(), "votes": COUNTS.tolist()}),
        tmp_path / "shares.parquet",
    )
    order = np.random.default_rng(4).permutation(ITEMS)
    ids = [IDS[row] for row in order]
    embeddings = np.stack([order, order**2, np.ones(ITEMS)], axis=1).astype(np.float32)
    part = np.array(["train", "train", "val", "test"] * 3)[order].tolist()
    write_csv(
        tmp_path / "items.csv",
        {"id": ids, "text": [f"Text of {name}." for name in ids], "part": part},
    )
    pq.write_table(pa.table({"id": ids, "vector": embeddings.tolist()}), tmp_path / "items.parquet")
    np.save(tmp_path / "embeddings.npy", embeddings.astype(np.float64))
    save_file({"e": embeddings}, tmp_path / "embeddings.safetensors")
    return tmp_path


def own(folder: Path, **options) -> OwnVotes:
    if "text" in options or "image" in options:
        options["embedder"] = SmallEmbedder()
    return OwnVotes(root=str(folder), cache=str(folder / "cache"), **{**ALL, **options})


def loaded(folder: Path, **options) -> OwnVotes:
    data = own(folder, **options)
    data.prepare_data()
    data.setup()
    return data


FORMS = {
    "single votes, CSV": LONG,
    "single votes, parquet": {**LONG, "votes": "votes.parquet"},
    "counts": {"votes": "counts.csv", "item": "id", "counts": CLASSES},
    "counts as lists": {
        "votes": "shares.parquet",
        "item": "id",
        "counts": ("votes",),
        "classes": CLASSES,
    },
    "probabilities": {
        "votes": "shares.parquet",
        "item": "id",
        "probs": ("share",),
        "classes": CLASSES,
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_table_in_the_order_of_the_items(folder: Path, form: str):
    data = loaded(folder, **FORMS[form], inputs="items.csv", text="text")
    order = [IDS.index(text[8:-1]) for text in data.original(range(ITEMS))]  # pyright: ignore
    assert order != list(range(ITEMS))
    np.testing.assert_allclose(
        data.annotator_probs, (COUNTS / COUNTS.sum(1, keepdims=True))[order], atol=1e-6
    )
    assert (data.corpus.votes.counts is None) == (form == "probabilities")  # pyright: ignore
    assert data.class_names == CLASSES
    assert (data.num_classes, data.input_shape) == (3, (8,))
    assert sorted(np.concatenate([data.rows(split) for split in ("train", "val", "test")])) == list(
        range(ITEMS)
    )


@pytest.mark.parametrize(
    "items",
    [
        {"inputs": "items.parquet", "embedding": "vector"},
        {"inputs": "items.csv", "embeddings": "embeddings.npy"},
        {"inputs": "items.parquet", "embeddings": "embeddings.safetensors"},
    ],
    ids=lambda items: next(reversed(items.values())),
)
def test_ready_embeddings_belong_to_the_rows_of_the_items(folder: Path, items: dict[str, str]):
    data = loaded(folder, **LONG, **items, standardize=False)
    assert data.input_shape == (3,)
    inputs, index = next(iter(data.loader(np.arange(ITEMS), training=False)))
    assert inputs.dtype == torch.float32
    original = inputs[:, 0].long().numpy()  # the first number of an embedding is that of its item
    np.testing.assert_array_equal(data.corpus.votes.counts[index], COUNTS[original])  # pyright: ignore
    with pytest.raises(InputError, match="ready embeddings"):
        data.original([0])


def test_embeddings_are_standardised_by_the_training_items(folder: Path):
    raw, data = (
        loaded(folder, **LONG, inputs="items.csv", embeddings="embeddings.npy", standardize=yes)
        for yes in (False, True)
    )
    before, after = (
        next(iter(each.loader(np.arange(ITEMS), training=False)))[0] for each in (raw, data)
    )
    train = before[torch.from_numpy(data.rows("train"))]
    torch.testing.assert_close(after[:, :2], (before - train.mean(0))[:, :2] / train.std(0)[:2])
    assert torch.equal(after[:, 2], torch.zeros(ITEMS))  # the same for all items


def test_row_numbers_are_ids_where_there_is_nothing_but_votes_and_embeddings(folder: Path):
    columns = long_columns()
    columns["id"] = [IDS.index(name) for name in columns["id"]]
    pq.write_table(pa.table(columns), folder / "numbered.parquet")
    data = loaded(folder, **{**LONG, "votes": "numbered.parquet"}, embeddings="embeddings.npy")
    np.testing.assert_array_equal(data.corpus.votes.counts, COUNTS)  # pyright: ignore
    columns["id"][5] = ITEMS
    pq.write_table(pa.table(columns), folder / "numbered.parquet")
    with pytest.raises(
        InputError, match=r"votes on items that embeddings.npy, .*, does not have: 12\."
    ):
        own(folder, **{**LONG, "votes": "numbered.parquet"}, embeddings="embeddings.npy").setup()


def test_items_beside_the_votes_come_in_the_order_of_their_ids(folder: Path):
    columns = long_columns()
    write_csv(
        folder / "votes.csv", {**columns, "text": [f"Text of {name}." for name in columns["id"]]}
    )
    data = loaded(folder, **LONG, text="text")
    assert data.original(range(ITEMS)) == [f"Text of {name}." for name in sorted(IDS)]
    np.testing.assert_array_equal(
        data.corpus.votes.counts, COUNTS[[IDS.index(name) for name in sorted(IDS)]]
    )  # pyright: ignore
    columns["text"] = ["another text", *[f"Text of {name}." for name in columns["id"]][1:]]
    write_csv(folder / "votes.csv", columns)
    with pytest.raises(
        InputError, match="column text, has something else than before for the same item in rows"
    ):
        own(folder, **LONG, text="text").setup()


def test_a_column_can_say_the_split(folder: Path):
    data = loaded(folder, **LONG, inputs="items.csv", text="text", split_column="part")
    rows = [IDS.index(text[8:-1]) for text in data.original(data.rows("val"))]  # pyright: ignore
    assert sorted(rows) == [2, 6, 10]


def test_a_column_of_another_split_is_refused(folder: Path):
    with pytest.raises(
        InputError,
        match=r"column text, has 'Text of post \d+.' in rows 0, 1, 2 and 9 more; a split is "
        r"train, val or test",
    ):
        own(
            folder, **LONG, inputs="items.csv", embeddings="embeddings.npy", split_column="text"
        ).setup()


def test_images_by_paths_relative_to_their_table(folder: Path):
    (folder / "pictures").mkdir()
    for number, name in enumerate(IDS):
        Image.new("L" if number % 2 else "RGB", (5 + number, 9), number).save(
            folder / "pictures" / f"{name}.png"
        )
    write_csv(folder / "items.csv", {"id": IDS, "path": [f"pictures/{name}.png" for name in IDS]})
    data = loaded(folder, **LONG, inputs="items.csv", image="path", image_side=8)
    shown = data.original([2, 3])
    assert shown.shape == (2, 3, 8, 8)  # pyright: ignore
    assert (shown[0, 0] == 2).all()  # pyright: ignore
    assert (shown[1] == 3).all()  # pyright: ignore
    (folder / "pictures" / f"{IDS[4]}.png").write_bytes(b"\x89PNG no more")
    with pytest.raises(InputError, match=r"post 4.png cannot be read as an image"):
        own(folder, **LONG, inputs="items.csv", image="path").read()
    (folder / "pictures" / f"{IDS[4]}.png").unlink()
    with pytest.raises(InputError, match=r"there is no image .*post 4.png"):
        own(folder, **LONG, inputs="items.csv", image="path").read()


def test_classes_are_numbers_by_size_or_texts_in_order_or_as_given(folder: Path):
    columns = long_columns()
    write_csv(
        folder / "votes.csv",
        {
            **columns,
            "said": [{"no": "2", "unsure": "10", "yes": "-1"}[word] for word in columns["said"]],
        },
    )
    both = {**LONG, "inputs": "items.csv", "embeddings": "embeddings.npy"}
    assert own(folder, **both).class_names == ("-1", "2", "10")
    assert own(folder, **both, classes=(10, 2, -1, 0)).class_names == ("10", "2", "-1", "0")
    with pytest.raises(
        InputError, match=r"column said, has '-1' in rows .*; the classes are 2, 10\."
    ):
        _ = own(folder, **both, classes=(2, 10)).num_classes


def test_items_without_votes_are_an_error_until_they_are_left_out(folder: Path):
    counts = COUNTS.copy()
    counts[[2, 5]] = 0
    write_csv(
        folder / "counts.csv", {"id": IDS, **dict(zip(CLASSES, counts.T.tolist(), strict=True))}
    )
    write_csv(folder / "votes.csv", long_columns(counts))
    for form in (LONG, FORMS["counts"]):
        both = {**form, "inputs": "items.csv", "embeddings": "embeddings.npy"}
        with pytest.raises(
            InputError,
            match=r"no vote on 2 of 12 items \(post \d, post \d\); set data.leave_out_unvoted to "
            r"true",
        ):
            own(folder, **both).setup()
        data = loaded(folder, **both, leave_out_unvoted=True, standardize=False)
        inputs, index = next(iter(data.loader(np.arange(10), training=False)))
        np.testing.assert_array_equal(
            data.corpus.votes.counts[index], counts[inputs[:, 0].long().numpy()]
        )  # pyright: ignore
        unvoted = own(folder, **both).summarize().unvoted.to_pylist()
        assert sorted(unvoted) == ["post 2", "post 5"]


def test_a_second_vote_by_the_same_person_is_an_error_until_it_is_counted(folder: Path):
    columns = {name: [*values, values[4]] for name, values in long_columns().items()}
    write_csv(folder / "votes.csv", columns)
    both = {**LONG, "inputs": "items.csv", "embeddings": "embeddings.npy"}
    with pytest.raises(
        InputError,
        match=r"votes of one who on one item again in row "
        rf"{len(columns['id']) - 1};.*data.count_repeated",
    ):
        own(folder, **both).setup()
    assert loaded(folder, **both, count_repeated=True).corpus.votes.counts.sum() == COUNTS.sum() + 1  # pyright: ignore


def changed(column: str, row: int, value):
    def change(columns: dict[str, list]) -> dict[str, list]:
        return {
            **columns,
            column: [value if place == row else old for place, old in enumerate(columns[column])],
        }

    return change


BAD_CELLS = [
    (
        FORMS["counts"],
        "counts.csv",
        changed("yes", 2, -1),
        r"counts.csv has negative votes in row 2",
    ),
    (
        FORMS["counts"],
        "counts.csv",
        changed("yes", 2, 1.5),
        r"counts.csv has fractional votes in row 2",
    ),
    (
        FORMS["counts"],
        "counts.csv",
        changed("yes", 2, "NaN"),
        r"column yes, has what is no number in row 2",
    ),
    (
        FORMS["counts"],
        "counts.csv",
        changed("yes", 3, ""),
        r"column yes, has what is no number in row 3",
    ),
    (
        FORMS["counts"],
        "counts.csv",
        changed("id", 3, IDS[1]),
        r"column id, has the id of an earlier row in row 3",
    ),
    (
        FORMS["counts"],
        "counts.csv",
        changed("id", 3, "else"),
        r"votes on items that .*items.csv does not have: else",
    ),
    (
        FORMS["probabilities"],
        "shares.parquet",
        changed("share", 1, [0.5, 0.2, 0.2]),
        r"probabilities that do not sum to 1 in row 1",
    ),
    (
        FORMS["probabilities"],
        "shares.parquet",
        changed("share", 1, [float("nan"), 0.5, 0.5]),
        r"probabilities that are not numbers in row 1",
    ),
    (
        FORMS["probabilities"],
        "shares.parquet",
        changed("share", 1, [0.5, 0.5]),
        r"column share, has other than 3 numbers in row 1",
    ),
    (
        FORMS["probabilities"],
        "shares.parquet",
        changed("share", 1, None),
        r"column share, has no list in row 1",
    ),
    (
        FORMS["probabilities"],
        "shares.parquet",
        changed("share", 1, [None, 0.5, 0.5]),
        r"column share, has gaps in its lists in row 1",
    ),
    (LONG, "votes.csv", changed("said", 6, " "), r"column said, has no value in row 6"),
    (LONG, "votes.csv", changed("who", 6, ""), r"column who, has no value in row 6"),
    (
        FORMS["single votes, parquet"],
        "votes.parquet",
        changed("said", 6, None),
        r"column said, has no value in row 6",
    ),
    (LONG, "items.csv", changed("text", 4, "  "), r"column text, has no value in row 4"),
    (
        LONG,
        "items.csv",
        changed("id", 4, "twice"),
        r"votes on items that .*items.csv does not have: post",
    ),
]


@pytest.mark.parametrize(
    ("form", "name", "change", "message"), BAD_CELLS, ids=[case[3][:50] for case in BAD_CELLS]
)
def test_what_cannot_be_right_is_refused_by_row(
    folder: Path, form: dict, name: str, change, message: str
):
    path = folder / name
    if path.suffix == ".csv":
        with open(path, newline="") as stream:
            head, *rows = csv.reader(stream)
        write_csv(path, change(dict(zip(head, map(list, zip(*rows, strict=True)), strict=True))))
    else:
        pq.write_table(pa.table(change(pq.read_table(path).to_pydict())), path)
    with pytest.raises(InputError, match=message):
        loaded(folder, **form, inputs="items.csv", text="text")


BAD_OPTIONS = [
    ({**LONG, "label": None, "text": "t"}, r"none of them is given; exactly one must be, of label"),
    (
        {**LONG, "counts": ("a", "b"), "text": "t"},
        r"data.label and data.counts are given; exactly one",
    ),
    ({**LONG}, r"none of them is given; exactly one must be, of text, image"),
    ({**LONG, "embedding": "v"}, r"data.embedding needs data.inputs"),
    (
        {**FORMS["counts"], "annotator": "who", "text": "t"},
        r"data.annotator is who; only with data.label",
    ),
    (
        {**LONG, "label": "word", "inputs": "items.csv", "text": "text"},
        r"votes.csv has no column word; it has said, who, id\.",
    ),
    (
        {**LONG, "inputs": "items.csv", "text": "word"},
        r"items.csv has no column word; it has id, text, part\.",
    ),
    ({**LONG, "inputs": "more.csv", "text": "text"}, r"there is no .*more.csv; data.root is"),
    (
        {**LONG, "votes": "embeddings.npy", "text": "text"},
        r"embeddings.npy is neither .csv nor .parquet",
    ),
    (
        {**LONG, "inputs": "items.csv", "embeddings": "votes.csv"},
        r"votes.csv is neither .npy nor .safetensors",
    ),
    ({**LONG, "inputs": "items.csv", "embeddings": "no.npy"}, r"there is no .*no.npy"),
    (
        {**FORMS["counts"], "counts": ("no",), "embeddings": "embeddings.npy"},
        r"column no, holds .*; one column must hold lists",
    ),
    (
        {**FORMS["counts"], "classes": ("a", "b"), "embeddings": "embeddings.npy"},
        r"has 3 numbers per item, but data.classes names 2",
    ),
    (
        {
            **LONG,
            "label": "id",
            "item": "who",
            "annotator": None,
            "text": "said",
            "classes": ("x",),
        },
        r"has 1 class; there must be at least two",
    ),
    (
        {**LONG, "inputs": "items.csv", "text": "text", "classes": ("no", "no")},
        r"no class may be named twice",
    ),
]


@pytest.mark.parametrize(
    ("options", "message"), BAD_OPTIONS, ids=[case[1][:50] for case in BAD_OPTIONS]
)
def test_options_that_do_not_fit_the_files(folder: Path, options: dict, message: str):
    with pytest.raises(InputError, match=message):
        own(folder, **options).setup()


def test_an_embedder_is_for_texts_and_images_alone(folder: Path):
    with pytest.raises(
        InputError, match=r"data.text needs data.embedder, for example SentenceEmbedder"
    ):
        OwnVotes(**LONG, text="text")
    with pytest.raises(
        InputError, match=r"data.embeddings gives ready embeddings; leave data.embedder out"
    ):
        OwnVotes(**LONG, embeddings="e.npy", embedder=SmallEmbedder())


@pytest.mark.parametrize("name", ["votes.csv", "votes.parquet", "items.csv"])
def test_files_that_were_cut_short_or_are_something_else(folder: Path, name: str):
    options = {
        **(LONG if name != "votes.parquet" else FORMS["single votes, parquet"]),
        "inputs": "items.csv",
        "text": "text",
    }
    content = (folder / name).read_bytes()
    for broken in (b"", b"\xff\xfe\x00" * 50, content[: len(content) // 2 + 1] + b'"'):
        (folder / name).write_bytes(broken)
        with pytest.raises(InputError):
            own(folder, **options).setup()


def test_kinds_of_columns_that_no_votes_can_be_read_from(folder: Path):
    both = {**FORMS["single votes, parquet"], "inputs": "items.csv", "text": "text"}
    table = pq.read_table(folder / "votes.parquet")
    for column, message in (
        (
            pa.array([b"\xff"] * len(table)),
            "column said, holds binary, which does not read as text",
        ),
        (
            pa.array([[1]] * len(table)),
            r"column said, holds list.*; it must hold texts or whole numbers",
        ),
        (
            pa.array([float("nan")] * len(table)),
            "column said, has NaN or infinity in rows 0, 1, 2 and",
        ),
    ):
        pq.write_table(table.set_column(0, "said", column), folder / "votes.parquet")
        with pytest.raises(InputError, match=message):
            own(folder, **both).setup()
    pq.write_table(
        pa.table({"id": IDS, "votes": [[2**60, 1, 1]] * ITEMS}), folder / "shares.parquet"
    )
    with pytest.raises(InputError, match=r"more than 2,147,483,647 votes in rows 0, 1, 2"):
        own(folder, **FORMS["counts as lists"], inputs="items.csv", text="text").setup()


def test_words_that_no_row_has_are_no_classes(folder: Path):
    columns = long_columns()
    message = pa.array(columns["said"]).dictionary_encode()
    more = pa.DictionaryArray.from_arrays(
        message.indices, pa.concat_arrays([message.dictionary, pa.array(["never"])])
    )
    pq.write_table(pa.table({**columns, "said": more}), folder / "votes.parquet")
    assert (
        own(folder, **FORMS["single votes, parquet"], inputs="items.csv", text="text").class_names
        == CLASSES
    )


def test_a_folder_of_parquet_files_is_one_table(folder: Path):
    table = pq.read_table(folder / "votes.parquet")
    (folder / "parts").mkdir()
    pq.write_table(table.slice(0, 9), folder / "parts" / "1.parquet")
    pq.write_table(table.slice(9), folder / "parts" / "2.parquet")
    data = loaded(
        folder, **{**LONG, "votes": "parts"}, inputs="items.csv", embeddings="embeddings.npy"
    )
    assert data.corpus.votes.counts.sum() == COUNTS.sum()  # pyright: ignore


def test_a_dataset_of_the_hub_is_read_without_its_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    asked = []

    def load_dataset(*args, **kwargs):
        asked.append((args, kwargs))
        whole = datasets.Dataset.from_dict(long_columns())
        return datasets.DatasetDict(
            {"train": whole.select(range(20)), "test": whole.select(range(20, len(whole)))}
        )

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    data = loaded(folder, **{**LONG, "votes": "someone/votes"}, inputs="items.csv", text="text")
    assert data.corpus.votes.counts.sum() == COUNTS.sum()  # pyright: ignore
    assert asked == [(("someone/votes",), {})]  # no option that would run what a dataset brings
    monkeypatch.undo()
    monkeypatch.setattr(
        datasets, "load_dataset", lambda name: (_ for _ in ()).throw(ConnectionError("no network"))
    )
    with pytest.raises(
        InputError,
        match=r"no file someone/votes, and no dataset of that id could be loaded from the hub "
        r"\(ConnectionError\)",
    ):
        own(folder, **{**LONG, "votes": "someone/votes"}, inputs="items.csv", text="text").setup()


def test_popquorn_as_ones_own_is_popquorn(real_data: Path):
    published = POPQUORN(root=str(real_data))
    texts, votes = published.read()
    columns = {"item": "instance_id", "annotator": "user_id", "label": "politeness", "text": "text"}
    data = OwnVotes(
        "popquorn/politeness_rating/raw_data.csv",
        root=str(real_data),
        embedder=SmallEmbedder(),
        **columns,
    )
    mine, own_votes = data.read()
    assert mine == texts
    np.testing.assert_array_equal(own_votes.counts, votes.counts)
    assert data.class_names == ("1.0", "2.0", "3.0", "4.0", "5.0")
    for theirs, ours in zip(
        published.split(votes).values(), data.split(own_votes).values(), strict=True
    ):
        np.testing.assert_array_equal(theirs, ours)
