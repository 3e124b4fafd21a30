"""`cli.py score` as a user sees it: a page and a table, or one sentence."""

import re
from html.parser import HTMLParser
from pathlib import Path

import lightning
import numpy as np
import pytest
import torch

from callbacks.prediction_table import write_predictions
from cli import main
from datamodules import Digits
from experiment.build import build
from experiment.configuration import resolve
from metrics import every_score
from studies.scoring import resampling
from studies.scoring.scoring import UNUSED
from tests.studies.scoring.files import by_class, some_probs, write_table

SCRIPT = "<script>alert(1)</script>"
CLASSES = ("nope", SCRIPT)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Few resamples, no Trainer at all, and a folder of its own to write to."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a Trainer was asked")

    monkeypatch.setattr(resampling, "OTHERS", 3)
    for name in ("fit", "validate", "test", "predict"):
        monkeypatch.setattr(lightning.Trainer, name, refuse)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def digits() -> Digits:
    data = Digits()
    data.setup()
    return data


def own_votes(folder: Path, items: int = 60) -> list[str]:
    """Options of a dataset of one's own, with a class and ids that a browser would obey."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(8, [0.6, 0.4], size=items)
    ids = [f"{SCRIPT}{number}" for number in range(items)]
    split = ["train", "val", "test"] * (items // 3)
    table = {
        "id": ids,
        "nope": counts[:, 0].tolist(),
        "yeah": counts[:, 1].tolist(),
        "split": split,
    }
    write_table(folder / "votes.csv", table)
    np.save(folder / "ready.npy", np.ones((items, 2), np.float32))
    options = {
        "votes": "votes.csv",
        "item": "id",
        "counts": "[nope, yeah]",
        "classes": f'["nope", "{SCRIPT}"]',
        "split_column": "split",
        "embeddings": "ready.npy",
        "root": str(folder),
    }
    words = ["--data", "OwnVotes"]
    for name, value in options.items():
        words += [f"--data.{name}", value]
    return words


class Page(HTMLParser):
    """The tags of a page, their addresses and its text."""

    def __init__(self, path: Path):
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_one_file_gives_a_page_and_a_table(
    digits: Digits, tmp_path: Path, capsys: pytest.CaptureFixture
):
    assert digits.corpus is not None
    rows = digits.rows("test")
    people = digits.corpus.votes.probs[rows]
    probs = 0.7 * people + 0.03
    np.save("mine.npy", probs)
    main(["score", "mine.npy", "--data", "Digits"])
    printed = capsys.readouterr().out
    page = Page(tmp_path / "report.html")
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.addresses)
    assert len(page.addresses) == 1, "one figure"
    assert "SIMULATED annotators" in page.text
    assert f"Judged: {len(rows)} of {len(digits.corpus.votes):,} items of Digits" in page.text
    assert "Unanimous items" in page.text
    assert "Items with disagreement" in page.text
    assert "python cli.py score mine.npy --data Digits" in page.text
    values = every_score(probs / probs.sum(1, keepdims=True), people)
    for name in ("kl", "accuracy", "ece_annotators"):
        assert f"{values[name]:.4f}" in page.text
        (line,) = (line for line in printed.splitlines() if f" {name} " in line)
        assert f"{values[name]:.4f}" in line
    assert re.search(r"skill \d\d\.\d%", page.text)
    assert "Compared" not in page.text
    assert "Written to report.html" in printed


def test_predictions_of_a_run_are_judged_as_they_are(tmp_path: Path, capsys: pytest.CaptureFixture):
    words = [*own_votes(tmp_path), "--data.fractions", "[0.4, 0.3, 0.3]"]
    place = words.index("--data.split_column")
    words[place : place + 2] = []
    data = build(resolve([*UNUSED, *words])["data"])
    data.setup()
    model = torch.from_numpy(some_probs(60, 2)).float()
    write_predictions(tmp_path, model, data.annotator_probs, torch.arange(60), data.corpus.splits)
    main(["score", "predictions.parquet", *words])
    rows = data.rows("test")
    values = every_score(model[rows].numpy(), data.corpus.votes.probs[rows])
    assert f"{values['soft_nll']:.4f}" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["score", "predictions.parquet", *words, "--seed_everything", "1"])
    assert "another split of OwnVotes; give the seed" in capsys.readouterr().err


def test_several_files_are_compared_and_names_are_only_names(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    options = own_votes(tmp_path)
    ids = [f"{SCRIPT}{number}" for number in range(60)]
    names = ["mine<script>.csv", "theirs.parquet", "third.jsonl"]
    for seed, name in enumerate(names):
        table = {"id": ids, **by_class(some_probs(60, 2, seed), CLASSES)}
        write_table(tmp_path / name, table)
    main(["score", *names, *options, "--report", "page.html"])
    page = Page(tmp_path / "page.html")
    assert "script" not in page.tags
    assert SCRIPT in page.text, "ids and classes are shown as they are"
    assert "Compared pairwise" in page.text
    assert all(name in page.text for name in names)
    printed = capsys.readouterr().out
    assert all(name in printed for name in names)
    # ours may be written again, and nothing else
    main(["score", names[1], *options, "--report", "page.html", "--split", "given"])
    assert "60 given items" in Page(tmp_path / "page.html").text
    Path("page.html").write_text("mine")
    with pytest.raises(SystemExit):
        main(["score", names[1], *options, "--report", "page.html"])
    assert "page.html is there already" in capsys.readouterr().err
    assert Path("page.html").read_text() == "mine"


def test_shares_without_counts_and_one_stratum(tmp_path: Path):
    """Ceilings are said to be unknown; a stratum without items has no table."""
    np.save("mine.npy", some_probs(60, 2))
    options = own_votes(tmp_path)
    shares = np.repeat([[0.5, 0.5]], 60, 0)
    table = {"id": [f"i{n}" for n in range(60)], **by_class(shares, ("nope", "yeah"))}
    write_table(tmp_path / "votes.csv", {**table, "split": ["train", "val", "test"] * 20})
    options[options.index("--data.counts")] = "--data.probs"
    main(["score", "mine.npy", *options])
    text = Page(tmp_path / "report.html").text
    assert "Ceilings and skill are not known" in text
    assert "Unanimous items (NoHLV): there are none." in text
    assert "nan" not in text.lower().replace("unanimous", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--data", "Digits"], "no file of predictions; name it before all options"),
        (["absent.csv", "--data", "Digits"], "there is no absent.csv"),
        (["mine.npy"], "needs the dataset that predictions are judged by"),
        (["mine.npy", "--data", "Digts"], "did you mean Digits"),
        (["mine.npy", "--data", "Digits", "--splt", "val"], "splt is not an option"),
        (["mine.npy", "--data", "Digits", "--split", "vall"], "--split"),
        (["mine.npy", "mine.npy", "--data", "Digits"], "named more than once"),
        (["mine.txt", "--data", "Digits"], "mine.txt is of no known kind"),
        ([".", "--data", "Digits"], "is a folder"),
        (["/dev/zero", "--data", "Digits"], "is a device or a pipe"),
        (["mine.npy", "--data", "Digits", "--report", "x.pdf"], "must end in .html"),
        (["mine.npy", "--data", "Digits"], "mine.npy has 5 rows and no ids"),
    ],
)
def test_a_mistake_is_one_sentence(words: list[str], sentence: str, capsys, tmp_path: Path):
    np.save("mine.npy", some_probs(5, 10))
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(SystemExit) as end:
        main(["score", *words])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert len(error.strip().splitlines()) == 1
    assert not Path("report.html").exists()
