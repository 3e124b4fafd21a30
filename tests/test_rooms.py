"""The rooms of the codebase: which may import which, how large they are, and what stays importable.

A name that moves keeps its old address here; a room that grows is split by idea.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
# From the ground up. A room imports itself and the levels below it; rooms of one level do not
# know each other.
LEVELS = (
    ("core",),
    ("metrics",),
    ("lightning_modules", "datamodules.votes", "datamodules.io"),
    ("corpora",),
    ("datamodules",),  # all that is in neither votes nor io
    ("callbacks",),
    ("experiment",),
    ("studies",),
    ("cli",),
)
LEVEL = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
PACKAGES = sorted({room.split(".")[0] for room in LEVEL} - {"cli"})
MOST_LINES, MOST_MODULES = 250, 15


def modules() -> list[Path]:
    """Every module of the packages, and cli.py."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    return sorted([*paths, ROOT / "cli.py"])


def dotted(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str | None:
    """The innermost room that a module is in; None for what is not ours."""
    parts = module.split(".")
    prefixes = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((prefix for prefix in prefixes if prefix in LEVEL), None)


def is_module(name: str) -> bool:
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def imports(source: str, path: Path) -> Iterator[tuple[int, str]]:
    """Line and module of every import, wherever in a module it stands."""
    package = dotted(path) if path.name == "__init__.py" else dotted(path).rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            start = [*above, node.module] if node.level else [node.module]
            module = ".".join(filter(None, start))
            for alias in node.names:
                inner = f"{module}.{alias.name}"
                yield node.lineno, inner if is_module(inner) else module


def wrong_imports(source: str, path: Path) -> list[str]:
    """A sentence for each import that goes up or sideways."""
    own, name = room_of(dotted(path)), path.relative_to(ROOT).as_posix()
    assert own is not None
    wrong = []
    for line, module in imports(source, path):
        room = room_of(module)
        if room in (None, own):
            continue
        if LEVEL[room] >= LEVEL[own]:
            where = "above" if LEVEL[room] > LEVEL[own] else "beside"
            wrong.append(f"{name}:{line} imports {module}, which stands {where} it")
    return wrong


def test_imports_point_one_way():
    wrong = [line for path in modules() for line in wrong_imports(path.read_text(), path)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        (
            "core/errors.py",
            "import numpy\nimport metrics.scores",
            "core/errors.py:2 imports metrics.scores, which stands above it",
        ),
        (
            "metrics/scores.py",
            "def score():\n    from callbacks import probe",
            "metrics/scores.py:2 imports callbacks.probe, which stands above it",
        ),
        (
            "callbacks/probe.py",
            "if TYPE_CHECKING:\n    from experiment.build import build_run",
            "callbacks/probe.py:2 imports experiment.build, which stands above it",
        ),
        (
            "datamodules/io/files.py",
            "from datamodules import votes",
            "datamodules/io/files.py:1 imports datamodules.votes, which stands beside it",
        ),
        (
            "datamodules/votes/table.py",
            "from ..loading import Batch",
            "datamodules/votes/table.py:1 imports datamodules.loading, which stands above it",
        ),
        ("datamodules/frozen.py", "from . import votes, io\nfrom .io import files", None),
        (
            "corpora/__init__.py",
            "import datamodules",
            "corpora/__init__.py:1 imports datamodules, which stands above it",
        ),
        ("studies/commands.py", "import cli", "studies/commands.py:1 imports cli, which stands "),
    ],
)
def test_an_import_that_goes_up_or_sideways_is_named(path: str, source: str, expected: str | None):
    wrong = wrong_imports(source, ROOT / path)
    assert [line.startswith(expected or " ") for line in wrong] == ([True] if expected else [])


def test_no_module_is_too_long():
    paths = [*modules(), *(ROOT / "benchmarks").rglob("*.py")]
    lengths = {path: len(path.read_text().splitlines()) for path in paths}
    long = [
        f"{path.relative_to(ROOT)} has {lines} lines, more than {MOST_LINES}; split it by idea"
        for path, lines in lengths.items()
        if lines > MOST_LINES
    ]
    assert not long, "\n".join(long)


def test_no_folder_is_too_full():
    paths = [*modules(), *(ROOT / "benchmarks").rglob("*.py")]
    folders = [path.parent for path in paths if path.name != "__init__.py"]
    full = [
        f"{folder.relative_to(ROOT)} has {folders.count(folder)} modules, more than {MOST_MODULES}"
        for folder in sorted(set(folders))
        if folders.count(folder) > MOST_MODULES
    ]
    assert not full, "\n".join(full)


def test_every_package_says_what_lives_there_and_what_it_may_import():
    silent = []
    for path in modules():
        if path.name == "__init__.py":
            docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
            if not {"Imports", "imports"} & set(docstring.split()):
                silent.append(path.relative_to(ROOT).as_posix())
    assert not silent, f"{', '.join(silent)}: the docstring does not say what may be imported"


DELIVERIES = (
    "SoftLabels MajorityVote LabelSmoothing Mixup Multipass StochasticLabelSampling "
    "DeterministicControl ShuffledSLS"
)
# what configs, notebooks and other people's scripts rely on: the addresses of the design's table,
# and those of the functions and classes that the README has named
RELIED_ON = {
    "datamodules.votes": "VoteTable",
    "datamodules.delivery": DELIVERIES,
    "datamodules.loading": "Batch",
    "datamodules": "CIFAR10H CIFAR10HFrozen CIFAR10HHard ChaosNLI POPQUORN SoftDigits MNISTSubset "
    f"Digits OwnVotes VoteDataModule VoteTable {DELIVERIES}",
    "datamodules.embedders": "EfficientNetLite0 OpenAIEmbedder SentenceEmbedder TimmEmbedder",
    "lightning_modules": "AnnotatorClassifier CosineToEnd",
    "lightning_modules.classifier": "AnnotatorClassifier",
    "lightning_modules.networks": "ResNet18 LeNet SimpleFFN DeeperFFN MLPHead TimmModel",
    "lightning_modules.packed": "PackedClassifier",
    "metrics": "SoftNLL KLDivergence SoftBrier EntropyCorrelation EqualMassECE SmoothECE "
    "HardAccuracy BrierDecomposition",
    "metrics.functional": "soft_nll kl_divergence soft_brier entropy_correlation equal_mass_ece "
    "smooth_ece hard_accuracy brier_decomposition",
    "metrics.cartography": "data_map map_across_runs",
    "callbacks": "HessianSpectrum DataCartography OODScores GradientVariance GradCAM Results "
    "EpochScores TrainingDynamics StratumScores",
    "callbacks.hessian_spectrum": "measure_spectrum",
    "callbacks.gradient_variance": "exact_variance",
    "callbacks.ood_detectors": "",
    "callbacks.grad_cam": "grad_cam_maps",
    "callbacks.epoch_scores": "split_scores",
    "callbacks.training_dynamics": "dynamics_summary",
    "callbacks.stratum_scores": "stratum_scores",
    "studies.mode_shift": "mode_shift",
    "studies.representations": "compare_runs",
}


@pytest.mark.parametrize("module", RELIED_ON)
def test_what_others_rely_on_stays_importable(module: str):
    content = importlib.import_module(module)
    absent = [name for name in RELIED_ON[module].split() if not hasattr(content, name)]
    assert not absent, f"{module} has no {', '.join(absent)}"


# options of a YAML that hold a class, by the last part of their key, and where a bare name is found
CLASS_KEYS = ("class_path", "delivery", "network", "embedder", "optimizer", "scheduler")
BARE = (
    "datamodules",
    "datamodules.embedders",
    "lightning_modules",
    "lightning_modules.networks",
    "callbacks",
    "lightning.pytorch.callbacks",
)


def class_paths(content: Any, key: str = "") -> Iterator[str]:
    """Every class that a YAML names, at any depth."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from class_paths(value, str(name))
    elif isinstance(content, list):
        for value in content:
            yield from class_paths(value, key)
    elif isinstance(content, str) and key.rpartition(".")[2] in CLASS_KEYS:
        yield content


def test_every_class_that_a_config_names_is_found():
    named: dict[str, Path] = {}
    for path in sorted((ROOT / "configs").rglob("*.yaml")):
        named |= dict.fromkeys(class_paths(yaml.safe_load(path.read_text())), path)
    assert {"CIFAR10H", "ResNet18", "HessianSpectrum", "Mixup", "torch.optim.SGD"} <= set(named)
    for name, path in named.items():
        module, _, last = name.rpartition(".")
        places = [importlib.import_module(place) for place in ([module] if module else BARE)]
        found = [getattr(place, last) for place in places if hasattr(place, last)]
        assert found, f"{path.relative_to(ROOT)} names {name}, which is nowhere"
        assert isinstance(found[0], type)
