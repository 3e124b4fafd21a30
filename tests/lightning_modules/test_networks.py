"""Networks: shapes, penultimate features, sizes, and refusals that name the option."""

from pathlib import Path

import pytest
import torch
from torch import nn

from cli import main
from core.errors import InputError
from experiment.build import build_data
from experiment.configuration import resolve
from lightning_modules.networks import (
    DeeperFFN,
    LeNet,
    MLPHead,
    Network,
    ResNet18,
    SimpleFFN,
    TimmModel,
)
from tests.conftest import write_own_votes
from tests.datamodules.embedders.small_embedder import CLASS_PATH

NETWORKS = [
    pytest.param(lambda: ResNet18((3, 32, 32), 7, width=4), (3, 32, 32), 32, id="ResNet18"),
    pytest.param(lambda: LeNet((1, 28, 28), 7), (1, 28, 28), 84, id="LeNet"),
    pytest.param(lambda: LeNet((1, 8, 8), 7), (1, 8, 8), 84, id="LeNet on 8 x 8"),
    pytest.param(lambda: LeNet((3, 32, 32), 7), (3, 32, 32), 84, id="LeNet on 32 x 32"),
    pytest.param(lambda: LeNet((1, 8, 8), 7, norm="batch"), (1, 8, 8), 84, id="LeNet, BatchNorm"),
    pytest.param(lambda: MLPHead((24,), 7, norm="batch"), (24,), 256, id="MLPHead, BatchNorm"),
    pytest.param(lambda: SimpleFFN((1, 8, 8), 7), (1, 8, 8), 128, id="SimpleFFN"),
    pytest.param(lambda: DeeperFFN((1, 8, 8), 7), (1, 8, 8), 128, id="DeeperFFN"),
    pytest.param(lambda: MLPHead((24,), 7, hidden=16, dropout=0.5), (24,), 16, id="MLPHead"),
    pytest.param(
        lambda: TimmModel((3, 32, 32), 7, "resnet10t"), (3, 32, 32), 512, id="timm resnet10t"
    ),
    pytest.param(
        lambda: TimmModel((3, 64, 64), 7, "convnext_atto"),
        (3, 64, 64),
        320,
        id="timm convnext_atto",
    ),
]


@pytest.mark.parametrize(("make", "shape", "width"), NETWORKS)
def test_logits_are_the_head_of_the_penultimate_features(make, shape, width):
    network: Network = make().eval()
    inputs = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    features = network.features(inputs)
    assert features.shape == (3, width)
    assert network(inputs).shape == (3, 7)
    assert torch.equal(network(inputs), network.head(features))


@pytest.mark.parametrize(("make", "shape", "width"), NETWORKS)
def test_every_parameter_gets_a_gradient(make, shape, width):
    network = make()
    network(
        torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    ).square().sum().backward()
    assert all(p.grad is not None for p in network.parameters())


def test_timm_models_forward_as_timm_does():
    network = TimmModel((3, 64, 64), 7, "convnext_atto").eval()
    inputs = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(network(inputs), network.model(inputs))


def test_resnet18_is_the_cifar_form():
    network = ResNet18((3, 32, 32), 10)
    # the published size of CIFAR's ResNet-18
    assert sum(p.numel() for p in network.parameters()) == 11_173_962
    assert not any(isinstance(module, nn.MaxPool2d) for module in network.modules())
    assert network.stages(network.stem(torch.zeros(1, 3, 32, 32))).shape == (1, 512, 4, 4)
    # 17 and 3 on shortcuts
    assert sum(isinstance(module, nn.Conv2d) for module in network.modules()) == 20


def test_hidden_sizes_are_the_papers():
    assert [
        m.out_features for m in SimpleFFN((1, 28, 28), 10).modules() if isinstance(m, nn.Linear)
    ] == [128, 10]
    assert [
        m.out_features for m in DeeperFFN((1, 28, 28), 10).modules() if isinstance(m, nn.Linear)
    ] == [256, 128, 10]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ResNet18((64,), 10), r"ResNet18 takes images .* shape \(64,\)"),
        (lambda: LeNet((1, 5, 5), 10), r"LeNet takes images .* at least 8 x 8"),
        (lambda: MLPHead((8,), 2, dropout=1.5), "MLPHead's dropout is 1.5"),
        (
            lambda: TimmModel((3, 32, 32), 10, "resnet_of_dreams"),
            "timm has no model named resnet_of_dreams",
        ),
        (
            lambda: TimmModel((384,), 10, "resnet10t"),
            r"TimmModel \(resnet10t\) takes images .* shape \(384,\), for which there is "
            r"MLPHead, SimpleFFN or DeeperFFN\.",
        ),
        (
            lambda: LeNet((384,), 10),
            r"LeNet takes images .* at least 8 x 8; .* shape \(384,\), for which there is MLPHead",
        ),
        (
            lambda: TimmModel((3, 32, 32), 10, "vit_tiny_patch16_224"),
            r"timm.s vit_tiny_patch16_224 does not take inputs of the shape \(3, 32, 32\)",
        ),
    ],
)
def test_bad_options_are_named(make, message: str):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    "words",
    [["TimmModel", "--model.network.name", "resnet10t"], ["ResNet18"], ["LeNet"]],
    ids=lambda words: words[0],
)
def test_networks_of_images_are_refused_before_anything_is_embedded(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture
):
    """Through the command line: networks are built after the votes are read, and before anything is
    embedded or a run's folder is made.
    """
    write_own_votes(tmp_path)
    embedder = ["--data.embedder", CLASS_PATH, "--data.cache", str(tmp_path / "cache")]
    places = ["--data.root", str(tmp_path), "--trainer.default_root_dir", str(tmp_path / "runs")]
    with pytest.raises(SystemExit) as end:
        main(
            [
                "fit",
                "--config",
                "configs/own_votes.yaml",
                *places,
                *embedder,
                "--model.network",
                *words,
            ]
        )
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert "takes images" in message
    assert "MLPHead" in message
    assert not (tmp_path / "cache").exists()
    assert not list(tmp_path.glob("runs/*/checkpoints"))


@pytest.mark.parametrize("name", ["TimmModel", "LeNet", "ResNet18"])
def test_so_they_are_in_studies(name: str, tmp_path: Path):
    """Packs and reports build the data first."""
    write_own_votes(tmp_path)
    network = {
        "class_path": f"lightning_modules.networks.{name}",
        "init_args": {"name": "resnet10t"} if name == "TimmModel" else {},
    }
    embedder = ["--data.embedder", CLASS_PATH, "--data.cache", str(tmp_path / "cache")]
    config = resolve(
        ["--config", "configs/own_votes.yaml", "--data.root", str(tmp_path), *embedder]
    )
    with pytest.raises(InputError, match="takes images"):
        build_data({**config, "model": {**config["model"], "network": network}})
    assert not (tmp_path / "cache").exists()
    build_data(config)
    assert (tmp_path / "cache").exists()
