"""Whatever lies in a folder and whenever a writer is killed: what is not known to be ours is
neither replaced nor removed.
"""

import json
import os
import signal
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.atomic_io import SUFFIX, remove_partial_files
from core.errors import InputError
from studies.report.owned_files import (
    LIST,
    Owner,
    check_files,
    owned_files,
    replace_files,
    same_files,
)

FIRST = {"tables/a.csv": b"1", "tables/b.csv": b"2", "figures/a.png": b"3", "page.html": b"first"}
OWNER = Owner("report", "digits", "move it away")
SECOND = {"tables/a.csv": b"11", "tables/c.csv": b"22", "page.html": b"second"}


def write(folder: Path, files: dict[str, bytes]) -> None:
    replace_files(folder, files, owned_files(folder, OWNER) or {}, OWNER)


def held(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != LIST
    }


def test_a_second_set_takes_the_place_of_the_first_and_of_nothing_else(tmp_path: Path):
    write(tmp_path, FIRST)
    (tmp_path / "tables" / "mine.csv").write_bytes(b"a person's")
    (tmp_path / "a.csv").write_bytes(b"a person's")
    write(tmp_path, SECOND)
    assert held(tmp_path) == {**SECOND, "tables/mine.csv": b"a person's", "a.csv": b"a person's"}
    assert not (tmp_path / "figures").exists()
    listed = json.loads((tmp_path / LIST).read_text())["files"]
    assert listed == {name: [sha256(content).hexdigest()] for name, content in SECOND.items()}


def test_a_file_can_be_moved_there_instead(tmp_path: Path):
    (tmp_path / "fresh").write_bytes(b"moved")
    write(tmp_path / "out", {**FIRST, "log/run/events": tmp_path / "fresh"})  # pyright: ignore[reportArgumentType]
    assert held(tmp_path) == {
        f"out/{name}": content for name, content in {**FIRST, "log/run/events": b"moved"}.items()
    }
    write(tmp_path / "out", FIRST)
    assert held(tmp_path / "out") == FIRST


@pytest.mark.parametrize("name", ["tables/c.csv", "tables/a.csv", "tables/b.csv"])
def test_what_is_not_ours_or_was_changed_is_named_before_anything_is_done(
    tmp_path: Path, name: str
):
    """One that would be new, one that would be replaced, and one that would be removed."""
    write(tmp_path, FIRST)
    (tmp_path / name).write_bytes(b"a person's")
    before = held(tmp_path)
    messages = (
        rf"{name} was not written by a report that keeps a list of its files; move it away\."
        if name not in FIRST
        else rf"{name} was changed after it was written; move it"
    )
    with pytest.raises(InputError, match=messages):
        write(tmp_path, SECOND)
    assert held(tmp_path) == before
    (tmp_path / name).unlink()
    write(tmp_path, SECOND)
    assert held(tmp_path) == SECOND


def test_a_folder_or_a_link_in_a_files_place_is_named(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("two years of work")
    for number, (place, made) in enumerate(
        {"page.html": "link", "tables": "link", "page.html/a": "folder", "figures": "file"}.items()
    ):
        folder = tmp_path / str(number)
        (folder / place).parent.mkdir(parents=True)
        if made == "link":
            (folder / place).symlink_to(tmp_path if place == "tables" else tmp_path / "thesis.tex")
        else:
            (folder / place).write_text("a person's")
        with pytest.raises(
            InputError,
            match=rf"/{number}/{place.split('/')[0]} (was not written by|is not a folder that) a "
            r"report",
        ):
            write(folder, FIRST)
    assert (tmp_path / "thesis.tex").read_text() == "two years of work"
    assert not list(tmp_path.rglob("*.csv"))


def test_an_empty_file_that_is_listed_is_ours(tmp_path: Path):
    """As a disk that lost power may leave it."""
    write(tmp_path, FIRST)
    (tmp_path / "page.html").write_bytes(b"")
    write(tmp_path, SECOND)
    assert held(tmp_path) == SECOND


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[]",
        "{}",
        '{"files": {}}',
        '{"kind": "paper", "study": "digits", "files": {}}',
        '{"kind": ["report"], "study": "digits", "files": {}}',
        '{"kind": "report", "study": 3, "files": {}}',
        *(
            f'{{"kind": "report", "study": "digits", "files": {files}}}'
            for files in (
                "3",
                '{"a": 3}',
                '{"a": [3]}',
                '{"../thesis.tex": []}',
                '{"/etc/passwd": []}',
                '{"a/../../thesis.tex": []}',
                '{".lock": []}',
            )
        ),
        "[" * 100_000,
    ],
)
def test_a_list_that_is_none_of_ours_is_refused(tmp_path: Path, content: str):
    (tmp_path / LIST).write_text(content)
    with pytest.raises(
        InputError, match=r"\.plurality-files\.json is not a list of files that a report wrote"
    ):
        owned_files(tmp_path, OWNER)


@pytest.mark.parametrize(("kind", "study"), [("copy", "digits"), ("report", "other")])
def test_files_of_another_owner_are_refused_by_its_name(
    tmp_path: Path, kind: Literal["report", "copy"], study: str
):
    other = Owner(kind, study, "name a new folder")
    replace_files(tmp_path, FIRST, {}, other)
    with pytest.raises(
        InputError,
        match=rf"^{tmp_path} holds a {kind} of the study {study}, as its {LIST} says; move it "
        r"away\.$",
    ):
        write(tmp_path, SECOND)
    assert held(tmp_path) == FIRST
    assert (owned_files(tmp_path, other) or {}).keys() == FIRST.keys()


def test_without_a_list_only_what_would_stay_as_it_is_is_ours(tmp_path: Path):
    write(tmp_path, FIRST)
    (tmp_path / LIST).unlink()
    (tmp_path / "tables" / "b.csv").write_bytes(b"")
    (tmp_path / "page.html").rename(tmp_path / "elsewhere")
    (tmp_path / "page.html").symlink_to(tmp_path / "elsewhere")
    assert same_files(tmp_path, FIRST).keys() == {"tables/a.csv", "figures/a.png"}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_sequence_of_reports_and_persons_loses_what_a_person_wrote(data: st.DataObject):
    """A person writes, changes, deletes and lays links; reports of varying files come in between.

    Files are of a few names, so that they meet.
    """
    names = ["a", "b", "tables/a", "tables/b"]
    with TemporaryDirectory() as root, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        folder, persons = Path(root) / "out", {}
        for step in range(data.draw(st.integers(2, 8))):
            name = data.draw(st.sampled_from(names))
            path = folder / name
            match data.draw(st.sampled_from(["report", "write", "delete"])):
                case "report":
                    chosen = data.draw(st.sets(st.sampled_from(names)))
                    try:
                        write(
                            folder,
                            {name: f"report {step} {name}".encode() for name in sorted(chosen)},
                        )
                        assert {
                            name: content
                            for name, content in held(folder).items()
                            if content.startswith(b"report")
                        }.keys() == chosen
                    except InputError:
                        assert persons.keys() & {*chosen, *(owned_files(folder, OWNER) or {})}
                case "write":
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(persons.setdefault(name, f"person {step}".encode()))
                case "delete":
                    path.unlink(missing_ok=True)
                    persons.pop(name, None)
            assert {
                name: content
                for name, content in held(folder).items()
                if content.startswith(b"person")
            } == persons


EVENTS = ("replace", "unlink", "fsync", "rmdir")


def _be_killed(folder: Path, count: int) -> None:
    """Write the second set, and be killed right before the given one of all that changes
    the disk.
    """
    left = count
    for event in EVENTS:
        known = getattr(os, event)

        def counted(*args, known=known, **options):
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return known(*args, **options)

        setattr(os, event, counted)
    write(folder, SECOND)
    os._exit(0)


def test_killed_at_any_moment_it_knows_its_own_files_again(tmp_path: Path):
    """Every file is the old or the new one, a person's are as they were, and the next one has
    everything in place and leaves no rests.
    """
    code, count = -signal.SIGKILL, 0
    while code == -signal.SIGKILL:
        count += 1
        folder = tmp_path / str(count)
        write(folder, FIRST)
        (folder / "tables" / "mine.csv").write_bytes(b"a person's")
        process = get_context("fork").Process(target=_be_killed, args=(folder, count))
        process.start()
        process.join()
        code = process.exitcode
        result = {
            name: content for name, content in held(folder).items() if not name.endswith(SUFFIX)
        }
        assert result.pop("tables/mine.csv") == b"a person's"
        assert all(
            content in (FIRST.get(name), SECOND.get(name)) for name, content in result.items()
        )
        assert result["page.html"] in (b"first", b"second")
        if result["page.html"] == b"second":
            assert result.items() >= SECOND.items()  # the page comes last
        check_files(folder, {**FIRST, **SECOND}, owned_files(folder, OWNER) or {}, OWNER)
        remove_partial_files(folder, folder / "tables", folder / "figures")
        write(folder, SECOND)
        assert held(folder) == {**SECOND, "tables/mine.csv": b"a person's"}
    assert code == 0
    assert count > 15
