"""A run knows its data: whoever changes the votes, the items or a default under its feet is told
so, and nothing is mixed.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from callbacks.records.known_data import know_data, read_fingerprint
from callbacks.results import read_results
from cli import main
from core.errors import InputError
from datamodules import Digits, OwnVotes, VoteTable
from datamodules.fingerprint import BLOCK, difference, digest_of_items, digest_of_votes, fingerprint
from datamodules.memmap_inputs import MemmapInputs, memmap_array
from studies.plan.known_data import check_data

ROOT = Path(__file__).parents[3]
ITEMS, CLASSES = 90, ("cat", "dog", "fox")


def write_votes(folder: Path, flipped: bool = False, blanks: bool = False) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for item in range(ITEMS):
        label = (item + flipped) % 3
        rows += [
            f"{item},{CLASSES[vote]}"
            for vote in rng.choice(3, size=4, p=np.eye(3)[label] * 0.7 + 0.1)
        ]
    (folder / "votes.csv").write_text(
        "item,label\n"
        + "\n".join(f'"{row.split(",")[0]}",{row.split(",")[1]}' if blanks else row for row in rows)
        + "\n"
    )


def options(folder: Path) -> list[str]:
    return [
        "--data", "OwnVotes", "--data.root", str(folder), "--data.votes", "votes.csv", "--data.item", "item", "--data.label", "label",  # noqa: E501
        "--data.embeddings", "features.npy", "--data.name", "animals",
        "--model.network", "MLPHead", "--trainer.max_epochs", "2", "--trainer.accelerator", "cpu", "--trainer.default_root_dir", str(folder / "runs"),  # noqa: E501
        "--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false",
    ]  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Path:
    write_votes(tmp_path)
    np.save(
        tmp_path / "features.npy",
        np.random.default_rng(1).normal(size=(ITEMS, 5)).astype(np.float32),
    )
    return tmp_path


def refused(capsys: pytest.CaptureFixture, command: str, words: list[str]) -> str:
    with pytest.raises(SystemExit) as end:
        main([command, *words])
    assert end.value.code == 2
    return capsys.readouterr().err


def test_changed_votes_are_refused_by_every_command_and_the_same_content_saved_again_is_not(
    own: Path, capsys
):
    run_dir = main(["fit", *options(own)]).run_dir
    assert run_dir.name.startswith("animals-softlabels-seed0-")
    main(["test", *options(own)])
    before = read_results(run_dir) or {}
    assert before["dataset"] == "animals"
    write_votes(own, blanks=True)  # other bytes, the same votes
    main(["test", *options(own)])
    assert read_results(run_dir) == before
    write_votes(own, flipped=True)
    for command in ("fit", "test", "predict"):
        message = refused(capsys, command, options(own))
        assert f"the votes in {own / 'votes.csv'} are not those that it was trained on" in message
        assert f"give the new data a name of its own (data.name), or delete {run_dir}" in message
    assert read_results(run_dir) == before
    other = main(["fit", *options(own), "--data.name", "animals-flipped"]).run_dir
    assert other != run_dir
    with pytest.raises(InputError, match=r"votes.csv are not those that it was trained on"):
        check_data([(json.loads(json.dumps(read_config(run_dir))), run_dir)])
    check_data([(read_config(other), other)])


def read_config(run_dir: Path) -> dict:
    from experiment.configuration import resolve

    return resolve(["--config", str(run_dir / "config.yaml")])


def test_a_large_file_that_was_written_again_is_told_by_its_time(own: Path, capsys):
    run_dir = main(["fit", *options(own)]).run_dir
    path = own / "features.npy"
    noted = read_fingerprint(run_dir)
    assert noted
    assert noted["data"]["items"]["size"] == path.stat().st_size
    os.utime(path, (1, 1))
    message = refused(capsys, "test", options(own))
    assert (
        "if it is the same file, give it its time back with: touch -d "
        f"{noted['data']['items']['time']} {path}" in message
    )
    os.system(f"touch -d {noted['data']['items']['time']} {path}")
    main(["test", *options(own)])


def test_runs_of_two_datas_under_one_name_make_no_report(tmp_path: Path):
    noted = {
        "options": {},
        "data": {
            "votes": {"source": "v.csv", "digest": "a"},
            "items": {"source": "i", "digest": "b"},
        },
    }
    config = {"data": {"class_path": "datamodules.Digits", "init_args": {"seed": 0}}}
    folders = []
    for number, digest in enumerate(("a", "a", "c")):
        noted["data"]["votes"]["digest"] = digest
        folders.append(tmp_path / str(number))
        folders[-1].mkdir()
        (folders[-1] / "fingerprint.json").write_text(json.dumps(noted))
    check_data((config, folder) for folder in folders[:2])
    with pytest.raises(
        InputError, match=r"2 has results of other data: the votes in v.csv are not those"
    ):
        check_data((config, folder) for folder in folders)


def test_a_default_that_changed_in_somebody_s_own_class_is_told(tmp_path: Path):
    data = Digits()
    data.setup()
    know_data(
        tmp_path,
        data,
        {"data": {"class_path": "mine.Data", "init_args": {"padding": 4}}},
        write=True,
    )
    know_data(
        tmp_path,
        data,
        {"data": {"class_path": "mine.Data", "init_args": {"padding": 4, "flip": True}}},
        write=True,
    )
    with pytest.raises(
        InputError,
        match=r"was trained with data.padding = 4, and that is 5 by default now; set "
        r"data.padding to 4",
    ):
        know_data(
            tmp_path,
            data,
            {"data": {"class_path": "mine.Data", "init_args": {"padding": 5}}},
            write=True,
        )


def test_a_fingerprint_that_cannot_be_read_is_never_taken_for_none(tmp_path: Path):
    for content in ("{", "[]", '{"options": {}, "data": {"votes": 3}}', '{"data": {}}'):
        (tmp_path / "fingerprint.json").write_text(content)
        with pytest.raises(InputError, match="what this run was trained on is not known"):
            read_fingerprint(tmp_path)


def test_files_newer_than_a_run_that_noted_nothing_are_refused(own: Path, capsys):
    run_dir = main(["fit", *options(own)]).run_dir
    (run_dir / "fingerprint.json").unlink()
    os.utime(own / "votes.csv", (1, 1))
    os.utime(own / "features.npy", (1, 1))
    main(["test", *options(own)])
    os.utime(own / "votes.csv")
    os.utime(run_dir / "checkpoints/best.ckpt", (1, 1))
    assert "votes.csv is newer than" in refused(capsys, "test", options(own))


def test_every_part_of_the_data_is_in_its_fingerprint():
    data = Digits()
    data.setup()
    whole = fingerprint(data)
    assert difference(whole, whole) is None
    other = Digits(seed=1)
    other.setup()
    assert (
        difference(whole, fingerprint(other))
        == "the split of Digits is not the one that it was trained on"
    )
    assert data.corpus
    data.corpus.inputs[7] = data.corpus.inputs[8]  # pyright: ignore
    assert (
        difference(whole, fingerprint(data))
        == "the items in the items of Digits are not those that it was trained on"
    )
    labels = VoteTable.from_probs(data.corpus.votes.probs[:, ::-1])
    # one does not know of the other's
    assert difference(fingerprint(data, labels), fingerprint(data, data.corpus.votes)) is None
    assert difference(
        fingerprint(data, labels), fingerprint(data, VoteTable.from_probs(data.corpus.votes.probs))
    ) == ("the labels in the probability table are not those that it was trained on")


def test_one_vote_more_or_one_text_moved_is_another_fingerprint():
    counts = np.random.default_rng(0).integers(0, 5, size=(50, 4)) + 1
    more = counts.copy()
    more[49, 3] += 1
    assert (
        digest_of_votes(VoteTable(counts))
        == digest_of_votes(VoteTable(counts.tolist()))
        != digest_of_votes(VoteTable(more))
    )
    assert digest_of_items(["ab", "c"]) != digest_of_items(["a", "bc"])
    assert digest_of_items(torch.zeros(3, 4)) != digest_of_items(torch.zeros(4, 3))


def test_blocks_of_a_large_file_tell_it_from_another(tmp_path: Path):
    values = np.zeros((3000, 64), np.float32)
    np.save(tmp_path / "a.npy", values)
    inputs = MemmapInputs(memmap_array(tmp_path / "a.npy"), np.arange(3000))
    before = digest_of_items(inputs)
    assert before["size"] == (tmp_path / "a.npy").stat().st_size > 4 * BLOCK
    values[0, 0] = values[-1, -1] = 1
    for row in (0, -1):
        changed = np.zeros_like(values)
        changed[row] = 1
        np.save(tmp_path / "b.npy", changed)
        assert (
            digest_of_items(MemmapInputs(memmap_array(tmp_path / "b.npy"), np.arange(3000)))[
                "digest"
            ]
            != before["digest"]
        )
    assert (
        digest_of_items(MemmapInputs(memmap_array(tmp_path / "a.npy"), np.arange(2999)))["digest"]
        != before["digest"]
    )


def test_own_votes_name_the_files_that_could_change(own: Path):
    data = OwnVotes(
        votes="votes.csv", item="item", label="label", embeddings="features.npy", root=str(own)
    )
    assert data.files() == [own / "votes.csv", own / "features.npy"]
    assert data.items_source == str(own / "features.npy")
    assert Digits().files() == []


def test_a_changed_split_is_refused_by_every_command_and_by_studies(own: Path, capsys):
    """It lies in a column of the items, and the sentence names their file."""
    write_split(own, shift=0)
    words = [*options(own), "--data.inputs", "items.csv", "--data.split_column", "part"]
    run_dir = main(["fit", *words]).run_dir
    main(["test", *words])
    check_data([(read_config(run_dir), run_dir)])
    write_split(own, shift=1)
    message = (
        f"the split in {own / 'items.csv'}, column part, is not the one that it was trained on"
    )
    assert message in refused(capsys, "test", words)
    with pytest.raises(
        InputError, match=r"items.csv, column part, is not the one that it was trained on"
    ):
        check_data([(read_config(run_dir), run_dir)])


def write_split(folder: Path, shift: int) -> None:
    parts = ("train", "train", "val", "test")
    rows = [f"{item},{parts[(item + shift) % 4]}" for item in range(ITEMS)]
    (folder / "items.csv").write_text("item,part\n" + "\n".join(rows) + "\n")


def test_classes_that_are_called_otherwise_are_other_votes(own: Path, capsys):
    run_dir = main(["fit", *options(own)]).run_dir
    votes = own / "votes.csv"
    # in the same order
    votes.write_text(
        votes.read_text().replace("cat", "ant").replace("dog", "bee").replace("fox", "cow")
    )
    assert f"the classes in {votes} are not those that it was trained on" in refused(
        capsys, "test", options(own)
    )
    with pytest.raises(InputError, match=r"the classes in .*votes.csv are not those"):
        check_data([(read_config(run_dir), run_dir)])
