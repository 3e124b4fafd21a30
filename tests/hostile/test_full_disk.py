"""A disk that is full, or that may only be read: one sentence that names the file, nothing
half-written, and the same command goes on when there is room.
"""

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

import cli
from cli import main
from core.errors import InputError, mistake_behind
from tests.hostile.outcomes import check_sentence
from tests.hostile.reported_runs import REPORTS, study_of, write_runs
from tests.test_cli import QUICK

ROOT = Path(__file__).parents[2]


def raised(error: BaseException, *outer: BaseException) -> BaseException:
    """An error as it arrives at the top: wrapped in others, or while another was handled."""
    for wrapper in outer:
        try:
            raise wrapper from error
        except BaseException as chained:
            error = chained
    return error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize(
    "outer",
    [(), (RuntimeError("training failed"),), (InputError("a.zip is no archive."), ValueError())],
)
def test_a_full_disk_is_a_sentence_whatever_it_is_wrapped_in(number: int, outer: tuple):
    message = str(
        mistake_behind(raised(OSError(number, os.strerror(number), "runs/a/last.ckpt"), *outer))
    )
    check_sentence(message, "runs/a/last.ckpt")
    assert "give the same command again" in message


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_so_is_a_disk_that_may_only_be_read(number: int):
    error = OSError(number, os.strerror(number), "runs/a")
    check_sentence(str(mistake_behind(raised(error, RuntimeError()))), "runs/a")
    assert (
        str(mistake_behind(raised(error, InputError("runs/a is not ours."))))
        == "runs/a is not ours."
    )
    # of no file: a port, for one
    assert mistake_behind(OSError(number, os.strerror(number))) is None


def test_libraries_that_speak_in_words_alone():
    for error in (
        RuntimeError("unable to write to file: No space left on device (28)"),
        ValueError("Io(Os { code: 28 }) (os error 28)"),
    ):
        check_sentence(str(mistake_behind(error)), "a file")
    for error in (
        RuntimeError("shape mismatch"),
        OSError(errno.ENOENT, "No such file", "x"),
        KeyError("x"),
        None,
    ):
        assert mistake_behind(error) is None


def test_a_thread_that_only_repeats_it_says_nothing(capsys: pytest.CaptureFixture):
    for error, is_told in (
        (OSError(errno.ENOSPC, ""), False),
        (OSError(errno.EROFS, "", "events"), False),
        (KeyError("a bug"), True),
    ):
        cli._tell_of_thread(threading.ExceptHookArgs((type(error), error, None, None)))
        assert bool(capsys.readouterr().err) == is_told


@contextmanager
def files_of(most: int) -> Iterator[None]:
    """No file may have more bytes than this, which is told like a disk that is full, and needs no
    disk of its own.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def refused(words: list[str], capsys: pytest.CaptureFixture, name: str, most: int = 50_000) -> None:
    capsys.readouterr()
    with files_of(most), pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    check_sentence(line, name)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    (path,) = folder.glob("*/checkpoints/best.ckpt")
    return torch.load(path, weights_only=True)["state_dict"]


# by the thread that TensorBoard writes in
REPEATED = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@REPEATED
@pytest.mark.filterwarnings("ignore:Checkpoint directory")
def test_a_run_goes_on_when_there_is_room(tmp_path: Path, capsys: pytest.CaptureFixture):
    """Through fit, test and predict; it comes to the weights of a run that nothing stopped."""
    options = [*QUICK, "--trainer.default_root_dir", str(tmp_path / "runs")]
    refused(["fit", *options], capsys, "best.ckpt")
    assert not [path for path in tmp_path.rglob("*") if "partial" in path.name]
    main(["fit", *options])
    main(["fit", *QUICK, "--trainer.default_root_dir", str(tmp_path / "others")])
    here, there = weights(tmp_path / "runs"), weights(tmp_path / "others")
    assert all(torch.equal(here[name], there[name]) for name in here | there)
    refused(["test", *options], capsys, "digits-softlabels", most=500)
    assert not list(tmp_path.rglob("results.json"))
    main(["test", *options])
    refused(["predict", *options], capsys, "predictions.parquet")
    assert not list(tmp_path.rglob("predictions.parquet"))


@REPEATED
def test_a_report_that_has_no_room_leaves_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    write_runs(tmp_path)
    words = [
        "study",
        "report",
        str(study_of(tmp_path, "results.json").path),
        "--runs",
        str(tmp_path / "runs"),
    ]
    page = tmp_path / "runs" / "small-report" / "report.html"
    refused(words, capsys, "small-report", most=2000)
    assert not page.exists()
    main(words)
    before = page.read_bytes()
    study_of(tmp_path, "history.json")
    assert REPORTS["history.json"] != REPORTS["results.json"]
    refused(words, capsys, "small-report", most=10_000)
    assert page.read_bytes() == before
    assert not [path for path in tmp_path.rglob("*") if "partial" in path.name]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no disk could be mounted: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


QUIET = ["--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"]
FIT = [
    "cli.py",
    "fit",
    "--config",
    "configs/digits.yaml",
    "--trainer.max_epochs",
    "2",
    *QUIET,
    "--trainer.default_root_dir",
]


def run(place: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *FIT, str(place)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, torch.Tensor], int]:
    """The weights of a run that nothing stopped, and the bytes that its files take on a disk, in
    pages, without pictures and TensorBoard's log of them.
    """
    folder = tmp_path_factory.mktemp("whole")
    assert run(folder).returncode == 0
    sizes = [
        path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".png" and "tfevents" not in path.name
    ]
    return weights(folder), sum(-(-size // 4096) * 4096 for size in sizes)


@pytest.mark.long
@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root may mount a disk"
)
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.75, 0.95, 1.2])
def test_a_disk_that_is_really_full(
    share: float, whole: tuple[dict[str, torch.Tensor], int], tmp_path: Path
):
    """A disk with room for so much of a run ends it at its first file, or at its first, second or
    third checkpoint; pictures that find no room do not.
    """
    disk, (there, needed) = tmp_path / "disk", whole
    with small_disk(disk, f"{max(1, int(share * needed) // 4096) * 4}k"):
        full = run(disk / "runs")
        lines = full.stderr.strip().splitlines()
        # TensorBoard writes in a thread of its own, so whether its log of pictures still finds out
        # is a matter of moments
        assert (full.returncode, len(lines)) in ([(2, 1)] if share < 1 else [(2, 1), (0, 0)]), (
            full.stderr
        )
        for line in lines:
            check_sentence(line, str(disk / "runs"))
            assert "no room is left" in line
        assert not list(disk.rglob("*partial*"))
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        closed = run(disk / "runs")
        assert closed.returncode == 2, closed.stderr
        check_sentence(closed.stderr.strip(), str(disk / "runs"))
        subprocess.run(["mount", "-o", f"remount,rw,size={4 * needed}", str(disk)], check=True)
        assert run(disk / "runs").returncode == 0
        here = weights(disk / "runs")
        assert all(torch.equal(here[name], there[name]) for name in here | there)
