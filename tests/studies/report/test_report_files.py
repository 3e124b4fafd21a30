"""Reports and their copies as files: one whole report whoever writes or dies at the same time, and
never a file of the user's lost.
"""

import os
import re
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

import studies.report.command
from cli import main
from core.atomic_io import SUFFIX
from core.errors import InputError
from studies.plan.study import Study
from studies.report.command import report_command
from studies.report.copy import MARK, check_place, write_copy
from studies.report.owned_files import LIST
from studies.report.report import Report, build_report, write_files
from tests.studies.report.test_report import DELIVERIES, METRICS, finish, make_study

GRIDS = {
    "sweep": {"data.delivery": DELIVERIES, "data.votes_per_item": [5], "seed_everything": [0, 1]}
}
TABLES = [{**METRICS, "name": name, "where": {}} for name in ("first", "second")]
FIGURE = {"name": "points", "kind": "points", "metric": "soft_nll", "rows": "data.delivery"}
FILES = {
    f"tables/{name}.{suffix}" for name in ("first", "second") for suffix in ("md", "csv", "tex")
}
FILES |= {"figures/points.svg", "figures/points.png", "report.html", LIST, ".lock"}
COPIED = {name for name in FILES if name.endswith((".md", ".csv", ".png"))} | {"README.md", LIST}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path]:
    """A study and its runs."""
    folder = tmp_path_factory.mktemp("made")
    study = make_study(folder, grids=GRIDS, report={"tables": TABLES, "figures": [FIGURE]})
    finish(study, folder / "runs")
    return study, folder / "runs"


@pytest.fixture(scope="module")
def report(made: tuple[Study, Path]) -> Report:
    return build_report(*made)


def renamed(report: Report, title: str) -> Report:
    """The same with another title, which its page and its README.md show, and every table in its
    caption.
    """
    return replace(
        report,
        study=replace(report.study, title=title),
        section=replace(report.section, scale=title),
    )


def held(folder: Path) -> dict[str, bytes]:
    result = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return {
        name: content for name, content in result.items() if not name.startswith("tensorboard/")
    }


def in_fork(work: Callable[[], None]) -> int:
    process = get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode


# Reports


def test_a_report_replaces_an_earlier_one_and_nothing_beside_it(report: Report, tmp_path: Path):
    write_files(report, tmp_path)
    assert held(tmp_path).keys() == FILES
    logs = list((tmp_path / "tensorboard").rglob("events*"))
    mine = {
        "figures/mine.png": b"a person's",
        "tables/mine.csv": b"a person's",
        "tensorboard/mine/events.out.tfevents.1": b"a person's",
    }
    for name, content in mine.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    write_files(replace(report, tables=report.tables[:1], figures=[]), tmp_path)
    result = held(tmp_path)
    assert result.keys() == {
        name for name in FILES if "second" not in name and "points" not in name
    } | {
        "figures/mine.png",
        "tables/mine.csv",
    }
    assert all((tmp_path / name).read_bytes() == content for name, content in mine.items())
    assert not any(path.exists() for path in logs)
    assert len(list((tmp_path / "tensorboard").rglob("events*"))) == len(logs) + 1


@pytest.mark.parametrize("name", ["tables/first.tex", "report.html"])
def test_a_report_that_a_person_has_changed_is_not_written_over(
    report: Report, tmp_path: Path, name: str
):
    write_files(report, tmp_path)
    (tmp_path / name).write_text("a person's remarks")
    before = held(tmp_path)
    with pytest.raises(
        InputError,
        match=rf"{name} was changed after it was written; move it away, or delete it to have it "
        r"written again\.",
    ):
        write_files(renamed(report, "Another"), tmp_path)
    assert held(tmp_path) == before


def test_a_folder_that_is_no_report_is_not_written_to(report: Report, tmp_path: Path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "first.csv").write_text("a person's")
    with pytest.raises(
        InputError,
        match=r"tables/first\.csv was not written by a report that keeps a list of its files; "
        r"move it away, so that the report can be written\.",
    ):
        write_files(report, tmp_path)
    assert held(tmp_path).keys() == {"tables/first.csv", ".lock"}


def test_a_report_of_an_earlier_version_is_known_by_its_page(report: Report, tmp_path: Path):
    """It kept no list. Files of other names stay, but for the logs of this study's runs."""
    write_files(report, tmp_path)
    (tmp_path / LIST).unlink()
    (tmp_path / "tables" / "mine.csv").write_text("a person's")
    logs = list((tmp_path / "tensorboard").rglob("events*"))
    write_files(renamed(report, "Another"), tmp_path)
    assert held(tmp_path).keys() == FILES | {"tables/mine.csv"}
    assert not any(path.exists() for path in logs)
    assert "Another" in (tmp_path / "report.html").read_text()
    (tmp_path / LIST).unlink()
    (tmp_path / "report.html").write_text("a person's own page")
    with pytest.raises(InputError, match="was not written by a report"):
        write_files(report, tmp_path)


def test_of_two_reports_at_once_one_whole_report_is_left(report: Report, tmp_path: Path):
    """Ten at once, in fact, each of which says its own number in every table and on its page; a
    reader meanwhile sees whole pages alone.
    """
    out = tmp_path / "out"
    write_files(renamed(report, "Number 99."), out)
    context = get_context("fork")
    writers = [
        context.Process(target=write_files, args=(renamed(report, f"Number {number}."), out))
        for number in range(10, 20)
    ]
    for writer in writers:
        writer.start()
    seen = set()
    while any(writer.is_alive() for writer in writers):
        page = (out / "report.html").read_text()
        assert page.endswith("</body></html>\n")
        seen |= set(re.findall(r"<h1>Number (\d\d)\.</h1>", page))
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 10
    assert seen
    result = held(out)
    assert result.keys() == FILES
    numbers = {
        number
        for name, content in result.items()
        if name.endswith((".md", ".tex", ".html"))
        for number in re.findall(rb"Number (\d\d)", content)
    }
    assert len(numbers) == 1
    assert len(list((out / "tensorboard").rglob("events*"))) == 1 + len(report.collection.finished)


@pytest.mark.parametrize(
    ("event", "name", "new"),
    [
        ("fsync", "second.md", False),
        ("fsync", "report.html", False),
        ("replace", "second.md", False),
        ("replace", "report.html", False),
        ("replace", LIST, None),
        ("unlink", "first.tex", True),
    ],
)
def test_a_report_killed_in_mid_write_leaves_a_whole_page_and_the_next_one_no_rests(
    report: Report, tmp_path: Path, event: str, name: str, new: bool | None
):
    """Killed before any file has taken its place, and between any two, all that a reader can open
    is whole; `new`: whether it is the new page.
    """
    write_files(replace(renamed(report, "Before"), tables=report.tables[::-1]), tmp_path)
    before = held(tmp_path)

    def be_killed() -> None:
        known = getattr(os, event)

        def killing(*args, **options):
            path = os.readlink(f"/proc/self/fd/{args[0]}") if event == "fsync" else str(args[-1])
            if name in path:
                os.kill(os.getpid(), signal.SIGKILL)
            return known(*args, **options)

        setattr(os, event, killing)
        write_files(replace(renamed(report, "After"), tables=report.tables[1:]), tmp_path)

    assert in_fork(be_killed) == -signal.SIGKILL
    result = held(tmp_path)
    assert new is None or (b"<h1>After</h1>" in result["report.html"]) is new
    if event == "fsync":
        assert result.items() >= before.items() - {(LIST, before[LIST]), (".lock", b"")}
    assert all(
        content.endswith(b"</body></html>\n")
        for name, content in result.items()
        if name == "report.html"
    )
    write_files(renamed(report, "At last"), tmp_path)
    result = held(tmp_path)
    assert result.keys() == FILES
    assert b"<h1>At last</h1>" in result["report.html"]
    assert not list(tmp_path.rglob(f".*{SUFFIX}"))


# Copies


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """A paper's folder, with figures and tables of the authors' own, one of them by the name of a
    report's.
    """
    for name in (
        "paper.tex",
        "figures/mine.png",
        "figures/points.png",
        "tables/mine.csv",
        "tables/mine.md",
    ):
        (tmp_path / "paper" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "paper" / name).write_text(f"the authors' {name}")
    return tmp_path / "paper"


def test_a_copy_into_a_papers_folder_touches_nothing_of_it(
    made: tuple[Study, Path], report: Report, paper: Path, capsys: pytest.CaptureFixture
):
    """By the command: refused where a file is in the way, before even the report is written; else
    written beside what is there.
    """
    study, runs = made
    before = held(paper)
    command = ["study", "report", str(study.path), "--runs", str(runs), "--copy", str(paper)]
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 2
    message = (
        "figures/points.png was not written by a copy that keeps a list of its files; name "
        "a new folder after --copy, or delete what is there."
    )
    assert capsys.readouterr().err == f"error: {paper}/{message}\n"
    assert held(paper) == before
    assert not (runs / "sweep-report").exists()
    (paper / "figures" / "points.png").unlink()
    del before["figures/points.png"]
    for _ in range(2):
        main(command)
        assert held(paper).keys() == before.keys() | COPIED
        assert held(paper).items() >= before.items()
    shutil.rmtree(runs / "sweep-report")


def test_an_earlier_copy_is_replaced_with_all_that_it_has_no_more(report: Report, tmp_path: Path):
    write_copy(report, tmp_path)
    assert held(tmp_path).keys() == COPIED
    write_copy(replace(report, tables=report.tables[:1], figures=[]), tmp_path)
    assert held(tmp_path).keys() == {"README.md", LIST, "tables/first.md", "tables/first.csv"}
    assert not (tmp_path / "figures").exists()


@pytest.mark.parametrize("name", ["README.md", "tables/second.csv", "figures/points.png"])
def test_a_copy_that_a_person_has_changed_is_refused_by_name(
    report: Report, tmp_path: Path, name: str
):
    write_copy(report, tmp_path)
    (tmp_path / name).write_text("a person's remarks")
    before = held(tmp_path)
    for changed in (
        renamed(report, "Another"),
        replace(report, tables=report.tables[:1], figures=[]),
    ):
        with pytest.raises(
            InputError,
            match=rf"{name} was changed after it was written; move it away, or delete it to have "
            r"it written again\.",
        ):
            write_copy(changed, tmp_path)
    assert held(tmp_path) == before


def refused(report: Report, folder: Path, name: str) -> None:
    """Nothing is touched, and the file in the way is named with what to do."""
    before = held(folder)
    message = (
        "was not written by a copy that keeps a list of its files; name a new folder after "
        "--copy, or delete what is there"
    )
    with pytest.raises(InputError, match=rf"^{re.escape(str(folder / name))} {message}\.$"):
        write_copy(report, folder)
    assert held(folder) == before


def test_without_a_list_nothing_is_a_copys_own_but_what_stays_as_it_is(
    report: Report, tmp_path: Path
):
    """Not even what its README.md shows: a person may have put it there, or changed it."""
    write_copy(report, tmp_path)
    whole = held(tmp_path)
    (tmp_path / LIST).unlink()
    write_copy(report, tmp_path)
    assert held(tmp_path) == whole
    (tmp_path / LIST).unlink()
    (tmp_path / "figures" / "mine.png").write_bytes(b"a person's")
    refused(renamed(report, "Another"), tmp_path, "README.md")
    with open(tmp_path / "tables" / "first.csv", "a") as file:
        file.write("a person's")
    refused(report, tmp_path, "tables/first.csv")
    (tmp_path / "tables" / "first.csv").write_bytes(b"")
    refused(report, tmp_path, "tables/first.csv")
    with open(tmp_path / "README.md", "a") as file:
        file.write("![f](figures/mine.png)")
    refused(report, tmp_path, "README.md")


@pytest.mark.parametrize(
    "name", ["basins_frozen", "basins_small", "epistemic", "human_uncertainty"]
)
def test_a_copy_of_an_earlier_version_is_refused_before_anything_is_computed(
    report: Report, tmp_path: Path, name: str
):
    """The results in this repository are such copies, which kept no list."""
    shutil.copytree(
        Path(__file__).parents[3] / "docs" / "results" / name, tmp_path, dirs_exist_ok=True
    )
    (tmp_path / LIST).unlink(missing_ok=True)
    text = (
        (tmp_path / "README.md")
        .read_text()
        .replace(
            MARK, "<!-- Written by cli.py study report --copy; changes made here are lost. -->"
        )
    )
    (tmp_path / "README.md").write_text(text)
    refused(report, tmp_path, "README.md")
    with pytest.raises(InputError, match=r"README\.md was not written by a copy that keeps a list"):
        check_place(report.study, report.runs, tmp_path)


def test_a_copy_goes_neither_to_runs_nor_to_reports_nor_to_another_studys_copy(
    made: tuple[Study, Path], report: Report, tmp_path: Path, capsys: pytest.CaptureFixture
):
    """By the command; every file there stays as it was."""
    study, runs = made
    other = replace(report, study=replace(report.study, name="other"))
    write_files(other, tmp_path / "other-report")
    write_copy(other, tmp_path / "copy")
    old = tmp_path / "old-report"
    shutil.copytree(tmp_path / "other-report", old)
    (old / LIST).unlink()  # as earlier versions left it
    trained = tmp_path / "trained"
    trained.mkdir()
    (trained / "training.json").write_text("{}")
    new = "name a new folder after --copy"
    places = {
        runs: f"is the folder of runs; {new}",
        runs / "sweep-report": f"is the folder of a report; {new}",
        tmp_path / "other-report": f"is the folder of a report; {new}",
        old: f"is the folder of a report; {new}",
        trained: f"is the folder of a run; {new}",
        tmp_path
        / "copy": f"holds a copy of the study other, as its {LIST} says; {new}, or delete what "
        "is there",
    }
    for again in range(2):
        before = held(tmp_path), held(runs)
        for place, message in places.items():
            with pytest.raises(SystemExit):
                main(
                    ["study", "report", str(study.path), "--runs", str(runs), "--copy", str(place)]
                )
            assert capsys.readouterr().err == f"error: {place} {message}.\n"
        assert (held(tmp_path), held(runs)) == before
        if not again:  # the next time there is a report
            write_files(report, runs / "sweep-report")
    shutil.rmtree(runs / "sweep-report")


def test_a_report_does_not_replace_a_copy(report: Report, tmp_path: Path):
    write_copy(report, tmp_path)
    before = held(tmp_path)
    with pytest.raises(
        InputError,
        match=rf"^{tmp_path} holds a copy of the study sweep, as its {LIST} says; move it away, "
        r"so that the report can be written\.$",
    ):
        write_files(report, tmp_path)
    assert held(tmp_path) == {**before, ".lock": b""}


def test_a_copy_killed_in_mid_write_is_known_again(report: Report, tmp_path: Path):
    write_copy(report, tmp_path)

    def be_killed() -> None:
        known = os.replace

        def killing(source, target):
            if Path(target).name == "second.csv":
                os.kill(os.getpid(), signal.SIGKILL)
            known(source, target)

        os.replace = killing
        write_copy(renamed(report, "Another"), tmp_path)

    assert in_fork(be_killed) == -signal.SIGKILL
    write_copy(renamed(report, "At last"), tmp_path)
    assert held(tmp_path).keys() == COPIED
    assert "# At last" in (tmp_path / "README.md").read_text()


def test_a_file_in_the_copys_place_is_refused(report: Report, tmp_path: Path):
    (tmp_path / "file").write_text("a person's")
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    for name in ("file", "broken"):
        with pytest.raises(InputError, match=f"{name} is a file; name a folder after --copy"):
            write_copy(report, tmp_path / name)


def test_runs_that_cannot_be_written_give_a_copy_and_need_no_lock(
    made: tuple[Study, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    study, runs = made
    monkeypatch.setattr(studies.report.command, "is_writable", lambda folder: False)
    with pytest.raises(
        InputError,
        match=r"sweep-report cannot be written; name a folder for a copy of the report with "
        r"--copy\.",
    ):
        report_command(study, runs, None, print)
    before = sorted(runs.rglob("*"))
    messages: list[str] = []
    report_command(study, runs, tmp_path / "copy", messages.append)
    assert messages == [
        f"{runs}/sweep-report cannot be written, so there is a copy alone",
        f"copy: {tmp_path}/copy/README.md",
    ]
    assert held(tmp_path / "copy").keys() == COPIED
    assert sorted(runs.rglob("*")) == before  # not even a lock
