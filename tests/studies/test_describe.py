"""`describe` as a user sees it: what was understood of the votes, for a dataset of this project and for one's own."""

import csv
from pathlib import Path

import numpy as np
import pytest

from cli import main
from datamodules import Digits, OwnVotes
from datamodules.agreement import krippendorff_alpha
from studies.describe import describe
from tests.datamodules.small_embedder import CLASS_PATH


def lines_of(text: str) -> dict[str, str]:
    return {line[:16].strip(): line[16:].strip() for line in text.splitlines() if line[:1].strip() and line[15:16] == " "}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Forty items by eight people, of whom Zoe always says yes and Max the opposite; one item has no votes, two are the same, and one vote comes twice."""
    rng, rows = np.random.default_rng(0), []
    for item in range(40):
        truth = ("no", "unsure", "yes")[item % 3]
        for who in ("Ann", "Bob", "Cem", "Dan", "Eva", "Flo", "Max", "Zoe"):
            other = {"no": "unsure", "unsure": "yes", "yes": "no"}[truth]
            said = {"Zoe": "yes", "Max": other}.get(who, truth if rng.random() < 0.9 else other)
            rows.append((f"i{item}", who, said))
    (tmp_path / "own").mkdir()
    texts = [(f"i{item}", f"Text {item if item != 7 else 3}.") for item in range(41)]
    for name, head, content in (("votes.csv", ("item", "annotator", "label"), [*rows, rows[11]]), ("items.csv", ("item", "text"), texts)):
        with open(tmp_path / "own" / name, "w", newline="") as stream:
            csv.writer(stream).writerows([head, *content])
    return tmp_path


def options(folder: Path) -> list[str]:
    return ["--config", "configs/own_votes.yaml", "--data.root", str(folder), "--data.embedder", CLASS_PATH]


def test_ones_own_votes_are_described_with_all_that_is_wrong_with_them(folder: Path, capsys: pytest.CaptureFixture):
    main(["describe", *options(folder)])
    said = capsys.readouterr().out
    found = lines_of(said)
    assert found["items"] == "41, texts"
    assert found["without votes"] == "1 items (i40); they cannot be trained on"
    assert found["classes"] == "3: no, unsure, yes"
    assert found["votes"] == "321 by 8 annotators, read from one row per vote"
    assert found["votes per item"] == "8 to 9, mean 8.03"
    assert found["duplicates"] == "1 items equal an earlier one: i7 = i3"
    assert found["repeated votes"] == "1, in row 320 of the file (one annotator, one item)"
    assert found["suspicious"].startswith("2 of 8 annotators")
    assert found["annotators"] == "not marked as simulated"
    assert "    Max: 0." in said
    assert "    Zoe: yes in all of 40 votes" in said
    assert not (folder / "runs").exists()


def test_a_dataset_of_this_project(capsys: pytest.CaptureFixture):
    main(["describe", "--config", "configs/digits.yaml", "--data.annotators", "5"])
    found = lines_of(capsys.readouterr().out)
    data = Digits(annotators=5)
    data.setup()
    votes = data.corpus.votes  # pyright: ignore
    each = votes.counts.sum(1)
    assert found["annotators"] == "SIMULATED annotators"
    assert found["votes per item"] == f"{each.min()} to {each.max()}, mean {each.mean():.2f}"
    assert found["agreement"].startswith(f"Krippendorff's alpha {krippendorff_alpha(votes.counts):.3f} ")
    assert found["entropy"].startswith(f"mean {votes.normalized_entropy.mean():.3f} ")


def test_histograms_hold_every_item_once():
    lines = list(describe(Digits(annotators=5)))
    start = next(place for place, line in enumerate(lines) if line.startswith("entropy"))
    assert sum(int(line.split()[-1].replace(",", "")) for line in lines[start + 1 : start + 11]) == 3592
    start = next(place for place, line in enumerate(lines) if line.startswith("votes per item"))
    stop = next(place for place, line in enumerate(lines) if line.startswith("class shares"))
    assert stop - start <= 13
    assert sum(int(line.split()[-1].replace(",", "")) for line in lines[start + 1 : stop]) == 3592


def test_probabilities_say_nothing_about_numbers_of_votes(tmp_path: Path):
    (tmp_path / "shares.csv").write_text("id,no,yes\na,0.25,0.75\nb,1,0\nc,0.5,0.5\n")
    np.save(tmp_path / "e.npy", np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 1.0]]))
    data = OwnVotes("shares.csv", "id", probs=("no", "yes"), embeddings="e.npy", root=str(tmp_path), simulated=True)
    found = lines_of("\n".join(describe(data)))
    assert found["annotators"] == "SIMULATED annotators"
    assert found["votes"].startswith("not known")
    assert found["agreement"].startswith("not known")
    assert found["suspicious"].startswith("not looked for")
    assert found["class shares"] == "of all votes, from 41.67% to 58.33%"
    assert found["duplicates"] == "1 items equal an earlier one: b = a"


def test_a_mistake_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture):
    for given, sentence in (
        (["--data.label", "word"], "votes.csv has no column word; it has item, annotator, label."),
        (["--data.labl", "word"], "data.labl is not an option."),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(["describe", *options(folder), *given])
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.endswith(f"{sentence}\n")
    with pytest.raises(SystemExit, match="2"):
        main(["fit", *options(folder)])
    assert "no vote on 1 of 41 items (i40); set data.leave_out_unvoted to true" in capsys.readouterr().err
