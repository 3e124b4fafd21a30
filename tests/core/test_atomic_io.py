"""Files appear whole or not at all; what is left of a killed writer is removed by its name alone,
and nothing of the user's ever is.
"""

import io
import os
import re
import shutil
import signal
import stat
import subprocess
from multiprocessing import get_context
from pathlib import Path

import pytest

from cli import main
from core import atomic_io
from core.atomic_io import SUFFIX, remove_partial_files, write_atomically, write_together
from experiment.configuration import resolve
from experiment.identity import run_name


def names(folder: Path) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_symlink() or not path.is_dir()
    )


@pytest.mark.parametrize(
    "content",
    ["größer", "größer".encode(), io.BytesIO("größer".encode())],
    ids=["text", "bytes", "stream"],
)
def test_a_file_is_written_with_the_users_own_permissions(tmp_path: Path, content):
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new" / "a.txt", content)
    finally:
        os.umask(before)
    assert (tmp_path / "new" / "a.txt").read_text() == "größer"
    assert stat.S_IMODE((tmp_path / "new" / "a.txt").stat().st_mode) == 0o640
    assert names(tmp_path) == ["new/a.txt"]


def test_a_link_is_replaced_and_what_it_leads_to_is_not_touched(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("two years of work")
    for name in ("a", "b"):
        (tmp_path / name).symlink_to(tmp_path / "thesis.tex")
    write_atomically(tmp_path / "a", "new")
    write_together({tmp_path / "b": b"new"})
    assert (tmp_path / "thesis.tex").read_text() == "two years of work"
    assert [(tmp_path / name).read_text() for name in "ab"] == ["new", "new"]
    assert not (tmp_path / "a").is_symlink()


def test_file_and_folder_are_on_the_disk_when_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    events: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted(file: int) -> None:
        events.append(
            "folder"
            if stat.S_ISDIR(os.fstat(file).st_mode)
            else os.readlink(f"/proc/self/fd/{file}")
        )
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", lambda *paths: events.append("replace") or replace(*paths))
    write_atomically(tmp_path / "a", "new")
    assert events[1:] == ["replace", "folder"]
    assert re.fullmatch(rf"{tmp_path}/\.a\.[0-9a-f]{{8}}{re.escape(SUFFIX)}", events[0])
    events.clear()
    write_together({tmp_path / "a": b"newer", tmp_path / "b": b"new"})
    assert events[2:] == ["replace", "replace", "folder"]


def test_files_that_belong_together_are_all_there_before_the_first_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = {tmp_path / name: b"new" for name in ("a", "b", "sub/c")}
    for path in files:
        write_atomically(path, "old")
    stage = atomic_io._stage

    def full(path: Path, content: bytes) -> Path:
        if path.name == "c":
            raise OSError(28, "No space left on device")
        return stage(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_io, "_stage", full)
        with pytest.raises(OSError, match="No space left"):
            write_together(files)
    assert [path.read_text() for path in files] == ["old"] * 3
    assert names(tmp_path) == ["a", "b", "sub/c"]
    write_together(files)
    assert [path.read_bytes() for path in files] == [b"new"] * 3


@pytest.mark.parametrize("name", ["a" * 255, "ü" * 127, "x" * 201])
def test_the_longest_name_that_a_disk_allows_can_be_written(tmp_path: Path, name: str):
    write_atomically(tmp_path / name, "new")
    assert names(tmp_path) == [name]


@pytest.mark.parametrize("name", ["last.ckpt", "ü" * 127])
def test_what_a_killed_writer_left_is_removed(tmp_path: Path, name: str):
    process = get_context("fork").Process(target=_be_killed, args=(tmp_path / name,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    (rest,) = tmp_path.iterdir()
    assert rest.name.endswith(SUFFIX)
    remove_partial_files(tmp_path, of="other.ckpt")
    assert rest.exists()
    remove_partial_files(tmp_path, of=name)
    assert not rest.exists()


def _be_killed(path: Path) -> None:
    os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL)
    write_atomically(path, "half")


def test_nothing_of_the_users_is_removed(tmp_path: Path):
    """Whatever it ends in, at whatever depth; and nothing where a link leads."""
    run, partial = tmp_path / "run", f".last.ckpt.0a1b2c3d{SUFFIX}"
    kept = [
        "thesis.part",
        "thesis.tex.77.part",
        "sub/song.mp3.part",
        f"notes{SUFFIX}",
        f".notes{SUFFIX}",
        f"sub/{partial}",
    ]
    for name in (*kept, partial, f".tensorboard.x_1b2c3d{SUFFIX}/events"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text("something")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.tex").write_text("two years of work")
    (run / f".a.00000000{SUFFIX}").symlink_to(tmp_path / "elsewhere")
    (run / f".b.00000000{SUFFIX}").symlink_to(tmp_path / "elsewhere" / "thesis.tex")
    # the last two are no folders
    remove_partial_files(run, run / "checkpoints", run / "thesis.part")
    assert names(run) == sorted([*kept, f".a.00000000{SUFFIX}", f".b.00000000{SUFFIX}"])
    assert (tmp_path / "elsewhere" / "thesis.tex").read_text() == "two years of work"


def test_a_partial_file_is_new_or_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Even if somebody knew its name beforehand, and laid a link there."""
    (tmp_path / "thesis.tex").write_text("two years of work")
    monkeypatch.setattr(os, "urandom", bytes)
    (tmp_path / f".a.00000000{SUFFIX}").symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "a", "new")
    assert (tmp_path / "thesis.tex").read_text() == "two years of work"


def test_make_clean_leaves_runs_alone(tmp_path: Path):
    shutil.copy(Path(__file__).parents[2] / "Makefile", tmp_path)
    for name in ("runs/a/results.json", ".venv/ready"):
        write_atomically(tmp_path / name, "{}")
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert names(tmp_path) == ["Makefile", "runs/a/results.json"]


def test_a_run_removes_rests_of_its_own_and_no_file_of_the_users(tmp_path: Path):
    """Which may lie in its folder or below, under any name."""
    options = [
        "--config",
        "configs/digits.yaml",
        "--trainer.max_epochs",
        "1",
        "--trainer.limit_train_batches",
        "2",
    ]
    run = tmp_path / run_name(resolve(options))
    mine = [
        run / name
        for name in (
            "thesis.part",
            "results.json.77.part",
            "checkpoints/best.ckpt.77.part",
            "notes/song.mp3.part",
        )
    ]
    rests = [
        run / f".results.json.0a1b2c3d{SUFFIX}",
        run / "checkpoints" / f".last.ckpt.0a1b2c3d{SUFFIX}",
    ]
    for path in (*mine, *rests):
        write_atomically(path, "something")
    fitted = main(
        [
            "fit",
            *options,
            "--trainer.default_root_dir",
            str(tmp_path),
            "--trainer.enable_progress_bar",
            "false",
        ]
    )
    assert fitted.run_dir == run
    assert [path.read_text() for path in mine] == ["something"] * len(mine)
    assert not any(path.exists() for path in rests)
