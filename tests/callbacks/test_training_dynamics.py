"""Training dynamics: divergences against scipy, the summary by hand, the same numbers alone and in
a pack.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from lightning import Callback, Trainer
from scipy.spatial.distance import jensenshannon
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from callbacks import History, TrainingDynamics
from callbacks.history import read_history, write_history
from callbacks.results import read_results
from callbacks.training_dynamics import draw_dynamics, dynamics_summary, strata_of
from cli import main
from core.errors import InputError
from datamodules import Digits
from datamodules.votes.table import VoteTable
from experiment.configuration import resolve
from experiment.identity import run_name
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from studies.launch.pack_job import run_pack
from studies.plan.study import Run
from tests.finished import read_preview
from tests.quiet import QUIET

ROOT = Path(__file__).parents[2]
PROBES = {
    "trainer": {
        "callbacks": [
            {"class_path": "TrainingDynamics", "init_args": {"quantile": 0.8}},
            {"class_path": "GradientVariance"},
        ]
    }
}
COLUMNS = ("val/js", "val/js_nohlv", "val/js_hlv", "val/js_high")
NUMBERS = {
    "best_epoch",
    "best_loss_epoch",
    "epoch_within_5pct",
    "best_val_soft_nll",
    "final_val_soft_nll",
    *(f"late_{name[4:]}" for name in COLUMNS),
}


def options(folder: Path, *more: str) -> list[str]:
    (folder / "probes.yaml").write_text(yaml.safe_dump(PROBES))
    configs = [
        "--config",
        str(ROOT / "configs/digits.yaml"),
        "--config",
        str(folder / "probes.yaml"),
    ]
    return [*configs, *QUIET, "--trainer.max_epochs", "4", "--data.delivery", "Multipass", *more]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's directory after fit and test on the command line, with both probes from a YAML."""
    folder = tmp_path_factory.mktemp("runs")
    run_dir = main(["fit", *options(folder, "--trainer.default_root_dir", str(folder))]).run_dir
    main(["test", *options(folder, "--trainer.default_root_dir", str(folder))])
    return run_dir


def epochs_of(folder: Path) -> list[dict[str, float]]:
    epochs = read_history(folder)
    assert epochs
    return epochs


def metrics_of(folder: Path) -> dict[str, float]:
    results = read_results(folder)
    assert results
    return results["metrics"]


# As a user sees it


def test_results_hold_the_summary_of_the_history(finished: Path):
    metrics = metrics_of(finished)
    assert {name: metrics[name] for name in NUMBERS} == pytest.approx(
        dynamics_summary(epochs_of(finished)), rel=1e-12
    )
    assert (
        torch.load(finished / "checkpoints/best.ckpt", weights_only=True)["epoch"]
        == metrics["best_epoch"]
    )
    assert {"gradient_variance", "gradient_variance_spearman", "gradient_variance_gap"} < set(
        metrics
    )


def test_pictures_and_scalars_are_where_they_belong(finished: Path):
    assert {"training_dynamics.png", "gradient_variance.png"} < {
        path.name for path in (finished / "figures").iterdir()
    }
    events = EventAccumulator(str(finished)).Reload()
    assert {"test/training_dynamics", "test/gradient_variance"} < set(events.Tags()["images"])
    assert [event.value for event in events.Scalars("val/js_hlv")] == pytest.approx(
        [row["val/js_hlv"] for row in epochs_of(finished)[1:]], rel=1e-6
    )


def test_a_checkpoint_from_elsewhere_gets_a_note_instead_of_numbers(finished: Path, tmp_path: Path):
    weights = torch.load(finished / "checkpoints/best.ckpt", weights_only=True)["state_dict"]
    torch.save(
        {"state_dict": weights, "pytorch-lightning_version": "2.6.0"}, tmp_path / "weights.ckpt"
    )
    elsewhere = [
        "--trainer.default_root_dir",
        str(tmp_path),
        "--ckpt_path",
        str(tmp_path / "weights.ckpt"),
    ]
    results = read_preview(main(["test", *options(tmp_path, *elsewhere)]).run_dir)
    assert not NUMBERS & set(results["metrics"])
    assert [note for note in results["notes"] if "history.json of this training" in note]


def test_a_run_that_was_fitted_without_it_is_summed_up_as_far_as_that_goes(tmp_path: Path):
    write_history(tmp_path, [{"epoch": 0, "val/soft_nll": 0.5}, {"epoch": 1, "val/soft_nll": 0.4}])
    result = TrainingDynamics().run(
        AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN), Digits(), tmp_path
    )
    assert result.metrics["best_epoch"] == 1
    assert "late_js" not in result.metrics
    assert "fit was run without TrainingDynamics" in result.notes[0]


def test_a_quantile_that_is_none_is_told_before_training(tmp_path: Path):
    classifier = AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN)
    with pytest.raises(InputError, match=r"quantile is 1\.5"):
        solo(tmp_path, classifier, TrainingDynamics(quantile=1.5))
    assert not list(tmp_path.iterdir())


# The divergences


class Predictions(Callback):
    """What the model says about the validation items at the end of each epoch, asked for
    independently.
    """

    def __init__(self):
        self.epochs: list[np.ndarray] = []

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        loader = trainer.datamodule.val_dataloader()  # pyright: ignore[reportAttributeAccessIssue]
        with torch.no_grad():
            self.epochs.append(
                pl_module(loader.prepare(loader.sampler.items, 0)).double().softmax(-1).numpy()
            )


def solo(
    folder: Path, classifier: AnnotatorClassifier, *callbacks: Callback, **more
) -> tuple[Trainer, Digits]:
    data = Digits(batch_size=100)
    quiet: dict[str, Any] = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    limits: dict[str, Any] = {"max_epochs": 3, "limit_train_batches": 5, **more}
    trainer = Trainer(
        accelerator="cpu",
        default_root_dir=folder,
        callbacks=[History(), *callbacks],
        **limits,
        **quiet,
    )
    trainer.fit(classifier, datamodule=data)
    return trainer, data


@pytest.mark.parametrize(
    "more", [{}, {"val_check_interval": 0.2}], ids=["one validation an epoch", "five"]
)
def test_divergences_are_those_of_scipy_between_the_ends_of_epochs(
    more: dict[str, Any], tmp_path: Path
):
    predictions = Predictions()
    _, data = solo(
        tmp_path,
        AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN),
        TrainingDynamics(0.8),
        predictions,
        **more,
    )
    epochs = epochs_of(tmp_path)
    assert len(epochs) == 3
    assert not set(COLUMNS) & set(epochs[0])
    assert data.corpus
    votes, rows = data.corpus.votes, data.rows("val")
    several = (votes.probs[rows] > 0).sum(1) > 1
    high = several & (votes.entropy[rows] >= np.quantile(votes.entropy, 0.8))
    assert 0 < high.sum() < several.sum() < len(rows)
    for number in (1, 2):
        divergence = (
            jensenshannon(predictions.epochs[number - 1], predictions.epochs[number], axis=1) ** 2
        )
        expected = [
            divergence[mask].mean() for mask in (several | ~several, ~several, several, high)
        ]
        assert [epochs[number][name] for name in COLUMNS] == pytest.approx(expected, rel=1e-5)


def test_strata_without_items_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        VoteTable, "unanimous", property(lambda table: np.ones(len(table), dtype=bool))
    )
    solo(tmp_path, AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN), TrainingDynamics())
    epochs = epochs_of(tmp_path)
    assert set(COLUMNS) & set(epochs[-1]) == {"val/js", "val/js_nohlv"}
    assert epochs[-1]["val/js"] == epochs[-1]["val/js_nohlv"]


def test_predictions_of_other_items_are_not_compared(tmp_path: Path):
    """As after a continuation from the checkpoint of another seed, whose split is another."""
    dynamics = TrainingDynamics()
    other = {"index": torch.arange(7), "probs": torch.full((7, 10), 0.1, dtype=torch.float64)}
    dynamics.load_state_dict({"before": other, "now": other})
    solo(tmp_path, AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN), dynamics)
    assert ["val/js" in row for row in epochs_of(tmp_path)] == [False, True, True]


def test_strata_are_all_unanimous_others_and_the_most_disputed():
    strata = strata_of(VoteTable(counts=[[9, 0], [5, 4], [8, 1], [0, 9], [7, 2]]), quantile=0.75)
    assert {name: mask.nonzero().flatten().tolist() for name, mask in strata.items()} == {
        "js": [0, 1, 2, 3, 4], "js_nohlv": [0, 3], "js_hlv": [1, 2, 4], "js_high": [1, 4]
    }  # fmt: skip


# The summary


def history(scores: list[float], **columns: list[float]) -> list[dict[str, float]]:
    rows = [{"epoch": epoch, "val/soft_nll": score} for epoch, score in enumerate(scores)]
    for name, values in columns.items():
        for row, value in zip(rows[1:], values, strict=True):
            row[f"val/{name}"] = value
    return rows


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(st.floats(0.01, 5) | st.just(1.0), min_size=1, max_size=30))
def test_the_summary_by_definition(scores: list[float]):
    summary = dynamics_summary(history(scores))
    best, near = int(summary["best_epoch"]), int(summary["epoch_within_5pct"])
    assert summary["best_val_soft_nll"] == scores[best] == min(scores)
    assert min(scores) not in scores[:best]  # of equal epochs the first, as the checkpoint is
    assert scores[near] <= 1.05 * min(scores)
    assert all(score > 1.05 * min(scores) for score in scores[:near])
    assert summary["final_val_soft_nll"] == scores[-1]


def test_late_divergence_is_the_mean_of_the_last_quarter():
    summary = dynamics_summary(
        history([1.0] * 11, js=[9.0] * 7 + [1.0, 2.0, 6.0], js_hlv=[9.0] * 9 + [3.0])
    )
    assert (summary["late_js"], summary["late_js_hlv"]) == (3.0, 7.0)
    assert dynamics_summary(history([1.0, 1.0], js=[0.25]))["late_js"] == 0.25


def test_epochs_that_diverged_or_were_not_validated_do_not_count():
    rows = [{"epoch": 0}, *history([math.nan, 2.0, 1.0, math.inf])]
    assert dynamics_summary([{**row, "epoch": number} for number, row in enumerate(rows)]) == {
        "best_epoch": 3.0, "epoch_within_5pct": 3.0, "best_val_soft_nll": 1.0, "final_val_soft_nll": 1.0  # noqa: E501
    }  # fmt: skip
    assert dynamics_summary(history([math.nan, math.inf])) == dynamics_summary([]) == {}


def test_the_figure_marks_both_epochs_and_draws_every_stratum():
    rows = history(
        [2.0, 1.04, 1.0, 1.3],
        js=[0.1, 0.02, 0.01],
        js_nohlv=[0.1, 0.01, 0.001],
        js_hlv=[0.1, 0.03, 0.02],
    )
    figure = draw_dynamics(rows, "title")
    above, below = figure.axes
    _, labels = above.get_legend_handles_labels()
    assert labels[1:] == ["first below that: epoch 1", "best: 1.000 nats, epoch 2"]
    assert [line.get_ydata().tolist() for line in below.lines] == [
        [row[f"val/{n}"] for row in rows[1:]] for n in ("js", "js_nohlv", "js_hlv")
    ]
    assert below.get_yscale() == "log"
    draw_dynamics(history([1.0]), "one epoch").draw_without_rendering()


# In a pack


def test_a_packed_member_gets_what_its_solo_run_gets(finished: Path, tmp_path: Path):
    configs = [resolve(options(tmp_path, *more)) for more in ([], ["--seed_everything", "1"])]
    configs[1]["trainer"]["callbacks"] = None
    runs = [Run(run_name(config), config, {}) for config in configs]
    assert runs[0].name == finished.name
    assert (
        run_pack(runs, tmp_path, tmp_path / "state.pt", predict=False, progress=lambda share: None)
        == {}
    )
    mine, theirs = epochs_of(tmp_path / finished.name), epochs_of(finished)
    assert [set(row) for row in mine] == [set(row) for row in theirs]
    for one, other in zip(mine, theirs, strict=True):
        assert one == pytest.approx(other, abs=1e-5)
        assert {name: one.get(name) for name in COLUMNS} == pytest.approx(
            {name: other.get(name) for name in COLUMNS}, abs=1e-6
        )
    packed, alone = metrics_of(tmp_path / finished.name), metrics_of(finished)
    assert {name: packed[name] for name in NUMBERS} == pytest.approx(
        {name: alone[name] for name in NUMBERS}, abs=1e-5
    )
    assert packed["gradient_variance"] == pytest.approx(alone["gradient_variance"], rel=1e-4)
    assert (tmp_path / finished.name / "figures/training_dynamics.png").is_file()
    assert not any(set(COLUMNS) & set(row) for row in epochs_of(tmp_path / runs[1].name))
