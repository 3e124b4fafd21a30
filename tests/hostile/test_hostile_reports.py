"""`study report` on somebody else's runs, whose files are whole and made to deceive: a report or
one sentence, and never a word that a browser obeys.
"""

import shutil
from pathlib import Path

import pytest

from callbacks.cartography.records import read_run
from callbacks.history import read_history
from callbacks.prediction_table import read_predictions
from callbacks.results import read_results
from cli import main
from studies.analysis.comparison.kept_comparisons import FILE, read_kept
from tests.hostile.deceiving import cases_of, place_of
from tests.hostile.outcomes import Hang, Outcome, check_sentence, outcome
from tests.hostile.reported_runs import REPORTS, report_on, study_of, write_runs

READ = {
    "results.json": lambda path: read_results(path.parent),
    "history.json": lambda path: read_history(path.parent),
    "predictions.parquet": lambda path: read_predictions(path.parent, "test"),
    "cartography_train.parquet": lambda path: read_run(path.parent),
    "cartography_train.f32": lambda path: read_run(path.parent),
    FILE: read_kept,
}
EVERY = 40  # of the files that a reader takes, the default suite reports on one in so many
BY_FILE = pytest.mark.parametrize("file", REPORTS)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    write_runs(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    return tmp_path


def read(folder: Path, file: str, content: bytes) -> Outcome:
    """How its reader ends on a file; results that are not to be trusted are none, which is a
    sentence of the report.
    """
    path = place_of(folder, file)
    path.write_bytes(content)
    result: list = []
    ended = outcome(lambda: result.append(READ[file](path)), file)
    return "sentence" if result == [None] else ended


def report(folder: Path, file: str, content: bytes) -> Outcome:
    place_of(folder, file).write_bytes(content)

    def written() -> None:
        page = report_on(folder, file)
        texts = [page, *(path.read_text() for path in (folder / "out" / "tables").glob("*.md"))]
        assert not any(word in text for text in texts for word in ("<script", "<img src=x"))

    return outcome(written, file)


@BY_FILE
def test_a_whole_report_is_written_of_whole_files(file: str, folder: Path):
    assert report(folder, file, place_of(folder, file).read_bytes()) == "result"


@BY_FILE
def test_readers_of_a_report_take_a_file_or_refuse_it(file: str, folder: Path):
    taken = {
        kind: content
        for kind, content in cases_of(folder)[file]()
        if trying(read, folder, file, kind, content) == "result"
    }
    for kind, content in list(taken.items())[::EVERY]:
        trying(report, folder, file, kind, content)


@pytest.mark.long
@BY_FILE
def test_a_report_on_files_made_to_deceive(file: str, folder: Path):
    for kind, content in cases_of(folder)[file]():
        trying(report, folder, file, kind, content)


def trying(how, folder: Path, file: str, kind: str, content: bytes) -> Outcome:
    try:
        return how(folder, file, content)
    except (Exception, Hang) as error:
        raise AssertionError(f"{file}, {kind}: {error!r}") from error


def test_there_are_hundreds_of_such_files(folder: Path):
    assert sum(len(list(cases())) for cases in cases_of(folder).values()) > 1000
    assert set(READ) == set(REPORTS) == set(cases_of(folder))


@pytest.mark.parametrize(
    "kind",
    [
        "metrics.soft_nll is a googol⁴",
        "versions is a list",
        "embedder is a list",
        "dataset is half a letter",
    ],
)
def test_such_results_count_as_not_finished(kind: str, folder: Path):
    place_of(folder, "results.json").write_bytes(dict(cases_of(folder)["results.json"]())[kind])
    assert "5 of 6 runs finished, 1 missing" in report_on(folder, "results.json")


def test_through_the_command_line(folder: Path, capsys: pytest.CaptureFixture):
    """A script in what a report quotes, and a table of predictions that are none."""
    cases = {"results.json": "dataset is a script", "predictions.parquet": "rows without end"}
    for file, kind in cases.items():
        place_of(folder, file).write_bytes(dict(cases_of(folder)[file]())[kind])
    study = study_of(folder, "results.json").path
    main(
        [
            "study",
            "report",
            str(study),
            "--runs",
            str(folder / "runs"),
            "--copy",
            str(folder / "copy"),
        ]
    )
    for path in [folder / "runs" / "small-report" / "report.html", *folder.rglob("*.md")]:
        text = path.read_text()
        assert "<script" not in text
        assert "onerror" in text or path.name == "c.md"  # it is quoted, as text
    capsys.readouterr()
    study_of(folder, "predictions.parquet")
    with pytest.raises(SystemExit) as end:
        main(["study", "report", str(study), "--runs", str(folder / "runs")])
    assert end.value.code == 2
    check_sentence(capsys.readouterr().err.strip(), "predictions.parquet")
