"""What datasets of frozen embeddings share: data for members of a pack, the embedder's name beside
the numbers, and items for people.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cli import main
from core.errors import InputError
from datamodules import CIFAR10H, POPQUORN, CIFAR10HFrozen, Digits
from experiment.configuration import resolve
from experiment.identity import run_name
from studies.launch.pack_job import run_pack
from studies.launch.pack_members import build_members
from studies.plan.packing import why_alone
from studies.plan.study import Run
from tests.datamodules.embedders.small_embedder import CLASS_PATH, SmallEmbedder
from tests.quiet import QUIET

CONFIGS = Path(__file__).parents[2] / "configs"


def options(name: str, root: Path) -> list[str]:
    places = ["--data.root", str(root), "--data.cache", str(root / "embeddings")]
    return [
        "--config",
        str(CONFIGS / f"{name}.yaml"),
        *places,
        "--data.embedder",
        CLASS_PATH,
        *QUIET,
    ]


def run(name: str, root: Path, *changes: str) -> Run:
    config = resolve([*options(name, root), *changes])
    return Run(run_name(config), config, {})


@pytest.mark.parametrize("name", ["chaosnli", "popquorn", "cifar10h_hard", "cifar10h_frozen"])
def test_members_of_one_seed_share_their_data(small_data: Path, name: str):
    runs = [
        run(
            name,
            small_data,
            "--seed_everything",
            seed,
            "--data.delivery",
            delivery,
            "--model.optimizer.lr",
            rate,
        )
        for seed in ("0", "1")
        for delivery, rate in (
            ("SoftLabels", "1e-3"),
            ("MajorityVote", "1e-3"),
            ("SoftLabels", "1e-4"),
        )
    ]
    assert {why_alone(one.config) for one in runs} == {None}
    members, _ = build_members(runs, small_data)
    assert len({id(member.data) for member in members}) == 2
    assert len({(member.classifier.seed, id(member.data)) for member in members}) == 2


@pytest.mark.parametrize("name", ["chaosnli", "popquorn", "cifar10h_hard"])
def test_packed_as_alone_and_the_embedder_is_named(small_data: Path, tmp_path: Path, name: str):
    changes = ["--trainer.max_epochs", "4", "--model.optimizer.lr", "1e-2"]
    both = [
        run(name, small_data, *changes, "--data.delivery", delivery)
        for delivery in ("SoftLabels", "MajorityVote")
    ]
    assert run_pack(both, tmp_path / "pack", tmp_path / "state.pt", False, lambda share: None) == {}
    for one, delivery in zip(both, ("SoftLabels", "MajorityVote"), strict=True):
        alone = [
            *options(name, small_data),
            *changes,
            "--data.delivery",
            delivery,
            "--trainer.default_root_dir",
            str(tmp_path / "alone"),
        ]
        for command in ("fit", "test"):
            main([command, *alone])
        packed, solo = (
            json.loads((tmp_path / how / one.name / "results.json").read_text())
            for how in ("pack", "alone")
        )
        assert packed["embedder"] == solo["embedder"] == "Small (test)"
        assert packed["metrics"] == pytest.approx(solo["metrics"], abs=1e-4)


def test_items_for_people_are_the_images_themselves(small_cifar: Path):
    frozen = CIFAR10HFrozen(
        SmallEmbedder(), root=str(small_cifar), cache=str(small_cifar / "embeddings")
    )
    images = CIFAR10H(root=str(small_cifar))
    for data in (frozen, images):
        shown = data.original(np.array([7, 2]))
        assert torch.equal(shown, images.read()[0][[7, 2]])  # pyright: ignore
        assert shown.dtype == torch.uint8  # pyright: ignore
        assert len(data.class_names) == 10
        assert (data.class_names[3], data.class_names[9]) == ("cat", "truck")


def test_a_dataset_without_items_to_show_says_so():
    with pytest.raises(InputError, match="Digits has no texts or pictures to show"):
        Digits().original([0])
    assert Digits.class_names[7] == "7"


def test_what_the_embedder_cut_is_told_once(
    small_texts: Path, capsys, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        SmallEmbedder,
        "look_over",
        lambda self, inputs: [f"{len(inputs)} texts were cut to their first 2 tokens."],
    )
    data = POPQUORN(SmallEmbedder(), root=str(small_texts), cache=str(small_texts / "embeddings"))
    data.prepare_data()
    data.setup()
    assert capsys.readouterr().out.count("60 texts were cut to their first 2 tokens.") == 1


def test_a_cache_cut_short_is_made_again(small_texts: Path, capsys):
    def inputs() -> torch.Tensor:
        data = POPQUORN(
            SmallEmbedder(), root=str(small_texts), cache=str(small_texts / "embeddings")
        )
        return data.load().inputs  # pyright: ignore

    whole = inputs()
    (shard,) = (small_texts / "embeddings").rglob("*.safetensors")
    shard.write_bytes(shard.read_bytes()[:-40])
    assert torch.equal(inputs(), whole)
    assert "was cut short or altered; its embeddings are made again" in capsys.readouterr().out


def test_abstract_datasets_are_not_offered(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--data", "POPCORN"])
    message = capsys.readouterr().err
    assert "POPQUORN" in message
    assert "FrozenDataModule" not in message
