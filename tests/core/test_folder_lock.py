"""One process at a time holds a folder: who has it is said, links are not followed, and no end of a
process leaves it held.
"""

import errno
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path

import pytest

from core import folder_lock as module
from core.errors import InputError
from core.folder_lock import folder_lock, is_writable

ROOT = Path(__file__).parents[2]
SINCE = r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def script(text: str, folder: Path) -> subprocess.Popen:
    """Another process, which has `folder` and `folder_lock` at hand, and says things by its
    output.
    """
    start = (
        "from core.folder_lock import folder_lock\nfrom pathlib import Path\nimport "
        f"os\nfolder = Path({str(folder)!r})\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", start + text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def holder(folder: Path) -> subprocess.Popen:
    """Another process that has the folder until it is killed or its input is closed."""
    process = script(
        "with folder_lock(folder, 'trains this run'):\n    print('mine', flush=True)\n    input()",
        folder,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    return process


def end(process: subprocess.Popen, message: str = "\n") -> str:
    return process.communicate(message, timeout=600)[0]


def is_free(folder: Path) -> bool:
    """For another process, as it sees it."""
    look = (
        "try:\n    with folder_lock(folder, 'looks', wait=False): print('free')\nexcept "
        "ValueError: print('held')"
    )
    return {"free\n": True, "held\n": False}[end(script(look, folder))]


def content(folder: Path) -> str:
    return (folder / ".lock").read_text()


def test_whoever_may_not_wait_is_told_who_has_it(tmp_path: Path):
    other = holder(tmp_path / "run")
    message = (
        rf"run is held by process {other.pid} on {re.escape(socket.gethostname())}, which "
        rf"trains this run, {SINCE}; wait for it to end, or stop it\.$"
    )
    with (
        pytest.raises(InputError, match=message),
        folder_lock(tmp_path / "run", "tests this run", wait=False),
    ):
        pytest.fail("two have it")
    end(other)
    with folder_lock(tmp_path / "run", "tests this run", wait=False):
        assert f"held by process {os.getpid()} " in content(tmp_path / "run")


def test_whoever_waits_says_once_for_whom_and_has_it_when_that_one_ends(tmp_path: Path):
    other, result = holder(tmp_path), []

    def say(line: str) -> None:
        result.append(line)
        threading.Thread(target=end, args=(other,)).start()

    with folder_lock(tmp_path, "tests this run", say=say):
        assert re.fullmatch(
            rf"{tmp_path} is held by process {other.pid} on .+, which trains this run, {SINCE}; "
            r"waiting for it to end",
            *result,
        )
        assert "which tests this run" in content(tmp_path)
    assert content(tmp_path) == ""


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_holder_that_is_killed_has_it_no_longer(tmp_path: Path, way: signal.Signals):
    other = holder(tmp_path)
    other.send_signal(way)
    other.communicate()
    with folder_lock(tmp_path, "tests this run", wait=False):
        assert f"held by process {os.getpid()} " in content(tmp_path)


def test_it_may_be_held_again_by_who_has_it(tmp_path: Path):
    (tmp_path / "link").symlink_to(tmp_path)
    with folder_lock(tmp_path, "runs this study", wait=False):
        with folder_lock(tmp_path / "link" / ".." / tmp_path.name, "trains this run", wait=False):
            assert "which runs this study" in content(tmp_path)
        assert not is_free(tmp_path)
        with pytest.raises(KeyError), folder_lock(tmp_path, "trains this run", wait=False):
            raise KeyError
        assert not is_free(tmp_path)
    assert is_free(tmp_path)


def test_threads_of_one_process_take_turns(tmp_path: Path):
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            with folder_lock(tmp_path, "counts", say=lambda line: None):
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (inside, most) == (0, 1)


def test_another_thread_does_not_have_what_one_has(tmp_path: Path):
    errors: list[str] = []

    def work() -> None:
        try:
            with folder_lock(tmp_path, "tests this run", wait=False):
                errors.append("two have it")
        except InputError as error:
            errors.append(str(error))

    with folder_lock(tmp_path, "trains this run"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert errors == [
        f"{tmp_path} is held by another thread of this process; wait for it to end, or stop it."
    ]


def test_a_forked_process_has_nothing_of_what_its_parent_has(tmp_path: Path):
    """Neither by what it believes, nor when it leaves what its parent entered, nor by keeping it
    from others when the parent is gone.
    """
    parent = script(
        """
with folder_lock(folder, "runs this study"):
    child = os.fork()
    if not child:
        try:
            with folder_lock(folder, "trains this run", wait=False):
                print("child: mine", flush=True)
        except ValueError as error:
            print(f"child: {error}", flush=True)
    else:
        os.waitpid(child, 0)
        print("parent: still mine", flush=True)
        if not os.fork():
            print("orphan", flush=True)
        input()
if not child:
    os._exit(0)
""",
        tmp_path,
    )
    assert parent.stdout is not None
    assert re.match(
        rf"child: .* is held by process {parent.pid} on .*, which runs this study",
        parent.stdout.readline(),
    )
    assert parent.stdout.readline() == "parent: still mine\n"
    assert parent.stdout.readline() == "orphan\n"
    assert not is_free(tmp_path)
    parent.kill()
    parent.wait()
    assert is_free(tmp_path)  # although the orphan lives
    end(parent)


def test_a_process_forked_while_a_thread_has_it_waits_for_the_parent_and_not_for_that_thread(
    tmp_path: Path,
):
    """Which does not exist in it, and so would never let it in."""
    process = script(
        """
import threading
held, free = threading.Event(), threading.Event()
def hold():
    with folder_lock(folder, "trains this run"):
        held.set()
        free.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
say, told = os.pipe()
child = os.fork()
if not child:
    tell = lambda line: (print(line, flush=True), os.write(told, b"."))
    with folder_lock(folder, "tests this run", say=tell):
        print("child: mine", flush=True)
    os._exit(0)
os.read(say, 1)
free.set()
thread.join()
os.waitpid(child, 0)
""",
        tmp_path,
    )
    messages = end(process).splitlines()
    assert f"is held by process {process.pid} on" in messages[0]
    assert messages[1:] == ["child: mine"]


def test_a_process_forked_before_may_hold_what_its_parent_does_not(tmp_path: Path):
    with folder_lock(tmp_path / "a", "runs this study"):
        process = get_context("fork").Process(target=_hold, args=(tmp_path / "b",))
        process.start()
        process.join()
    assert process.exitcode == 0


def _hold(folder: Path) -> None:
    with folder_lock(folder, "trains this run", wait=False):
        assert not is_free(folder)
    assert is_free(folder)


def test_a_program_that_is_started_does_not_inherit_it(tmp_path: Path):
    with folder_lock(tmp_path, "trains this run"):
        other = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    assert is_free(tmp_path)
    other.communicate(b"")


def test_nothing_follows_a_link_or_touches_where_it_leads(tmp_path: Path):
    target, run = tmp_path / "thesis.tex", tmp_path / "run"
    target.write_text("two years of work")
    run.mkdir()
    (run / ".lock").symlink_to(target)
    with (
        pytest.raises(
            InputError, match=r"run/\.lock is a link, and a lock follows none; remove it\."
        ),
        folder_lock(run, "trains this run"),
    ):
        pytest.fail("it was followed")
    (run / ".lock").unlink()
    (run / ".lock").symlink_to(tmp_path / "nothing")
    with pytest.raises(InputError, match="is a link"), folder_lock(run, "trains this run"):
        pytest.fail("it was followed")
    assert target.read_text() == "two years of work"
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, make):
    make(tmp_path / ".lock")
    with (
        pytest.raises(
            InputError, match=r"\.lock is not a file, so it cannot be locked; remove it\."
        ),
        folder_lock(tmp_path, "trains"),
    ):
        pytest.fail("it was held")


def test_a_file_of_that_name_that_is_somebody_elses_is_left_as_it_is(tmp_path: Path):
    (tmp_path / ".lock").write_text("combination: 12-34-56\n")
    with (
        pytest.raises(InputError, match="is not a lock of ours but holds something else; move it"),
        folder_lock(tmp_path, "trains this run"),
    ):
        pytest.fail("it was held")
    assert content(tmp_path) == "combination: 12-34-56\n"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path):
    (tmp_path / "run").write_text("mine")
    with (
        pytest.raises(InputError, match="run is not a folder but a file"),
        folder_lock(tmp_path / "run", "trains this run"),
    ):
        pytest.fail("it was held")
    with (
        pytest.raises(InputError, match="something above it is a file"),
        folder_lock(tmp_path / "run" / "a", "trains this run"),
    ):
        pytest.fail("it was held")


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_disk_without_locks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int):
    def refuse(*args: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(module.fcntl, "flock", refuse)
    message = f"the disk of .* has no locks .*{os.strerror(code)}"
    with pytest.raises(InputError, match=message), folder_lock(tmp_path, "trains this run"):
        pytest.fail("it was held")
    assert is_free(tmp_path)


def test_a_system_without_locks_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "fcntl", None)
    with (
        pytest.raises(InputError, match="this system has no flock"),
        folder_lock(tmp_path, "trains this run"),
    ):
        pytest.fail("it was held")


def test_a_folder_on_a_disk_mounted_read_only_is_said_even_to_root(tmp_path: Path):
    run = tmp_path / "somebody" / "run"
    run.mkdir(parents=True)
    mount = (
        f"mount --bind {tmp_path}/somebody {tmp_path}/somebody && mount -o remount,ro,bind "
        f"{tmp_path}/somebody"
    )
    if (
        shutil.which("unshare") is None
        or subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode
    ):
        pytest.skip("nothing can be mounted here")
    look = f"""
from pathlib import Path
from core.folder_lock import folder_lock, is_writable
for folder in (Path({str(run)!r}), Path({str(run)!r}, "new")):
    try:
        with folder_lock(folder, "trains this run"): print("mine")
    except ValueError as error: print(is_writable(folder), error)
"""
    (tmp_path / "look.py").write_text(look)
    command = ["unshare", "-rm", "sh", "-c", f"{mount} && exec {sys.executable} {tmp_path}/look.py"]
    output = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ).stdout
    assert output.splitlines() == [
        f"False {folder} cannot be written (Read-only file system); name a folder that can."
        for folder in (run, run / "new")
    ]


def test_a_folder_that_can_be_written_or_made_is_known(tmp_path: Path):
    assert is_writable(tmp_path)
    assert is_writable(tmp_path / "not" / "there")


def test_a_folder_deleted_while_one_waits_is_made_and_held_anew(tmp_path: Path):
    """A person may delete a run to have it trained again; whoever waited must not hold a file that
    is no longer there.
    """
    run, stack = tmp_path / "run", ExitStack()
    other = holder(run)

    def say(line: str) -> None:
        (run / ".lock").unlink()
        run.rmdir()
        threading.Thread(target=end, args=(other,)).start()

    with stack:
        stack.enter_context(folder_lock(run, "tests this run", say=say))
        assert "which tests this run" in content(run)
        assert not is_free(run)


def test_a_disk_that_gives_a_file_another_number_each_time_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(module, "is_at", lambda file, path: False)
    with (
        pytest.raises(InputError, match="is another file whenever it is opened"),
        folder_lock(tmp_path, "trains this run"),
    ):
        pytest.fail("it was held")


def test_what_a_lock_says_is_safe_to_print(tmp_path: Path):
    text = "held by process 1 on \\033[2J\\n, which lies"
    other = script(
        "import fcntl\nfile = open(folder / '.lock', "
        f"'w')\nfile.write('{text}')\nfile.flush()\nfcntl.flock(file, 2)\nprint('mine', "
        "flush=True)\ninput()",
        tmp_path,
    )
    assert other.stdout is not None
    other.stdout.readline()
    with (
        pytest.raises(InputError, match=r"is held by process 1 on \[2J; wait"),
        folder_lock(tmp_path, "trains", wait=False),
    ):
        pytest.fail("two have it")
    end(other)


def _enter_again_and_again(folder: Path) -> None:
    """Each time with a thread and a forked process that want in as well.

    Whoever is in says so by a file; if somebody else who lives does, it is two.
    """
    inside = folder / "inside"

    def enter() -> None:
        with (
            folder_lock(folder, "enters", say=lambda line: None),
            folder_lock(folder, "enters again", wait=False),
        ):
            other = inside.read_text() if inside.exists() else ""  # of one who was killed
            if other and Path("/proc", other).exists():
                (folder / "two").touch()
            inside.write_text(str(os.getpid()))
            inside.unlink()
            with open(folder / "count", "a") as count:
                count.write(".")

    while True:
        thread = threading.Thread(target=enter)
        thread.start()
        if not (child := os.fork()):
            enter()
            os._exit(0)
        enter()
        thread.join()
        os.waitpid(child, 0)


@pytest.mark.parametrize("kills", [10, pytest.param(300, marks=pytest.mark.long)])
def test_never_are_two_in_however_often_they_are_killed(tmp_path: Path, kills: int):
    context, chance = get_context("fork"), random.Random(0)
    folder = tmp_path / "run"
    folder.mkdir()
    workers = [
        context.Process(target=_enter_again_and_again, args=(folder,), daemon=True)
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    (folder / "count").touch()
    for _ in range(kills):
        before, start = (folder / "count").stat().st_size, time.monotonic()
        while (folder / "count").stat().st_size < before + 2:
            assert time.monotonic() < start + 600, "nobody gets in any more"
            time.sleep(chance.uniform(0, 0.01))
        number = chance.randrange(len(workers))
        workers[number].kill()
        workers[number].join()
        workers[number] = context.Process(
            target=_enter_again_and_again, args=(folder,), daemon=True
        )
        workers[number].start()
    for worker in workers:
        worker.kill()
        worker.join()
    assert not (folder / "two").exists()
    assert (folder / "count").stat().st_size >= 2 * kills
