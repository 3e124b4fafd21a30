"""Files without end in the place of small ones: devices, pipes, gigabytes, and studies that extend
each other for ever.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from callbacks.history import read_history
from callbacks.results import has_ended
from corpora.options import read_options
from datamodules import OwnVotes
from experiment.config_files import check_config
from experiment.configuration import resolve
from studies.plan.study import Study
from studies.scoring.prediction_file import read_prediction_file
from studies.scoring.score_options import FORMATS, parse_score
from tests.hostile.outcomes import outcome
from tests.hostile.test_hostile_arrays import refused
from tests.hostile.test_hostile_text import BOMB

STUDY = "name: small\nconfigs: [configs/digits.yaml]\ngrids: {main: {seed_everything: [0]}}\n"


def pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def gigabytes(path: Path) -> Path:
    with open(path, "wb") as stream:
        stream.truncate(3 * 10**9)  # which take no room on the disk
    return path


def circle(path: Path) -> Path:
    path.symlink_to(path.name)
    return path


ENDLESS: dict[str, Callable[[Path], Path]] = {
    "a pipe": pipe,
    "a device": lambda path: Path("/dev/zero"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero") or path,
    "gigabytes": gigabytes,
    "a link to itself": circle,
    "a folder": lambda path: path.mkdir() or path,
    "nothing": lambda path: path,
}
BY_KIND = pytest.mark.parametrize("kind", ENDLESS)


@BY_KIND
def test_a_study_or_a_config_is_a_file_of_a_bounded_size(kind: str, tmp_path: Path):
    path = ENDLESS[kind](tmp_path / "some.yaml")
    refused(lambda: Study.load(path), path.name)
    refused(lambda: read_options(path), path.name)
    (tmp_path / "study.yaml").write_text(f"extends: {path}\n{STUDY}")
    assert "which" in refused(lambda: Study.load(tmp_path / "study.yaml"), path.name)
    assert outcome(lambda: resolve(["--config", str(path)]), path.name) == "sentence"


@BY_KIND
def test_so_is_any_option_that_names_a_file(kind: str, tmp_path: Path):
    """The parser would read it as a config, on the command line and within a config, and look for
    it beside that.
    """
    path = ENDLESS[kind](tmp_path / "some.yaml")
    for option in ("--trainer", "--model", "--data", "--model.network", "--trainer.callbacks"):
        for words in ([option, str(path)], [f"{option}={path}"]):
            assert (
                outcome(
                    lambda words=words: resolve(["--config", "configs/digits.yaml", *words]),
                    path.name,
                    option[2:],
                )
                == "sentence"
            )
    for name in (path, path.name):
        (tmp_path / "config.yaml").write_text(f"model: {name}\n")
        assert (
            outcome(lambda: resolve(["--config", str(tmp_path / "config.yaml")]), "config.yaml")
            == "sentence"
        )


def test_a_yaml_named_by_an_option_is_as_plain_as_any_other(tmp_path: Path):
    (tmp_path / "bomb.yaml").write_text(BOMB)
    assert (
        outcome(lambda: resolve(["--trainer", str(tmp_path / "bomb.yaml")]), "bomb.yaml")
        == "sentence"
    )
    (tmp_path / "trainer.yaml").write_text("max_epochs: 7\n")
    (tmp_path / "config.yaml").write_text("trainer: trainer.yaml\n")
    check_config(tmp_path / "config.yaml")
    whole = ["--config", "configs/digits.yaml", "--config", str(tmp_path / "config.yaml")]
    assert resolve(whole)["trainer"]["max_epochs"] == 7


def test_a_long_chain_of_studies_is_one_study(tmp_path: Path):
    for number in range(1200):
        (tmp_path / f"{number}.yaml").write_text(
            f"extends: {number + 1}.yaml\ntitle: number {number}\n"
        )
    (tmp_path / "1200.yaml").write_text(STUDY)
    result: list[Study] = []
    assert outcome(lambda: result.append(Study.load(tmp_path / "0.yaml"))) == "result"
    assert (result[0].name, result[0].title) == ("small", "number 0")
    (tmp_path / "1200.yaml").write_text(f"extends: 600.yaml\n{STUDY}")
    assert "extends it in turn" in refused(lambda: Study.load(tmp_path / "0.yaml"), "1200.yaml")


@BY_KIND
def test_results_of_a_run_that_are_no_file(kind: str, tmp_path: Path):
    """A run with such files is not finished; it is not waited for."""
    for name in ("results.json", "failed.json", "training.json"):
        ENDLESS[kind](tmp_path / name)
    ended: list[bool] = []
    assert outcome(lambda: ended.append(has_ended(tmp_path))) == "result"
    assert ended == [False]
    ENDLESS[kind](tmp_path / "history.json")
    # as for a run that was not trained here
    ends = "sentence" if (tmp_path / "history.json").exists() else "result"
    assert outcome(lambda: read_history(tmp_path), "history.json") == ends


@BY_KIND
@pytest.mark.parametrize("ending", FORMATS)
def test_predictions_to_score_are_a_file(kind: str, ending: str, tmp_path: Path):
    path = ENDLESS[kind](tmp_path / f"mine{ending}")

    def read() -> None:
        options = parse_score([str(path), "--data", "Digits"])
        read_prediction_file(options.files[0], ("no", "yes"), ("item",), 10)

    refused(read, path.name)


@pytest.mark.parametrize("name", ["votes.csv", "votes.parquet"])
def test_votes_from_a_pipe(name: str, tmp_path: Path):
    options: Any = {
        "item": "item",
        "label": "label",
        "embeddings": "ready.npy",
        "root": str(tmp_path),
    }
    np.save(tmp_path / "ready.npy", np.ones((2, 2)))
    pipe(tmp_path / name)
    assert "a pipe" in refused(lambda: OwnVotes(name, **options).summarize(), name)
