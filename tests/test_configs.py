"""Every YAML in configs/ loads, says how to run it, and takes one step, on small data of the same
shape.
"""

from copy import deepcopy
from functools import cache
from pathlib import Path

import pytest
import yaml

from callbacks.results import read_results
from cli import main
from corpora.options import CorpusOptions, read_options
from datamodules.datasets.simulated_soft_digits import FOLDER
from datamodules.io.files import AbsentFile
from experiment.configuration import write_config
from studies.plan.study import Run, Study
from tests.datamodules.embedders.small_embedder import CLASS_PATH

CONFIGS = Path(__file__).parents[1] / "configs"
DATASETS = sorted(CONFIGS.glob("*.yaml"))
TRAINERS = sorted((CONFIGS / "trainer").glob("*.yaml"))
CALLBACKS = sorted((CONFIGS / "callbacks").glob("*.yaml"))
STUDIES = sorted((CONFIGS / "studies").glob("*.yaml"))
CORPORA = sorted((CONFIGS / "corpora").glob("*.yaml"))
ONE_STEP = [
    "--trainer.max_epochs", "1",
    "--trainer.limit_train_batches", "1",
    "--trainer.limit_val_batches", "1",
    "--trainer.accelerator", "cpu",
    "--trainer.devices", "1",
    "--trainer.num_nodes", "1",
    "--trainer.strategy", "auto",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip


@pytest.mark.parametrize(
    "path", DATASETS + TRAINERS + CALLBACKS + STUDIES + CORPORA, ids=lambda path: path.name
)
def test_the_head_says_command_cost_and_result(path: Path):
    head = path.read_text().split("\n\n")[0]
    comment = "\n".join(line for line in head.splitlines() if line.startswith("#"))
    assert "python cli.py " in comment
    assert "Cost" in comment
    assert "result" in comment.lower() or "Expect" in comment


def options_for(path: Path, root: Path) -> list[str]:
    given = yaml.safe_load(path.read_text())["data"]["init_args"]
    small = {
        "root": str(root),
        "cache": str(root),
        "embedder": CLASS_PATH,
        "per_class": "20",
        "val_items": "50",
    }
    return [
        "--config",
        str(path),
        *(word for name in small if name in given for word in (f"--data.{name}", small[name])),
    ]


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_one_step_with_each_dataset(path: Path, small_data: Path, tmp_path: Path):
    cli = main(
        [
            "fit",
            *options_for(path, small_data),
            *ONE_STEP,
            "--trainer.default_root_dir",
            str(tmp_path),
        ]
    )
    assert cli.trainer.global_step == 1


@pytest.mark.parametrize("path", TRAINERS, ids=lambda path: path.name)
def test_one_step_with_each_trainer(path: Path, small_cifar: Path, tmp_path: Path):
    options = [
        *options_for(CONFIGS / "cifar10h.yaml", small_cifar),
        "--config",
        str(path),
        *ONE_STEP,
        "--model.network.width",
        "4",
    ]
    cli = main(["fit", *options, "--trainer.default_root_dir", str(tmp_path)])
    assert cli.trainer.global_step == 1


@pytest.mark.parametrize("path", CALLBACKS, ids=lambda path: path.name)
def test_one_step_and_a_test_with_each_set_of_callbacks(
    path: Path, small_cifar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("datamodules.io.files._download", _no_network)
    options = [
        *options_for(CONFIGS / "cifar10h.yaml", small_cifar),
        "--config",
        str(path),
        *ONE_STEP,
        "--model.network",
        "LeNet",
    ]
    options += ["--trainer.default_root_dir", str(tmp_path)]
    run = main(["fit", *options]).run_dir
    main(["test", *options])
    results = read_results(run)
    assert results
    assert {
        "hessian_max",
        "hessian_trace_high",
        "gradient_variance_spearman",
        "best_epoch",
    } <= results["metrics"].keys()
    assert (run / "figures" / "grad_cam.png").exists()
    assert any("svhn" in note for note in results["notes"])


def _no_network(path: Path, file) -> None:
    raise AbsentFile(f"{path} is absent and nothing is downloaded in a test.")


@cache
def runs_of(path: Path) -> tuple[Study, list[Run]]:
    """A study and its runs, which several tests ask for and none may change."""
    study = Study.load(path)
    return study, study.runs()


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_each_study_expands_to_runs_that_the_command_line_takes(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(CONFIGS.parent)
    study, runs = runs_of(path)
    assert {grid for run in runs for grid in run.factors} == set(study.grids)
    assert len({run.name for run in runs}) == len(runs)


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.name)
def test_one_step_with_the_first_run_of_each_study(
    path: Path, small_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(CONFIGS.parent)
    config = deepcopy(runs_of(path)[1][0].config)
    small = {
        "root": str(small_data),
        "cache": str(small_data),
        "embedder": {"class_path": CLASS_PATH, "init_args": {}},
    }
    small |= {"per_class": 20, "val_items": 50, "batch_size": 8}
    config["data"]["init_args"] |= {
        name: value for name, value in small.items() if name in config["data"]["init_args"]
    }
    cli = main(
        [
            "fit",
            "--config",
            str(write_config(config, tmp_path)),
            *ONE_STEP,
            "--trainer.default_root_dir",
            str(tmp_path),
        ]
    )
    assert cli.trainer.global_step == 1


def test_the_corpus_of_soft_digits_has_the_options_of_its_stand_in_and_a_folder_of_its_own():
    options, place = read_options(CONFIGS / "corpora" / "soft_digits.yaml")
    assert options == CorpusOptions()
    assert place.out != Path(place.root) / FOLDER


def test_the_papers_recipe():
    config = yaml.safe_load((CONFIGS / "cifar10h.yaml").read_text())
    assert config["model"]["optimizer"] == {
        "class_path": "torch.optim.SGD",
        "init_args": {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4},
    }
    assert config["trainer"]["max_epochs"] == 200
    assert config["data"]["init_args"]["batch_size"] == 128
    assert config["data"]["init_args"]["eval_fraction"] == 0.2
