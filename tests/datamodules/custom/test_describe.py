"""`describe` as a user sees it: what was understood of the votes, for a dataset of this project and
for one's own.
"""

import csv
from itertools import takewhile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli import main
from core.errors import InputError
from datamodules import Digits, OwnVotes, VoteTable
from datamodules.custom.describe import describe
from datamodules.custom.describe_worth import describe_worth
from datamodules.votes.agreement import krippendorff_alpha
from experiment.describe_command import draw_figure
from tests.datamodules.embedders.small_embedder import CLASS_PATH


def lines_of(text: str) -> dict[str, str]:
    return {
        line[:16].strip(): line[16:].strip()
        for line in text.splitlines()
        if line[:1].strip() and line[15:16] == " "
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty items by eight people, of whom Zoe always says yes and Max the opposite; one item has
    no votes, two are the same, and one vote comes twice.
    """
    rng, rows = np.random.default_rng(0), []
    for item in range(40):
        truth = ("no", "unsure", "yes")[item % 3]
        for who in ("Ann", "Bob", "Cem", "Dan", "Eva", "Flo", "Max", "Zoe"):
            other = {"no": "unsure", "unsure": "yes", "yes": "no"}[truth]
            messages = {"Zoe": "yes", "Max": other}.get(who, truth if rng.random() < 0.9 else other)
            rows.append((f"i{item}", who, messages))
    (tmp_path / "own").mkdir()
    texts = [(f"i{item}", f"Text {item if item != 7 else 3}.") for item in range(41)]
    for name, head, content in (
        ("votes.csv", ("item", "annotator", "label"), [*rows, rows[11]]),
        ("items.csv", ("item", "text"), texts),
    ):
        with open(tmp_path / "own" / name, "w", newline="") as stream:
            csv.writer(stream).writerows([head, *content])
    return tmp_path


def options(folder: Path) -> list[str]:
    return [
        "--config",
        "configs/own_votes.yaml",
        "--data.root",
        str(folder),
        "--data.embedder",
        CLASS_PATH,
    ]


def test_ones_own_votes_are_described_with_all_that_is_wrong_with_them(
    folder: Path, capsys: pytest.CaptureFixture
):
    main(["describe", *options(folder)])
    message = capsys.readouterr().out
    result = lines_of(message)
    assert result["items"] == "41, texts"
    assert result["without votes"] == "1 items (i40); they cannot be trained on"
    assert result["classes"] == "3: 'no', 'unsure', 'yes'"
    assert result["votes"] == "321 by 8 annotators, read from one row per vote"
    assert result["votes per item"] == "8 to 9, mean 8.03"
    assert result["duplicates"] == "1 items equal an earlier one: i7 = i3"
    assert result["repeated votes"] == "1, in row 320 of the file (one annotator, one item)"
    assert result["suspicious"].startswith("2 of 8 annotators")
    assert result["annotators"] == "not marked as simulated"
    assert "    Max: 0." in message
    assert "    Zoe: 'yes' in all of 40 votes" in message
    assert not (folder / "runs").exists()


HOSTILE = [
    "no",
    "No ",
    "yes",
    "y\u0435s",
    "yes\u200b",
    "\x1b[2J\x1b]0;title\x07red",
    "\u202edet",
    "maybe\nyes",
]


def write_long_table(path: Path, **changes: str) -> None:
    """Votes of three people on a dozen items; one value of each column named is something else."""
    items, annotator_probs = (
        [f"i{n}" for n in range(12) for _ in range(3)],
        ["Ann", "Bob", "Cem"] * 12,
    )
    table = {
        "item": items,
        "annotator": annotator_probs,
        "label": ["yes", "no", "no"] * 12,
        "text": [f"Text of {item}." for item in items],
    }
    for column, value in changes.items():
        table[column] = [
            value if item == "i5" and (column in ("item", "text") or who == "Bob") else message
            for item, who, message in zip(items, annotator_probs, table[column], strict=True)
        ]
    pq.write_table(pa.table(table), path)


def long_options(folder: Path) -> list[str]:
    return [*options(folder), "--data.votes", "own.parquet", "--data.inputs", "null"]


def test_labels_that_a_terminal_would_obey_or_a_person_confuse(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    rows = {
        "item": [f"i{n}" for n in range(40)],
        "annotator": ["Ann\x1b[31m"] * 40,
        "label": HOSTILE * 5,
        "text": [f"T{n}" for n in range(40)],
    }
    pq.write_table(pa.table(rows), tmp_path / "own.parquet")
    main(["describe", *long_options(tmp_path)])
    messages = capsys.readouterr().out
    assert all(line.isprintable() for line in messages.splitlines())
    assert r"\x1b[2J" in messages
    assert (
        lines_of(messages)["LOOK ALIKE"]
        == "3 pair(s) of classes: count them as one in the file, if they are one"
    )
    assert lines_after(messages, "LOOK ALIKE") == [
        "'No ' and 'no' (blanks, case or characters without width)",
        r"'yes' and 'yes\u200b' (characters without width)",
        r"'yes' and 'y\u0435s' (look-alike letters)",
    ]
    assert any(line.startswith("'No ' ") for line in lines_after(messages, "class shares"))


def lines_after(text: str, name: str) -> list[str]:
    """The indented lines below the line of this name."""
    lines = text.splitlines()
    below = lines[1 + next(place for place, line in enumerate(lines) if line.startswith(name)) :]
    return [line.strip() for line in takewhile(lambda line: line.startswith("  "), below)]


@pytest.mark.parametrize(("pairs", "more"), [(5, []), (20, []), (25, ["and 5 more"])])
def test_pairs_that_look_alike_are_all_listed_up_to_twenty(
    pairs: int, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture
):
    labels = [
        name for number in range(pairs) for name in (f"class{number:02d}", f"class{number:02d} ")
    ]
    rows = {
        "item": [f"i{n}" for n in range(len(labels))],
        "annotator": ["Ann"] * len(labels),
        "label": labels,
        "text": labels,
    }
    pq.write_table(pa.table(rows), tmp_path / "own.parquet")
    main(["describe", *long_options(tmp_path)])
    message = capsys.readouterr().out
    expected = [
        f"'class{number:02d}' and 'class{number:02d} ' (blanks)" for number in range(min(pairs, 20))
    ]
    assert lines_after(message, "LOOK ALIKE") == [*expected, *more]
    assert lines_of(message)["classes"].startswith(
        f"{2 * pairs}: 'class00', 'class00 ', 'class01', "
    )


@pytest.mark.parametrize("column", ["label", "item", "annotator", "text"])
def test_a_value_of_ten_million_characters_is_refused_or_printed_short(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture
):
    write_long_table(tmp_path / "own.parquet", **{column: "x" * 10**7})
    if column == "label":
        with pytest.raises(SystemExit) as end:
            main(["describe", *long_options(tmp_path)])
        assert end.value.code == 2
        message = capsys.readouterr().err
        assert "own.parquet has a class with a name of 10,000,000 characters (xxx" in message
    else:
        main(["describe", *long_options(tmp_path)])
        message = capsys.readouterr().out
    assert len(message) < 5000


def test_a_dataset_of_this_project(capsys: pytest.CaptureFixture):
    main(["describe", "--config", "configs/digits.yaml", "--data.annotators", "5"])
    result = lines_of(capsys.readouterr().out)
    data = Digits(annotators=5)
    data.setup()
    votes = data.corpus.votes  # pyright: ignore
    each = votes.counts.sum(1)
    assert result["annotators"] == "SIMULATED annotators"
    assert result["votes per item"] == f"{each.min()} to {each.max()}, mean {each.mean():.2f}"
    assert result["agreement"].startswith(
        f"Krippendorff's alpha {krippendorff_alpha(votes.counts):.3f} "
    )
    assert result["entropy"].startswith(f"mean {votes.normalized_entropy.mean():.3f} ")


def test_histograms_hold_every_item_once():
    lines = list(describe(Digits(annotators=5)))
    start = next(place for place, line in enumerate(lines) if line.startswith("entropy"))
    assert (
        sum(int(line.split()[-1].replace(",", "")) for line in lines[start + 1 : start + 11])
        == 3592
    )
    start = next(place for place, line in enumerate(lines) if line.startswith("votes per item"))
    stop = next(place for place, line in enumerate(lines) if line.startswith("class shares"))
    assert stop - start <= 13
    assert sum(int(line.split()[-1].replace(",", "")) for line in lines[start + 1 : stop]) == 3592


def test_probabilities_say_nothing_about_numbers_of_votes(tmp_path: Path):
    (tmp_path / "shares.csv").write_text("id,no,yes\na,0.25,0.75\nb,1,0\nc,0.5,0.5\n")
    np.save(tmp_path / "e.npy", np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]]))
    data = OwnVotes(
        "shares.csv",
        "id",
        probs=("no", "yes"),
        embeddings="e.npy",
        root=str(tmp_path),
        simulated=True,
    )
    result = lines_of("\n".join(describe(data)))
    assert result["annotators"] == "SIMULATED annotators"
    assert result["votes"].startswith("not known")
    assert result["agreement"].startswith("not known")
    assert result["suspicious"].startswith("not looked for")
    assert result["class shares"] == "of all votes, from 41.67% to 58.33%"
    assert result["duplicates"] == "1 items equal an earlier one: b = a"


def test_a_mistake_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture):
    for given, sentence in (
        (["--data.label", "word"], "votes.csv has no column word; it has item, annotator, label."),
        (["--data.labl", "word"], "data.labl is not an option (did you mean data.label?)."),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["describe", *options(folder), *given])
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.endswith(f"{sentence}\n")
    with pytest.raises(SystemExit, match="2"):
        main(["fit", *options(folder)])
    assert (
        "no vote on 1 of 41 items (i40); set data.leave_out_unvoted to true"
        in capsys.readouterr().err
    )


def table_after(text: str, name: str, head: str) -> dict[str, list[str]]:
    """The rows of a table that stands below the line of this name, by their first cell."""
    below = text[text.index(f"\n{name}") :].splitlines()
    start = next(place for place, row in enumerate(below) if row.split()[:1] == [head])
    rows = below[start + 1 :]
    rows = takewhile(lambda row: row.startswith("  ") and row[2] != " ", rows)
    return {row.split()[0]: row.split()[1:] for row in rows}


def test_what_scores_can_be_is_told_with_other_votes_and_a_budget(
    folder: Path, capsys: pytest.CaptureFixture
):
    path = folder / "worth.png"
    main(["describe", *options(folder), "--figure", str(path)])
    message = capsys.readouterr().out
    floor, *ceiling, halves = table_after(message, "worth", "floor")["kl"]
    assert float(floor) > float(ceiling[0])
    assert float(halves) > 0
    by_votes = table_after(message, "by votes", "votes")
    assert list(by_votes) == ["1", "2", "5", "10", "20", "50", "100"]
    budget = table_after(message, "budget", "items")
    assert budget["160"][0] == "2"  # of 321 votes
    assert "Votes alone cannot say what" in message
    tables = message[message.index("\nworth") : message.index("\nduplicates")]
    assert max(map(len, tables.splitlines())) < 110
    assert path.read_bytes().startswith(b"\x89PNG")


def test_probabilities_have_floors_and_no_figure(capsys: pytest.CaptureFixture, tmp_path: Path):
    probs = VoteTable.from_probs(np.random.default_rng(0).dirichlet([1, 1, 1], 30))
    lines = "\n".join(describe_worth(probs))
    assert "ceilings are not known, there are only probabilities" in lines
    floor, ceiling, halves = table_after(f"\n{lines}", "worth", "floor")["kl"]
    assert float(floor) > 0
    assert (ceiling, halves) == ("-", "-")
    assert "budget" not in lines
    with pytest.raises(InputError, match="--figure needs counts of votes"):
        draw_figure(probs, "made up", tmp_path / "worth.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("counts", [[[1, 0]] * 2, [[1, 0], [0, 1], [1, 0]]], ids=["two", "single"])
def test_so_few_votes_are_told_without_a_nan(counts: list[list[int]]):
    lines = "\n".join(describe_worth(VoteTable(counts)))
    assert "nan" not in lines
    assert ("it takes 3 items or more" in lines) == (len(counts) == 2)
