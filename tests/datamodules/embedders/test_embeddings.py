"""The cache of embeddings: made once whatever happens, never taken for another's, and read only
where it is whole.
"""

import json
import os
import time
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from core import folder_lock
from core.atomic_io import SUFFIX
from core.errors import InputError
from datamodules.embedders import embeddings
from datamodules.embedders.embeddings import digest_of, embed_all
from tests.datamodules.embedders.recording_embedder import RecordingEmbedder, texts
from tests.waiting import HANGS, until


@pytest.fixture
def embedder(tmp_path: Path) -> RecordingEmbedder:
    return RecordingEmbedder(str(tmp_path / "log"))


def truth(items: list[str]) -> torch.Tensor:
    numbers = torch.tensor([float(text.split()[0]) for text in items])
    return torch.stack(
        [numbers, numbers**2, torch.tensor([float(len(text)) for text in items])], dim=1
    )


def shards(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.safetensors"))


@pytest.mark.parametrize("items", [1, 9, 10, 11, 100])
def test_all_are_embedded_once_in_order_and_then_read(
    embedder: RecordingEmbedder, tmp_path: Path, items: int
):
    given = texts(items)
    first = embed_all(embedder, given, tmp_path / "cache", chunk=10)
    again = embed_all(embedder, given, tmp_path / "cache", chunk=10)
    assert torch.equal(first, truth(given))
    assert torch.equal(again, first)
    assert first.dtype == torch.float32
    assert embedder.embedded() == given
    assert [len(load_file(path)["embeddings"]) for path in shards(tmp_path)] == [10] * (
        items // 10
    ) + [items % 10] * (items % 10 > 0)


# Python 3.12 warns; a fresh process would import for seconds
FORK = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def start(*args) -> BaseProcess:
    process = get_context("fork").Process(target=embed_all, args=args, daemon=True)
    process.start()
    return process


@FORK
def test_killed_in_the_middle_and_resumed_with_nothing_embedded_twice(
    embedder: RecordingEmbedder, tmp_path: Path
):
    given = texts(95)
    process = start(replace(embedder, hang_at=given[47]), given, tmp_path / "cache", 10)
    until(lambda: len(shards(tmp_path)) == 4 or not process.is_alive())
    assert process.is_alive(), "it ended by itself"
    process.kill()  # SIGKILL: no handler runs, nothing is cleaned up
    process.join()
    assert embedder.embedded() == given[:40]
    (
        next(tmp_path.glob("cache/*")) / f".000000040-000000050.safetensors.0a1b2c3d{SUFFIX}"
    ).write_bytes(b"half a shard")
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", chunk=10), truth(given))
    assert embedder.embedded() == given, "something was embedded twice or never"
    assert not list(tmp_path.rglob(f".*{SUFFIX}"))


@FORK
def test_killed_again_and_again_it_still_gets_there(embedder: RecordingEmbedder, tmp_path: Path):
    """Killed at any moment, also while writing: at most the shard in work is embedded a second
    time.
    """
    given, kills = texts(300), 0
    while (done := len(embedder.embedded())) < 250:
        # however late the kill, it does not get far
        slow = replace(embedder, pause=0.005, hang_at=given[5 * len(shards(tmp_path)) + 20])
        process = start(slow, given, tmp_path / "cache", 5)
        until(lambda done=done: len(embedder.embedded()) > done + 5, pause=0.001)
        time.sleep(0.0005 * (kills % 16))
        process.kill()
        process.join()
        kills += 1
    assert kills >= 10
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", chunk=5), truth(given))
    assert len(embedder.embedded()) <= 300 + 5 * kills
    assert set(embedder.embedded()) == set(given)


@FORK
def test_of_two_processes_at_once_one_works_and_both_have_it(
    embedder: RecordingEmbedder, tmp_path: Path
):
    given = texts(60)
    both = [start(replace(embedder, pause=0.05), given, tmp_path / "cache", 5) for _ in range(2)]
    for process in both:
        process.join(HANGS)
        assert process.exitcode == 0
    assert embedder.embedded() == given
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", 5), truth(given))


@FORK
def test_a_process_waits_for_another_says_so_and_goes_on_when_that_is_killed(
    embedder: RecordingEmbedder, tmp_path: Path, capfd
):
    given, message = texts(20), ""
    first = start(replace(embedder, hang_at=given[7]), given, tmp_path / "cache", 5)
    until(lambda: shards(tmp_path))
    second = start(embedder, given, tmp_path / "cache", 5)

    def told() -> bool:
        nonlocal message
        assert second.is_alive(), "it did not wait"
        message += capfd.readouterr().out
        return "which makes the embeddings, since" in message

    until(told)
    first.kill()
    second.join(HANGS)
    assert second.exitcode == 0
    assert embedder.embedded() == given


def test_a_filled_cache_is_read_without_a_lock(
    embedder: RecordingEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """So that it may lie where nothing can be written."""
    embed_all(embedder, texts(20), tmp_path / "cache")
    monkeypatch.setattr(folder_lock.fcntl, "flock", lambda *args: pytest.fail("a lock was taken"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert torch.equal(embed_all(embedder, texts(20), tmp_path / "cache"), truth(texts(20)))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("length", [0, 1, 7, 8, 200, -1])
def test_a_shard_cut_short_is_made_again_and_said_so(
    embedder: RecordingEmbedder, tmp_path: Path, capsys, length: int
):
    given = texts(30)
    embed_all(embedder, given, tmp_path / "cache", chunk=10)
    path = shards(tmp_path)[1]
    whole = path.read_bytes()
    path.write_bytes(whole[:length])
    capsys.readouterr()
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", chunk=10), truth(given))
    assert embedder.embedded() == given + given[10:20]
    assert (
        f"{path} was cut short or altered; its embeddings are made again" in capsys.readouterr().out
    )
    assert len(path.read_bytes()) == len(whole)


def test_an_altered_value_is_noticed(embedder: RecordingEmbedder, tmp_path: Path):
    given = texts(30)
    embed_all(embedder, given, tmp_path / "cache", chunk=10)
    path = shards(tmp_path)[2]
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", chunk=10), truth(given))
    assert embedder.embedded() == given + given[20:]


def test_a_foreign_file_in_a_shards_place_is_not_taken_for_it(
    embedder: RecordingEmbedder, tmp_path: Path
):
    """Another shard of the same cache, the same shard of another model's, and a plain safetensors
    file.
    """
    given = texts(30)
    embed_all(embedder, given, tmp_path / "cache", chunk=10)
    other = replace(embedder, weights="second", log=str(tmp_path / "other"))
    embed_all(other, given, tmp_path / "others", chunk=10)
    mine = shards(tmp_path / "cache")
    mine[0].write_bytes(mine[1].read_bytes())
    mine[1].write_bytes(shards(tmp_path / "others")[1].read_bytes())
    save_file({"embeddings": torch.zeros(10, 3)}, mine[2])
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", chunk=10), truth(given))
    assert embedder.embedded() == given * 2


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_shared_cache_with_values_that_are_not_finite_is_not_trusted(
    embedder: RecordingEmbedder, tmp_path: Path, value: float, capsys
):
    """Although its digest is right: whoever made it may have had another version, or a
    broken one.
    """
    given = texts(30)
    embed_all(embedder, given, tmp_path / "cache", chunk=10)
    path = shards(tmp_path)[1]
    kept = load_file(path)["embeddings"]
    kept[3, 0] = value
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
    save_file({"embeddings": kept}, path, metadata={**about, "values": embeddings._digest(kept)})
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", chunk=10), truth(given))
    assert (
        f"{path} was cut short or altered; its embeddings are made again" in capsys.readouterr().out
    )


def test_a_cache_follows_no_links(embedder: RecordingEmbedder, tmp_path: Path):
    """What they lead to is not written to, be it a shard or what is said of the cache; a lock that
    is a link is refused.
    """
    given, thesis = texts(30), tmp_path / "thesis.tex"
    thesis.write_text("two years of work")
    embed_all(embedder, given, tmp_path / "cache", chunk=10)
    place = next(tmp_path.glob("cache/*"))
    for path in (shards(tmp_path)[1], place / "about.json"):
        path.unlink()
        path.symlink_to(thesis)
    assert torch.equal(embed_all(embedder, given, tmp_path / "cache", chunk=10), truth(given))
    assert json.loads((place / "about.json").read_text())["items"] == 30
    assert not any(path.is_symlink() for path in place.iterdir())
    shards(tmp_path)[1].unlink()
    (place / ".lock").unlink()
    (place / ".lock").symlink_to(thesis)
    with pytest.raises(InputError, match="is a link, and a lock follows none"):
        embed_all(embedder, given, tmp_path / "cache", chunk=10)
    assert thesis.read_text() == "two years of work"


def test_another_model_or_other_inputs_have_a_cache_of_their_own(
    embedder: RecordingEmbedder, tmp_path: Path
):
    given = texts(20)
    embed_all(embedder, given, tmp_path / "cache")
    changes = [
        given[:-1],
        given[::-1],
        [*given[:-1], "19 other"],
        [given[0] + "\n" + given[1], *given[2:]],
    ]
    for changed in changes:
        assert torch.equal(embed_all(embedder, changed, tmp_path / "cache"), truth(changed))
    assert embedder.embedded() == given + "\n".join(
        text for changed in changes for text in changed
    ).split("\n")
    other = replace(embedder, weights="second", log=str(tmp_path / "other"))
    embed_all(other, given, tmp_path / "cache")
    assert other.embedded() == given
    assert len(list((tmp_path / "cache").iterdir())) == 1 + len(changes) + 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_texts_share_a_digest_only_if_they_are_equal(one: list[str], two: list[str]):
    assert (digest_of(one) == digest_of(two)) == (one == two)


def test_images_share_a_digest_only_if_kind_shape_and_bytes_are_equal():
    images = torch.arange(24, dtype=torch.uint8).reshape(2, 3, 2, 2)
    forms = [
        images,
        images.flip(0),
        images.reshape(2, 3, 4, 1),
        images.to(torch.int8),
        images.transpose(2, 3),
    ]
    assert len({digest_of(form) for form in forms}) == len(forms)
    assert digest_of(images.transpose(2, 3)) == digest_of(
        images.transpose(2, 3).clone(memory_format=torch.contiguous_format)
    )


def test_what_a_reader_must_know_is_said_and_kept(
    embedder: RecordingEmbedder, tmp_path: Path, capsys
):
    embed_all(embedder, texts(25), tmp_path / "cache", chunk=10)
    assert capsys.readouterr().out.splitlines() == [
        "25 texts were looked over.",
        "25 texts are to be embedded.",
    ]
    os.remove(shards(tmp_path)[1])
    embed_all(embedder, texts(25), tmp_path / "cache", chunk=10)
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "25 texts were looked over.",
        "10 texts are to be embedded.",
    ]
    assert printed.err == "", "no progress bar where nobody watches"
    about = json.loads(next(tmp_path.rglob("about.json")).read_text())
    assert (about["embedder"], about["items"], about["notes"]) == (
        "Recording (test)",
        25,
        ["25 texts were looked over."],
    )
    assert next(tmp_path.glob("cache/*")).name.startswith("recording-test-")


def test_what_is_no_embedding_is_refused_and_not_kept(embedder: RecordingEmbedder, tmp_path: Path):
    with pytest.raises(
        InputError, match=r"gave torch.float32 \[10, 3\] where torch.float32 \[10, 4\] was expected"
    ):
        embed_all(replace(embedder, dimensions=4), texts(10), tmp_path / "cache")
    with pytest.raises(InputError, match=r"not finite numbers for rows 11, 13 of the inputs"):
        embed_all(embedder, [*texts(10), "0", "inf", "0", "nan"], tmp_path / "cache", chunk=10)
    assert len(shards(tmp_path)) == 1
    with pytest.raises(InputError, match="there is nothing to embed"):
        embed_all(embedder, [], tmp_path / "cache")
