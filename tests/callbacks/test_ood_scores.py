"""OODScores as a user meets it: through the command line, in a script, on files that are wrong,
absent or all right.
"""

import gzip
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from PIL import Image
from sklearn.metrics import roc_auc_score
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import Tensor

import callbacks.ood.passes
from callbacks import OODScores
from callbacks.ood.passes import foreign_loader
from callbacks.ood_scores import SCORES
from cli import main
from core.errors import InputError
from datamodules import CIFAR10H
from datamodules.io.ood_sets import PUBLISHED
from experiment.build import build
from experiment.configuration import resolve
from lightning_modules.networks import LeNet, SimpleFFN
from tests.callbacks.patches import (
    NOISE,
    TEST,
    TRAIN,
    Patches,
    classifier_of,
    ready_patches,
    write_noise,
)
from tests.datamodules.io.test_idx import idx_bytes
from tests.datamodules.io.test_ood_sets import trust, write_cifar100

ROOT = Path(__file__).parents[2]
METRICS = ("auroc", "aupr", "fpr95")


@pytest.fixture
def data() -> Patches:
    return ready_patches()


@pytest.fixture
def noise(tmp_path: Path) -> str:
    return write_noise(tmp_path)


def write_yaml(path: Path, **init_args) -> list[str]:
    """A config that adds the probe, as options of the command line."""
    path.write_text(
        yaml.safe_dump(
            {"trainer": {"callbacks": [{"class_path": "OODScores", "init_args": init_args}]}}
        )
    )
    return ["--config", str(path)]


def quiet(folder: Path) -> list[str]:
    options = {
        "accelerator": "cpu",
        "max_epochs": "1",
        "enable_progress_bar": "false",
        "enable_model_summary": "false",
    }
    return [word for name, value in options.items() for word in (f"--trainer.{name}", value)] + [
        "--trainer.default_root_dir",
        str(folder),
    ]


def test_the_whole_way_on_cifar10h_with_published_sets_one_of_them_absent(
    small_cifar: Path, tmp_path: Path, monkeypatch, capsys
):
    near = np.random.default_rng(1).integers(256, size=(11, 3, 32, 32), dtype=np.uint8)
    trust(
        monkeypatch,
        "cifar100",
        write_cifar100(small_cifar / PUBLISHED["cifar100"].path, near).read_bytes(),
    )
    trust(monkeypatch, "svhn", b"what was published")
    probe = write_yaml(
        tmp_path / "probe.yaml", root=str(small_cifar), k=5, detectors=[{"class_path": "pytorch_ood.detector.KNN", "init_args": {"k": 5}}], scores=list(set(SCORES) - {"knn"})  # noqa: E501
    )  # fmt: skip
    options = [
        "--config",
        str(ROOT / "configs/cifar10h.yaml"),
        *probe,
        "--data.root",
        str(small_cifar),
        "--model.network",
        "LeNet",
        *quiet(tmp_path / "runs"),
    ]
    run_dir = main(["fit", *options]).run_dir
    main(["test", *options])

    results = json.loads((run_dir / "results.json").read_text())
    result = {name for name in results["metrics"] if name.startswith(("svhn", "cifar100"))}
    assert result == {f"cifar100_{metric}_{score}" for metric in METRICS for score in SCORES}
    assert sum("absent" in note for note in results["notes"]) == 1
    assert results["notes"][0].startswith(
        "svhn_auroc, svhn_aupr and svhn_fpr95 of all scores are absent: "
    )
    assert (
        "svhn/test_32x32.mat is absent and http://127.0.0.1:9/x.tar.gz could not be downloaded"
        in results["notes"][0]
    )
    assert "put the file there by hand" in capsys.readouterr().out
    assert [path.name for path in (run_dir / "figures").glob("ood_*")] == ["ood_cifar100.png"]
    assert "test/ood_cifar100" in EventAccumulator(str(run_dir)).Reload().Tags()["images"]

    data = CIFAR10H(root=str(small_cifar))
    data.setup()
    model = classifier_of(data, LeNet).eval()
    model.load_state_dict(
        torch.load(run_dir / "checkpoints/best.ckpt", weights_only=True)["state_dict"]
    )
    mean, std = (
        torch.tensor(values).reshape(3, 1, 1) for values in (data.corpus.mean, data.corpus.std)
    )
    scores = []
    with torch.no_grad():
        for images in (
            data.corpus.inputs[torch.from_numpy(data.rows("test"))],
            torch.from_numpy(near),
        ):
            scores.append(-model((images / 255 - mean) / std).softmax(1).amax(1).numpy())
    expected = roc_auc_score(
        np.repeat([0, 1], [len(part) for part in scores]), np.concatenate(scores)
    )
    assert results["metrics"]["cifar100_auroc_msp"] == pytest.approx(expected, abs=1e-9)


def test_shares_of_ranks_are_disjoint_and_complete(data: Patches, monkeypatch: pytest.MonkeyPatch):
    images = torch.arange(75, dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 8, 8)
    batches = []
    for rank in range(2):
        monkeypatch.setattr(callbacks.ood.passes, "rank_and_ranks", lambda rank=rank: (rank, 2))
        batches.append(list(foreign_loader(images, data)))
    assert len(batches[0]) == len(batches[1]) == 3
    index = torch.cat([index for share in batches for _, index in share])
    assert sorted(index.tolist()) == list(range(75))
    inputs = torch.cat([inputs for share in batches for inputs, _ in share])
    torch.testing.assert_close(inputs[:, 0, 0, 0], (index / 255 - 0.4) / 0.3)


@pytest.mark.parametrize("scale", [255, 16])
def test_a_set_of_the_test_items_themselves_is_told_apart_by_chance(scale: float, tmp_path: Path):
    """Only if bytes from elsewhere are brought to the scale and standardisation of the data do both
    get the same scores.
    """
    data = ready_patches(scale)
    same = (data.corpus.inputs[TRAIN:, 0].double() * 255 / scale).round().to(torch.uint8)
    (tmp_path / "same.gz").write_bytes(gzip.compress(idx_bytes(same.numpy())))
    metrics = (
        OODScores(sets=[str(tmp_path / "same.gz")], k=7).run(classifier_of(data), data).metrics
    )
    assert {name for name in metrics if "auroc" in name} == {
        f"same_auroc_{score}" for score in SCORES
    }
    assert [metrics[f"same_auroc_{score}"] for score in SCORES] == pytest.approx(
        [0.5] * len(SCORES), abs=0.02
    )
    assert [metrics[f"same_fpr95_{score}"] for score in SCORES] == pytest.approx(
        [0.95] * len(SCORES), abs=0.026
    )


def test_one_pass_over_each_dataset_feeds_every_score_and_odin_adds_one(data: Patches, noise: str):
    class Counting(SimpleFFN):
        seen = 0

        def features(self, inputs: Tensor) -> Tensor:
            Counting.seen += len(inputs)
            return super().features(inputs)

    without = [score for score in SCORES if score != "odin"]
    for scores, expected in (
        (without, TRAIN + TEST + NOISE),
        (SCORES, TRAIN + 2 * (TEST + NOISE)),
        (["msp", "odin"], 2 * (TEST + NOISE)),
    ):
        Counting.seen = 0
        result = OODScores(sets=[noise], k=3, scores=scores).run(
            classifier_of(data, Counting), data
        )
        assert Counting.seen == expected
        assert len(result.metrics) == 3 * len(scores)


def test_a_sample_of_each_set(data: Patches, noise: str):
    few, all_ = (
        OODScores(sets=[noise], scores=["msp"], most_items=most).run(classifier_of(data), data)
        for most in (7, None)
    )
    legends = [
        result.figures["ood_noise"]().legends[0].get_texts()[1].get_text() for result in (few, all_)
    ]
    assert legends == ["noise (7)", f"noise ({NOISE})"]
    with pytest.raises(InputError, match="OODScores's most_items is 0"):
        OODScores(sets=[noise], most_items=0)


def test_nothing_is_computed_where_no_set_is_there(data: Patches, tmp_path: Path):
    class Unused(SimpleFFN):
        def features(self, inputs: Tensor) -> Tensor:
            raise AssertionError

    result = OODScores(sets={"a": str(tmp_path / "a"), "b": str(tmp_path / "b")}).run(
        classifier_of(data, Unused), data
    )
    assert (result.metrics, result.figures, len(result.notes)) == ({}, {}, 2)


def test_nothing_is_left_behind(data: Patches, noise: str):
    classifier = classifier_of(data, LeNet).train()
    classifier.network.head.weight.requires_grad_(False)
    classifier.network.head.bias.grad = torch.ones(3)
    before = {name: value.clone() for name, value in classifier.state_dict().items()}
    wanted = [parameter.requires_grad for parameter in classifier.parameters()]
    states = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    OODScores(sets=[noise], k=3, detectors=[{"class_path": "pytorch_ood.detector.NCI"}]).run(
        classifier, data
    )
    assert all(torch.equal(value, before[name]) for name, value in classifier.state_dict().items())
    assert [parameter.requires_grad for parameter in classifier.parameters()] == wanted
    assert all(part.training for part in classifier.modules())
    assert torch.equal(classifier.network.head.bias.grad, torch.ones(3))
    assert [parameter.grad is None for parameter in classifier.parameters()].count(False) == 1
    assert random.getstate() == states[0]
    assert (np.random.get_state()[1] == states[1]).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), states[2])


def test_a_folder_and_the_figure_of_its_scores(data: Patches, tmp_path: Path):
    folder = tmp_path / "My textures"
    folder.mkdir()
    for number in range(6):
        Image.fromarray(np.full((9 + number, 20, 3), 40 * number, np.uint8)).save(
            folder / f"{number}.png"
        )
    result = OODScores(sets=[str(folder)], k=3, scores=["msp", "mahalanobis"]).run(
        classifier_of(data), data
    )
    assert set(result.metrics) == {
        f"my_textures_{metric}_{score}" for metric in METRICS for score in ("msp", "mahalanobis")
    }
    figure = result.figures["ood_my_textures"]()
    titles = [panel.get_title() for panel in figure.axes]
    assert titles == [
        f"{name}: AUROC {result.metrics[f'my_textures_auroc_{key}']:.3f}"
        for name, key in (("MSP", "msp"), ("Mahalanobis", "mahalanobis"))
    ]
    for panel in figure.axes:
        # shares, whatever lies beyond the ends
        assert [patch.get_data()[0].sum() for patch in panel.patches] == pytest.approx([1, 1])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        f"test items ({TEST})",
        "my_textures (6)",
    ]


def test_members_of_packs_get_the_probe_of_their_config(tmp_path: Path, noise: str):
    options = write_yaml(
        tmp_path / "probe.yaml",
        sets=[noise],
        k=4,
        detectors=[{"class_path": "pytorch_ood.detector.MaxLogit"}],
    )
    entry = resolve(["--config", str(ROOT / "configs/digits.yaml"), *options])["trainer"][
        "callbacks"
    ][0]
    probe = build(entry)
    assert isinstance(probe, OODScores)
    assert (probe.sets, probe.k, list(probe.detectors), probe.scores) == (
        {"noise": noise},
        4,
        ["maxlogit"],
        SCORES,
    )


def test_real_digits_and_clothes_are_foreign_to_cifar_images(real_data: Path):
    """MNIST and Fashion-MNIST, 3 x 32 x 32, even to a network that was never trained: their
    features lie far from those of photographs.
    """
    data = CIFAR10H(root=str(real_data), batch_size=500)
    data.setup()
    scores = ["msp", "knn", "mahalanobis", "vim"]
    result = OODScores(sets=["mnist", "fashion_mnist"], root=str(real_data), scores=scores).run(
        classifier_of(data, LeNet), data
    )
    assert not result.notes
    assert len(result.metrics) == 2 * 3 * len(scores)
    assert min(result.metrics[f"mnist_auroc_{score}"] for score in scores[1:]) > 0.9
