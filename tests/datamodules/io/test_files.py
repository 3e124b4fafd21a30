"""Published files: checked on every use, downloaded whole or not at all."""

import gzip
import hashlib
import io
import tarfile
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from core.atomic_io import SUFFIX
from core.errors import InputError
from datamodules.io.files import AbsentFile, PublishedFile, find

CONTENT = b"votes of people" * 1000


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args):
        pass


@pytest.fixture
def server(tmp_path: Path):
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "votes.npy").write_bytes(CONTENT)
    with tarfile.open(folder / "all.tar.gz", "w:gz") as tar:
        for name, content in (("deep/votes.npy", CONTENT), ("../outside", b"never written")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_downloads_what_is_absent_and_only_then(server, tmp_path: Path):
    folder, url = server
    file = PublishedFile("deep/votes.npy", digest(CONTENT), f"{url}/votes.npy")
    assert find(tmp_path / "root", file).read_bytes() == CONTENT
    (folder / "votes.npy").unlink()
    assert find(tmp_path / "root", file).read_bytes() == CONTENT


def test_takes_one_member_out_of_an_archive_and_nothing_else(server, tmp_path: Path):
    folder, url = server
    archive = (folder / "all.tar.gz").read_bytes()
    file = PublishedFile(
        "deep/votes.npy", digest(CONTENT), f"{url}/all.tar.gz", archive_sha256=digest(archive)
    )
    assert find(tmp_path / "root", file).read_bytes() == CONTENT
    assert not list(tmp_path.rglob("outside"))
    assert not list(tmp_path.rglob(f".*{SUFFIX}"))


def test_a_download_removes_what_killed_ones_left_and_nothing_of_the_users(server, tmp_path: Path):
    _, url = server
    mine = [
        tmp_path / "root" / name
        for name in (
            "thesis.part",
            "deep/songs.mp3.part",
            "deep/votes.npy.77.part",
            "deep/er/thesis.1.part",
        )
    ]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a person's")
    (tmp_path / "root" / "deep" / f".votes.npy.0a1b2c3d{SUFFIX}").write_bytes(CONTENT[:9])
    find(tmp_path / "root", PublishedFile("deep/votes.npy", digest(CONTENT), f"{url}/votes.npy"))
    assert all(path.read_text() == "a person's" for path in mine)
    assert {path.name for path in (tmp_path / "root" / "deep").iterdir()} == {
        ".lock",
        "er",
        "songs.mp3.part",
        "votes.npy",
        "votes.npy.77.part",
    }


def test_archives_that_lie_there_are_used_and_neither_replaced_nor_deleted(server, tmp_path: Path):
    """One that a person put there, whole, cut short, or with something else in it."""
    folder, url = server
    archive = (folder / "all.tar.gz").read_bytes()
    tar = PublishedFile(
        "deep/votes.npy", digest(CONTENT), f"{url}/all.tar.gz", archive_sha256=digest(archive)
    )
    with zipfile.ZipFile(folder / "all.zip", "w") as zipped:
        zipped.writestr("v1/votes.npy", CONTENT)
    zipped = PublishedFile(
        "deep/votes.npy", digest(CONTENT), f"{url}/all.zip", member="v1/votes.npy"
    )
    for number, (file, content) in enumerate(
        (
            (tar, archive),
            (tar, archive[:99]),
            (zipped, (folder / "all.zip").read_bytes()),
            (zipped, b"other"),
        )
    ):
        mine = tmp_path / str(number) / "deep" / file.url.rsplit("/", 1)[1]
        mine.parent.mkdir(parents=True)
        mine.write_bytes(content)
        if content == b"other":
            with pytest.raises(
                AbsentFile,
                match=r"votes.npy is absent and .*deep/all.zip is no archive with v1/votes.npy",
            ):
                find(tmp_path / str(number), file)
        else:
            assert find(tmp_path / str(number), file).read_bytes() == CONTENT
        assert mine.read_bytes() == content
        assert {path.name for path in mine.parent.iterdir()} <= {".lock", mine.name, "votes.npy"}
    # kept for other files that it holds
    assert find(tmp_path / "new", tar).with_name("all.tar.gz").read_bytes() == archive


def test_takes_one_member_out_of_a_zip_of_unknown_digest_and_checks_what_it_took(
    server, tmp_path: Path
):
    folder, url = server
    with zipfile.ZipFile(folder / "all.zip", "w") as zipped:
        zipped.writestr("v1/votes.npy", CONTENT)
        zipped.writestr("../outside", b"never written")
    file = PublishedFile(
        "deep/votes.npy", digest(CONTENT), f"{url}/all.zip?dl=1", member="v1/votes.npy"
    )
    assert find(tmp_path / "root", file).read_bytes() == CONTENT
    assert [
        path.name
        for path in (tmp_path / "root").rglob("*")
        if path.is_file() and path.name != ".lock"
    ] == ["votes.npy"]
    assert not list(tmp_path.rglob("outside"))
    with pytest.raises(InputError, match=r"votes.npy is not the published file"):
        find(tmp_path / "other", replace(file, sha256=digest(b"other")))


def test_what_is_no_zip_or_lacks_the_member_leaves_nothing_behind(server, tmp_path: Path):
    folder, url = server
    (folder / "page.zip").write_bytes(b"<html>come back later</html>")
    with zipfile.ZipFile(folder / "empty.zip", "w"):
        pass
    for name in ("page.zip", "empty.zip"):
        file = PublishedFile(
            "deep/votes.npy", digest(CONTENT), f"{url}/{name}", member="v1/votes.npy"
        )
        with pytest.raises(
            AbsentFile,
            match=rf"votes.npy is absent and what .*{name} gave is no archive with v1/votes.npy; "
            r"put the file there",
        ):
            find(tmp_path / "root", file)
        assert not [
            path
            for path in (tmp_path / "root").rglob("*")
            if path.is_file() and path.name != ".lock"
        ]


def test_a_file_of_unknown_digest_is_taken_as_it_comes(server, tmp_path: Path):
    _, url = server
    assert (
        find(
            tmp_path / "root", PublishedFile("deep/votes.npy", None, f"{url}/votes.npy")
        ).read_bytes()
        == CONTENT
    )


def test_a_gz_is_kept_as_it_comes_and_checked_by_its_content(server, tmp_path: Path):
    folder, url = server
    (folder / "votes.gz").write_bytes(gzip.compress(CONTENT))
    file = PublishedFile(
        "deep/votes.gz",
        digest(CONTENT),
        f"{url}/votes.gz",
        archive_sha256=digest((folder / "votes.gz").read_bytes()),
    )
    path = find(tmp_path / "root", file)
    assert path.read_bytes() == (folder / "votes.gz").read_bytes()
    path.write_bytes(gzip.compress(CONTENT, 1))  # compressed anew
    assert find(tmp_path / "root", file) == path
    path.write_bytes(gzip.compress(CONTENT + b"x"))
    with pytest.raises(InputError, match=r"votes.gz is not the published file .*delete it"):
        find(tmp_path / "root", file)


def test_a_download_that_was_altered_leaves_nothing_behind(server, tmp_path: Path):
    _, url = server
    file = PublishedFile("votes.npy", digest(b"other"), f"{url}/votes.npy")
    with pytest.raises(InputError, match=r"votes.npy is absent and .* could not be downloaded"):
        find(tmp_path / "root", file)
    assert not (tmp_path / "root" / "votes.npy").exists()


@pytest.mark.parametrize("content", [CONTENT[:-1], b"X" + CONTENT[1:], b""])
def test_a_truncated_or_altered_file_is_refused_by_name_and_kept(tmp_path: Path, content: bytes):
    (tmp_path / "votes.npy").write_bytes(content)
    file = PublishedFile("votes.npy", digest(CONTENT), "http://127.0.0.1:9/votes.npy")
    with pytest.raises(InputError, match=r"votes.npy is not the published file .*delete it"):
        find(tmp_path, file)
    assert (tmp_path / "votes.npy").read_bytes() == content
