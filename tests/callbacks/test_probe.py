"""What all probes promise: the model is left exactly as it was, in a run of its own and in a pack
(over several processes: tests/devices).
"""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import callbacks
from callbacks.results import read_results
from cli import main
from datamodules import Digits
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import LeNet
from lightning_modules.preserve_state import preserve_state
from tests import processes
from tests.callbacks.patches import write_noise

ROOT = Path(__file__).parents[2]
PROBES = {
    "HessianSpectrum": {"trace_tolerance": 0.1},
    "GradientVariance": {},
    "TrainingDynamics": {},
    "OODScores": {"k": 5},
    "DataCartography": {},
    "StratumScores": {},
}
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--data.batch_size", "101",
    "--trainer.max_epochs", "1",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip


def write_probes(folder: Path) -> Path:
    """A YAML with all probes that any network suits, and a set of images unlike digits for one of
    them.
    """
    options = {
        **PROBES,
        "OODScores": {**PROBES["OODScores"], "sets": {"noise": write_noise(folder)}},
    }
    path = folder / "probes.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "trainer": {
                    "callbacks": [
                        {"class_path": name, "init_args": more} for name, more in options.items()
                    ]
                }
            }
        )
    )
    return path


def everything(module: torch.nn.Module) -> list:
    """All that a look could change: weights and buffers, gradients, what wants gradients, modes,
    and every global random state.
    """
    tensors = [value.clone() for value in module.state_dict().values()]
    gradients = [None if p.grad is None else p.grad.clone() for p in module.parameters()]
    flags = [p.requires_grad for p in module.parameters()] + [
        part.training for part in module.modules()
    ]
    return [
        tensors,
        gradients,
        flags,
        torch.get_rng_state(),
        random.getstate(),
        [str(part) for part in np.random.get_state()],  # noqa: NPY002
    ]


def same(one: list, two: list) -> None:
    torch.testing.assert_close(one[0], two[0], rtol=0, atol=0)
    for before, after in zip(one[1], two[1], strict=True):
        assert (before is None) == (after is None)
        assert before is None or torch.equal(before, after)
    assert one[2] == two[2]
    assert torch.equal(one[3], two[3])
    assert one[4:] == two[4:]


def mixed_classifier() -> AnnotatorClassifier:
    """In training mode but for one part, with one frozen weight, with gradients on some weights."""
    classifier = AnnotatorClassifier((1, 8, 8), 10, LeNet)
    classifier.train()
    classifier.network.convolutions.eval()  # pyright: ignore[reportCallIssue]
    next(classifier.network.parameters()).requires_grad_(False)
    classifier.network.head(torch.ones(3, 84)).sum().backward()
    return classifier


def test_as_found_restores_everything_even_after_a_failure():
    classifier = mixed_classifier()
    before = everything(classifier)

    def look_and_fail() -> None:
        with preserve_state(classifier):
            assert not any(part.training for part in classifier.modules())
            torch.rand(3)
            random.random()
            np.random.rand()  # noqa: NPY002
            classifier(torch.ones(2, 1, 8, 8)).sum().backward()
            raise KeyError

    with pytest.raises(KeyError):
        look_and_fail()
    same(before, everything(classifier))


def test_gradients_can_be_taken_inside_inference_mode():
    layer = torch.nn.Linear(2, 1)
    with torch.inference_mode(), preserve_state(layer):
        assert torch.autograd.grad(layer(torch.ones(1, 2)).sum(), layer.weight)[0].tolist() == [
            [1, 1]
        ]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run's directory after fit and test with all probes, and the options it was made with."""
    folder = tmp_path_factory.mktemp("probes")
    options = [*OPTIONS, "--config", str(write_probes(folder))]
    run = main(["fit", *options, "--trainer.default_root_dir", str(folder / "one")]).run_dir
    main(["test", *options, "--trainer.default_root_dir", str(folder / "one")])
    return run, options


@pytest.mark.parametrize("name", ["GradCAM", *PROBES])
def test_each_probe_leaves_the_model_as_it_found_it(name: str, tmp_path: Path):
    data = Digits()
    data.setup()
    classifier = mixed_classifier()
    before = everything(classifier)
    options = {
        **PROBES.get(name, {}),
        **({"sets": {"noise": write_noise(tmp_path)}} if name == "OODScores" else {}),
    }
    result = getattr(callbacks, name)(**options).run(classifier, data)
    assert result.metrics or result.figures or result.notes
    same(before, everything(classifier))


def test_probes_do_not_change_a_runs_name_or_its_scores(
    trained: tuple[Path, list[str]], tmp_path: Path
):
    run, _ = trained
    plain = [*OPTIONS, "--trainer.default_root_dir", str(tmp_path)]
    alone = main(["fit", *plain]).run_dir
    main(["test", *plain])
    assert alone.name == run.name
    with_probes, without = read_results(run), read_results(alone)
    assert with_probes
    assert without
    assert {name: with_probes["metrics"][name] for name in without["metrics"]} == without["metrics"]


def test_a_packed_member_is_examined_as_if_it_had_been_alone(
    trained: tuple[Path, list[str]], tmp_path: Path
):
    run, _ = trained
    study = {
        "name": "probed",
        "configs": [str(ROOT / "configs/digits.yaml"), str(write_probes(tmp_path))],
    }
    study |= {
        "options": {"trainer.max_epochs": 1, "data.batch_size": 101},
        "grids": {"main": {"seed_everything": [0, 1]}},
    }
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(study))
    processes.run(["study", "run", path, "--runs", tmp_path / "runs"], check=True)
    packed, alone = read_results(tmp_path / "runs" / run.name), read_results(run)
    assert packed
    assert alone
    assert packed["metrics"] == pytest.approx(alone["metrics"], rel=2e-3, abs=1e-4)
    assert packed["notes"] == alone["notes"]
    assert sorted(p.name for p in (tmp_path / "runs" / run.name).glob("*.json")) == sorted(
        p.name for p in run.glob("*.json")
    )
