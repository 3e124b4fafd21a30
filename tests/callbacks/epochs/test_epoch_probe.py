"""What follows epochs: a follower that nothing else knows by name has the same columns alone and in
a pack, also after an interruption; a callback that packs cannot serve makes its run go alone.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lightning import Trainer

import callbacks
from callbacks.epochs.epoch_probe import EpochProbe
from callbacks.history import read_history
from callbacks.probe import Probe, ProbeResult
from cli import main
from core.errors import InputError
from datamodules import Digits
from experiment.configuration import resolve
from experiment.identity import run_name
from lightning_modules import AnnotatorClassifier, Prediction
from lightning_modules.epoch_follower import EndedEpoch, EpochFollower
from lightning_modules.networks import SimpleFFN
from studies.launch import pack_job
from studies.launch.pack_job import run_pack
from studies.plan.packing import why_alone
from studies.plan.study import Run

ROOT = Path(__file__).parents[3]
COLUMNS = {"val/confidence", "train/confidence", "train/sum_of_confidences", "test/kl_again"}
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
    "--data.batch_size", "200",
    "--trainer.max_epochs", "4",
]  # fmt: skip


class ConfidenceFollower(EpochFollower):
    """Uses all that a follower can: both moments, predictions, scores, a state and a file."""

    splits = ("train", "test")

    def __init__(self, folder: Path):
        self.path, self.sum = folder / "confidence.txt", 0.0

    def after_validation(self, prediction: Prediction) -> dict[str, Any]:
        return {"val/confidence": prediction.probs.amax(-1).mean()}

    def after_epoch(self, epoch: EndedEpoch) -> dict[str, Any]:
        mean = epoch.predictions("train").probs.amax(-1).mean().item()
        self.sum += mean
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n".join([*lines[: epoch.number], f"{mean:.4f}"]))
        return {
            "train/confidence": mean,
            "train/sum_of_confidences": self.sum,
            "test/kl_again": epoch.scores("test")["kl"],
        }

    def state_dict(self) -> dict[str, Any]:
        return {"sum": self.sum}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sum = state["sum"]

    def copy_record(self, folder: Path, epochs: int) -> None:
        (folder / self.path.name).write_text("\n".join(self.path.read_text().splitlines()[:epochs]))


class Confidence(EpochProbe):
    """A new callback, as somebody would write it."""

    def follow(self, data: Any, labels: Any, folder: Path) -> EpochFollower:
        return ConfidenceFollower(folder)


class Pure(Probe):
    """Looks after a test only."""

    def measure(self, classifier: Any, data: Any) -> ProbeResult:
        return ProbeResult()


class Watcher(Pure):
    """Follows epochs by a hook, of which packs know nothing."""

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        pl_module.log("train/watched", 1.0)


class StepWatcher(Confidence):
    """Has a follower, and a hook besides."""

    def on_train_batch_end(self, *args: Any, **kwargs: Any) -> None: ...


class Loner(Pure):
    """Says itself that packs are not for it."""

    @classmethod
    def can_be_packed(cls) -> bool:
        return False


def options(*kinds: Any, more: tuple[str, ...] = ()) -> list[str]:
    names = [kind if isinstance(kind, str) else f"{__name__}.{kind.__name__}" for kind in kinds]
    return [*OPTIONS, *(f"--trainer.callbacks+={name}" for name in names), *more]


def packed_runs(*kinds: Any) -> list[Run]:
    """Two seeds, and a shorter twin of the first."""
    configs = [
        resolve(options(*kinds, more=more))
        for more in ((), ("--seed_everything", "1"), ("--trainer.max_epochs", "2"))
    ]
    return [Run(run_name(config), config, {}) for config in configs]


def train(runs: list[Run], folder: Path, progress=lambda share: None) -> dict[str, str]:
    return run_pack(runs, folder, folder / "pack.pt", predict=False, progress=progress)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone")
    place = ("--trainer.default_root_dir", str(folder))
    return main(["fit", *options(Confidence, more=place)]).run_dir


def rows_of(folder: Path) -> list[dict[str, float]]:
    rows = read_history(folder)
    assert rows
    return rows


def test_a_new_follower_has_the_same_columns_alone_and_in_a_pack(alone: Path, tmp_path: Path):
    runs = packed_runs(Confidence)
    assert [why_alone(run.config) for run in runs] == [None] * 3
    assert runs[0].name == alone.name
    assert train(runs, tmp_path) == {}
    mine, theirs = rows_of(alone), rows_of(tmp_path / alone.name)
    assert [set(row) for row in mine] == [set(row) for row in theirs]
    assert set(mine[0]) > COLUMNS
    for one, other in zip(mine, theirs, strict=True):
        assert one == pytest.approx(other, abs=1e-5)
    assert theirs[3]["train/sum_of_confidences"] == pytest.approx(
        sum(row["train/confidence"] for row in theirs), rel=1e-12
    )
    short, long = runs[2].folder(tmp_path), runs[0].folder(tmp_path)
    assert rows_of(short) == theirs[:2]
    lines = (long / "confidence.txt").read_text().splitlines()
    assert lines == [f"{row['train/confidence']:.4f}" for row in theirs]
    assert (short / "confidence.txt").read_text().splitlines() == lines[:2]


def test_alone_it_continues_from_its_checkpoint(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    command = ["fit", *options(Confidence), "--trainer.default_root_dir", str(tmp_path)]
    whole = AnnotatorClassifier.training_step

    def interrupted(self: AnnotatorClassifier, batch: Any, batch_idx: int) -> Any:
        if self.current_epoch == 2 and batch_idx == 5:
            raise RuntimeError("interrupted")
        return whole(self, batch, batch_idx)

    with monkeypatch.context() as interruption:
        interruption.setattr(AnnotatorClassifier, "training_step", interrupted)
        with pytest.raises(RuntimeError, match="interrupted"):
            main(command)
    main(command)
    assert (tmp_path / alone.name / "history.json").read_bytes() == (
        alone / "history.json"
    ).read_bytes()


def test_an_interrupted_pack_ends_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pack_job, "SAVE_EVERY", 0.0)
    kinds = ("TrainingDynamics", Confidence, "EpochScores", "DataCartography")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert train(packed_runs(*kinds), whole) == {}
    for epoch in (1, 3):

        def interrupt(share: float, epoch: int = epoch) -> None:
            if share > epoch / 4:  # its state is saved after this, so an epoch is done again
                raise RuntimeError("killed")

        with pytest.raises(RuntimeError, match="killed"):
            train(packed_runs(*kinds), killed, interrupt)
        assert (killed / "pack.pt").exists()
    assert train(packed_runs(*kinds), killed) == {}
    names = {path.relative_to(whole) for path in whole.rglob("*") if path.suffix != ".ckpt"}
    compared = {"history.json", "cartography_train.f32", "confidence.txt", "training.json"}
    files = [name for name in names if name.name in compared]
    assert len(files) == 3 * len(compared)
    for name in files:
        assert (killed / name).read_bytes() == (whole / name).read_bytes()
    for run in packed_runs(*kinds):
        mine, theirs = (
            (run.folder(folder) / "results.json").read_text().replace(str(folder), "")
            for folder in (whole, killed)
        )
        assert mine == theirs
    row = rows_of(packed_runs(*kinds)[0].folder(whole))[-1]
    assert {"val/js", "train/kl", *COLUMNS} <= set(row)


# Callbacks that packs cannot serve


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Pure, None),
        (Confidence, None),
        (Watcher, "the callback Watcher looks into training in a way that packs cannot serve"),
        (StepWatcher, "the callback StepWatcher looks into training in a way"),
        (Loner, "the callback Loner looks into training in a way"),
    ],
)
def test_can_be_packed_decides(kind: type, reason: str | None):
    answer = why_alone(resolve(options(kind)))
    assert answer is None if reason is None else reason in (answer or "")


def test_every_probe_of_this_project_can_be_packed():
    kinds = [getattr(callbacks, name) for name in callbacks.__all__]
    probes = [kind for kind in kinds if issubclass(kind, Probe)]
    assert len(probes) >= 8
    assert all(kind.can_be_packed() for kind in probes)


def test_plan_says_why_a_run_goes_alone(tmp_path: Path, capsys: pytest.CaptureFixture):
    study = {
        "name": "watched",
        "configs": [str(ROOT / "configs/digits.yaml")],
        "options": {"trainer.callbacks": [{"class_path": f"{__name__}.Watcher"}]},
        "grids": {"main": {"seed_everything": [0, 1]}},
    }
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study))
    main(["study", "plan", str(tmp_path / "study.yaml"), "--runs", str(tmp_path / "runs")])
    message = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "one by one" in message
    assert "packed in one process" not in message
    for words in ("the callback Watcher", "packs cannot serve"):
        assert words in message


# Followers that would lose a column, or change a training


class Misnamed(EpochProbe):
    """Its follower names a column as it is told to."""

    moment, column = "after_epoch", "train/fine"

    def follow(self, data: Any, labels: Any, folder: Path) -> EpochFollower:
        named = {self.column: 1.0}
        methods = {self.moment: lambda self, what: named}
        return type("MisnamedFollower", (EpochFollower,), methods)()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    ("moment", "column"),
    [
        ("after_epoch", "val/mine"),
        ("after_epoch", "mine"),
        ("after_epoch", "train/loss"),
        ("after_validation", "train/mine"),
        ("after_validation", "val/soft_nll"),
        ("after_validation", "val/loss"),
    ],
)
def test_a_column_that_would_be_lost_or_mistaken_is_refused(
    packed: bool, moment: str, column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Misnamed, "moment", moment)
    monkeypatch.setattr(Misnamed, "column", column)
    with pytest.raises(
        InputError, match=f"MisnamedFollower names a column of the history {column}"
    ):
        fit(Misnamed, tmp_path, packed)


class Undeclared(EpochProbe):
    """Its follower asks for items that it did not name."""

    def follow(self, data: Any, labels: Any, folder: Path) -> EpochFollower:
        class Asking(EpochFollower):
            def after_epoch(self, epoch: EndedEpoch) -> dict[str, Any]:
                return {"test/kl": epoch.scores("test")["kl"]}

        return Asking()


@pytest.mark.parametrize("packed", [True, False])
def test_a_split_that_is_not_named_is_refused(packed: bool, tmp_path: Path):
    with pytest.raises(InputError, match="Asking asks for test items at the end of an epoch"):
        fit(Undeclared, tmp_path, packed)


def fit(kind: type, folder: Path, packed: bool) -> None:
    """One epoch."""
    if packed:
        config = resolve(options(kind, more=("--trainer.max_epochs", "1")))
        train([Run(run_name(config), config, {})], folder)
    else:
        quiet: dict[str, Any] = dict.fromkeys(
            ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
        )
        trainer = Trainer(
            max_epochs=1,
            limit_train_batches=2,
            accelerator="cpu",
            default_root_dir=folder,
            callbacks=[kind()],
            **quiet,
        )
        classifier = AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN)
        trainer.fit(classifier, datamodule=Digits(batch_size=200))
