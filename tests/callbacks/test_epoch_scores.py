"""EpochScores: every epoch's training and test scores, of the model as validation saw it, and
nothing computed twice or chosen by them.
"""

from pathlib import Path

import pytest
import torch

from callbacks import EpochScores
from callbacks.history import read_history
from callbacks.results import read_results
from cli import main
from core.errors import InputError
from experiment.run_checkpoints import best_checkpoint, last_checkpoint
from lightning_modules import AnnotatorClassifier
from metrics import functional
from tests.finished import read_preview

ROOT = Path(__file__).parents[2]
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--trainer.max_epochs", "8",
    "--trainer.limit_train_batches", "25",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
    "--data.delivery", "MajorityVote",
    "--model.network", "MLPHead",
    "--model.optimizer.lr", "0.01",
]  # fmt: skip
SCORES = {
    "soft_nll": functional.soft_nll,
    "hard_nll": lambda probs, people: functional.soft_nll(
        probs, torch.nn.functional.one_hot(people.argmax(-1), people.shape[-1])
    ),
    "kl": functional.kl_divergence,
    "soft_brier": functional.soft_brier,
    "accuracy": functional.hard_accuracy,
}


def fit(folder: Path, *options: str):
    return main(["fit", *OPTIONS, *options, "--trainer.default_root_dir", str(folder)])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory):
    return fit(
        tmp_path_factory.mktemp("runs"),
        "--model.monitor",
        "val/hard_nll",
        "--trainer.callbacks+=EpochScores",
    )


def test_each_split_is_scored_as_a_look_at_the_saved_model_says(fitted):
    history, data = read_history(fitted.run_dir), fitted.datamodule
    saved = torch.load(last_checkpoint(fitted.run_dir), weights_only=True)
    network = fitted.model.network
    network.load_state_dict(
        {name.removeprefix("network."): value for name, value in saved["state_dict"].items()}
    )
    network.eval()
    for split in ("train", "val", "test"):
        items = torch.from_numpy(data.rows(split))
        with torch.no_grad():
            probs = (
                network(data.loader(data.rows(split), training=False).prepare(items, 0))
                .double()
                .softmax(-1)
            )
        for name, score in SCORES.items():
            assert history[-1][f"{split}/{name}"] == pytest.approx(
                score(probs, data.annotator_probs[items]).item(), rel=1e-5
            )
    # that one is of the steps, with dropout
    assert history[-1]["train/loss"] != pytest.approx(history[-1]["train/hard_nll"], rel=1e-3)


def test_training_is_the_same_with_and_without_it(fitted, tmp_path: Path):
    plain = fit(tmp_path, "--model.monitor", "val/hard_nll")
    assert plain.run_dir.name == fitted.run_dir.name
    mine, theirs = (
        torch.load(last_checkpoint(cli.run_dir), weights_only=True)["state_dict"]
        for cli in (plain, fitted)
    )
    assert all(torch.equal(value, theirs[name]) for name, value in mine.items())
    kept = [
        {name: value for name, value in row.items() if name in plain_row}
        for row, plain_row in zip(
            read_history(fitted.run_dir), read_history(plain.run_dir), strict=True
        )
    ]
    assert kept == read_history(plain.run_dir)
    main(
        [
            "test",
            *OPTIONS,
            "--model.monitor",
            "val/hard_nll",
            "--trainer.callbacks+=EpochScores",
            "--trainer.default_root_dir",
            str(tmp_path),
        ]
    )
    assert "no scores on train and test items" in read_results(plain.run_dir)["notes"][0]


def test_the_best_checkpoint_is_chosen_by_the_monitored_loss(fitted, tmp_path: Path):
    other = fit(tmp_path)
    assert other.run_dir.name != fitted.run_dir.name
    best = []
    for cli, column in ((fitted, "val/hard_nll"), (other, "val/soft_nll")):
        history = read_history(cli.run_dir)
        losses = [row["val/loss"] for row in history]
        assert losses == [row[column] for row in history]
        saved = torch.load(best_checkpoint(cli.run_dir), weights_only=True)
        assert saved["epoch"] == losses.index(min(losses))
        best.append(saved["epoch"])
        monitor = ["--model.monitor", column, "--trainer.default_root_dir", str(cli.run_dir.parent)]
        main(["test", *OPTIONS, *monitor])
        assert read_results(cli.run_dir)["metrics"]["val_loss"] == min(losses)
        main(["test", *OPTIONS, *monitor, "--ckpt_path", str(last_checkpoint(cli.run_dir))])
        assert read_preview(cli.run_dir)["metrics"]["val_loss"] == losses[-1] != min(losses)
    assert best[0] != best[1]  # or this test would not see which loss is followed


def test_items_of_both_validation_and_test_are_seen_once(
    small_cifar: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen = []
    predict = AnnotatorClassifier.predict
    monkeypatch.setattr(
        AnnotatorClassifier,
        "predict",
        lambda self, batch: (seen.append(len(batch.inputs)), predict(self, batch))[1],
    )
    options = [
        "--config",
        str(ROOT / "configs/cifar10h.yaml"),
        "--data.root",
        str(small_cifar),
        "--model.network",
        "SimpleFFN",
    ]
    options += [
        "--trainer.max_epochs",
        "2",
        "--trainer.accelerator",
        "cpu",
        "--trainer.enable_progress_bar",
        "false",
    ]
    options += [
        "--trainer.num_sanity_val_steps",
        "0",
        "--trainer.devices",
        "1",
        "--trainer.callbacks+=EpochScores",
    ]
    cli = main(["fit", *options, "--trainer.default_root_dir", str(tmp_path)])
    # training and held-out items, in each of two epochs
    assert sum(seen) == 2 * len(cli.datamodule.annotator_probs)
    for row in read_history(cli.run_dir):
        assert all(
            row[f"test/{name}"] == row[f"val/{name}"] != row[f"train/{name}"]
            for name in ("soft_nll", "kl")
        )


@pytest.mark.parametrize("splits", [[], ["val"], ["train", "train"]])
def test_splits_that_make_no_sense_are_refused(splits: list):
    with pytest.raises(InputError, match="EpochScores: splits is"):
        EpochScores(splits)
