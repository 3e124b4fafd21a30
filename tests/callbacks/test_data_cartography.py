"""DataCartography: each epoch as an independent look sees it, the same alone, in a pack and after
an interruption; what is absent is told.
"""

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from lightning import Callback, Trainer
from scipy.stats import spearmanr

from callbacks import DataCartography, data_cartography
from callbacks.cartography.figure import draw_data_map
from callbacks.cartography.records import read_epochs, read_run, record_path, write_epoch
from callbacks.results import read_results
from cli import main
from core.errors import InputError
from core.randomness import generator
from datamodules import Digits
from experiment.configuration import resolve
from experiment.identity import run_name
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from metrics.cartography import data_map, map_across_runs
from studies.launch.pack_job import run_pack
from studies.plan.study import Run

ROOT = Path(__file__).parents[2]
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
    "--data.batch_size", "200",
    "--trainer.callbacks+=DataCartography",
    "--trainer.callbacks.last", "2",
]  # fmt: skip
ITEMS = 2516  # that train


def options(folder: Path, epochs: int = 4) -> list[str]:
    return [
        *OPTIONS,
        "--trainer.max_epochs",
        str(epochs),
        "--trainer.default_root_dir",
        str(folder),
    ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's directory after fit and test on the command line."""
    folder = tmp_path_factory.mktemp("runs")
    run_dir = main(["fit", *options(folder)]).run_dir
    main(["test", *options(folder)])
    return run_dir


def record(folder: Path) -> np.ndarray:
    return read_epochs(record_path(folder, "train"), ITEMS)


def results_of(folder: Path) -> dict[str, Any]:
    results = read_results(folder)
    assert results
    return results


# As a user sees it


def test_results_table_and_picture_are_those_of_the_record(finished: Path):
    metrics, table = (
        results_of(finished)["metrics"],
        pq.read_table(finished / "cartography_train.parquet").to_pydict(),
    )
    result = data_map([record(finished)], last=2)
    assert table["confidence"] == result.confidence.tolist()
    assert table["forgetting_events"] == result.forgetting_events.tolist()
    data = Digits(seed=0)
    data.setup()
    assert data.corpus
    rows = np.sort(data.rows("train"))
    assert table["index"] == rows.tolist()
    assert table["human_uncertainty"] == data.corpus.votes.entropy[rows].tolist()
    unanimous = (data.corpus.votes.probs[rows] == 1).any(1)
    assert table["unanimous"] == unanimous.tolist()
    for name, mask in (("", np.full(ITEMS, True)), ("_nohlv", unanimous), ("_hlv", ~unanimous)):
        assert metrics[f"cartography_confidence{name}"] == pytest.approx(
            result.confidence[mask].mean(), rel=1e-9
        )
        assert metrics[f"cartography_variability{name}"] == pytest.approx(
            result.variability[mask].mean(), rel=1e-9
        )
    expected = spearmanr(result.expected_variability, data.corpus.votes.entropy[rows]).statistic
    assert metrics["cartography_expected_variability_spearman"] == pytest.approx(expected, abs=1e-9)
    assert metrics["cartography_confidence_spearman"] < -0.3  # what people doubt is learned later
    assert metrics["cartography_correctness"] == pytest.approx(result.correctness.mean(), rel=1e-9)
    assert (finished / "figures/cartography_train.png").is_file()


def test_seeds_are_mapped_together_from_their_folders(finished: Path):
    items, epochs = read_run(finished)
    common, both = map_across_runs([items, items[1:]], [epochs, epochs[:, :, 1:]], last=2)
    assert common.tolist() == items[1:].tolist()
    np.testing.assert_allclose(both.variability, data_map([epochs], 2).variability[1:], atol=1e-12)


class Predictions(Callback):
    """What the model says about training items at the end of each epoch, asked for
    independently.
    """

    def __init__(self):
        self.epochs: list[torch.Tensor] = []

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        data: Any = trainer.datamodule  # pyright: ignore[reportAttributeAccessIssue]
        with torch.no_grad():
            rows = torch.from_numpy(np.sort(data.rows("train")))
            self.epochs.append(
                pl_module(data.loader(rows.numpy(), training=False).prepare(rows, 0))
                .double()
                .softmax(-1)
            )


def test_each_epoch_is_kept_as_an_independent_look_sees_it(tmp_path: Path):
    predictions, data = Predictions(), Digits(batch_size=200)
    quiet: dict[str, Any] = dict.fromkeys(
        ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False
    )
    both = [DataCartography(), predictions]
    trainer = Trainer(
        max_epochs=2,
        limit_train_batches=5,
        accelerator="cpu",
        default_root_dir=tmp_path,
        callbacks=both,
        **quiet,
    )
    trainer.fit(AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN), datamodule=data)
    annotator_probs = data.annotator_probs[np.sort(data.rows("train"))]
    assert len(record(tmp_path)) == 2
    for kept, probs in zip(record(tmp_path), predictions.epochs, strict=True):
        np.testing.assert_allclose(
            kept[0], probs[torch.arange(ITEMS), annotator_probs.argmax(1)], atol=1e-6
        )
        np.testing.assert_allclose(
            kept[1], torch.einsum("nk,nk->n", probs, annotator_probs.double()), atol=1e-6
        )
        assert np.array_equal(kept[2] == 1, probs.argmax(1) == annotator_probs.argmax(1))


# Interrupted, packed


def test_a_run_killed_in_mid_record_ends_with_the_same_file(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def killed(path: Path, epoch: int, values: np.ndarray) -> None:
        write_epoch(path, epoch, values)
        if epoch == 2:
            with open(path, "r+b") as stream:
                stream.truncate(path.stat().st_size - 1000)
            raise RuntimeError("killed")

    with monkeypatch.context() as interruption:
        interruption.setattr(data_cartography, "write_epoch", killed)
        with pytest.raises(RuntimeError, match="killed"):
            main(["fit", *options(tmp_path)])
    path = record_path(tmp_path / finished.name, "train")
    assert len(record(path.parent)) == 2
    main(["fit", *options(tmp_path)])
    assert path.read_bytes() == record_path(finished, "train").read_bytes()


def test_a_packed_member_and_its_shorter_twin_get_what_solo_runs_get(
    finished: Path, tmp_path: Path
):
    configs = [resolve(options(tmp_path, epochs)) for epochs in (3, 4)]
    configs.append(resolve(["--seed_everything", "1", *options(tmp_path)]))
    configs[2]["trainer"]["callbacks"] = None
    runs = [Run(run_name(config), config, {}) for config in configs]
    assert runs[1].name == finished.name
    assert (
        run_pack(runs, tmp_path, tmp_path / "state.pt", predict=False, progress=lambda share: None)
        == {}
    )
    short, long, plain = (run.folder(tmp_path) for run in runs)
    assert len(record(long)) == 4
    np.testing.assert_allclose(record(long)[:, :2], record(finished)[:, :2], atol=1e-4)
    assert np.array_equal(record(short), record(long)[:3])
    alone, packed = (
        {n: v for n, v in results_of(f)["metrics"].items() if n.startswith("cartography")}
        for f in (finished, long)
    )
    assert packed == pytest.approx(alone, abs=2e-3)
    assert len(packed) == 12
    of_short = data_map([record(short)], last=2).variability.mean()
    assert results_of(short)["metrics"]["cartography_variability"] == pytest.approx(
        of_short, rel=1e-12
    )
    assert {path.name for path in long.iterdir()} >= {
        "cartography_train.f32",
        "cartography_train.parquet",
        "figures",
    }
    assert not list(plain.glob("cartography*"))


# What is absent or wrong


def examined(folder: Path | None, **more) -> tuple[dict[str, float], list[str]]:
    data = Digits()
    data.setup()
    result = DataCartography(**more).run(
        AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN), data, folder
    )
    return result.metrics, result.notes


def test_what_was_not_recorded_is_told_instead_of_numbers(finished: Path, tmp_path: Path):
    assert "there is no folder" in examined(None)[1][0]
    assert (
        "there is no cartography_train.f32 of this run's 2516 train items"
        in examined(tmp_path)[1][0]
    )
    assert "there is no cartography_val.f32" in examined(finished, split="val")[1][0]
    assert "holds 4 epoch(s), fewer than the last 5" in examined(finished, last=5)[1][0]
    (tmp_path / "history.json").write_bytes((finished / "history.json").read_bytes())
    write_epoch(record_path(tmp_path, "train"), 0, record(finished)[0])
    # epochs 1 and 2 were trained without it
    write_epoch(record_path(tmp_path, "train"), 3, record(finished)[3])
    metrics, (note,) = examined(tmp_path)
    assert "holds the first 1 epochs of 4" in note
    assert not metrics


def test_a_diverged_epoch_and_a_single_one(finished: Path, tmp_path: Path):
    write_epoch(record_path(tmp_path, "train"), 0, record(finished)[0])
    metrics, notes = examined(tmp_path)
    assert metrics["cartography_variability"] == 0
    assert [note.split()[1] for note in notes] == [
        "cartography_variability_spearman",
        "cartography_expected_variability_spearman",
    ]
    write_epoch(record_path(tmp_path, "train"), 1, np.full((3, ITEMS), np.nan))
    assert examined(tmp_path) == (
        {},
        [
            "DataCartography: cartography_train.f32 holds predictions that are not finite "
            "numbers, because training diverged."
        ],
    )


def test_the_file_is_plain_and_drops_what_an_earlier_attempt_left(tmp_path: Path):
    path = tmp_path / "record.f32"
    for epoch in (0, 1, 2, 1):
        write_epoch(path, epoch, np.arange(6).reshape(3, 2) + epoch)
    assert struct.unpack("<16f", path.read_bytes()) == (1, 2, *range(6), 2, 2, *range(1, 7))
    # none of a file of other items
    assert [len(read_epochs(path, items)) for items in (1, 2, 3)] == [
        0,
        2,
        0,
    ]


@pytest.mark.parametrize(
    ("more", "message"), [({"split": "all"}, "split is all"), ({"last": 0}, "last is 0")]
)
def test_options_that_make_no_sense_are_refused(more: dict[str, Any], message: str):
    with pytest.raises(InputError, match=f"DataCartography: {message}"):
        DataCartography(**more)


# The picture


@pytest.mark.parametrize("share", [0.5, 0.0, 1.0], ids=["both", "none unanimous", "all unanimous"])
def test_the_picture_shows_every_item_in_its_stratum(share: float):
    rng = generator(0, "test-map")
    values = rng.random((5, 3, 200))
    unanimous = np.arange(200) < share * 200
    result = data_map([values])
    figure = draw_data_map(
        result, np.where(unanimous, 0.0, rng.random(200)), unanimous, "title", "entropy (nats)"
    )
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.get_xlabel().startswith("variability")]
    for axes, mask in zip(panels, (unanimous, ~unanimous), strict=True):
        places = np.asarray(axes.collections[0].get_offsets())
        np.testing.assert_allclose(
            places, np.stack([result.variability[mask], result.confidence[mask]], 1).reshape(-1, 2)
        )
    assert panels[0].get_xlim() == panels[1].get_xlim()


def test_a_record_follows_no_link_and_what_is_not_finite_is_refused(finished: Path, tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("two years of work")
    record_path(tmp_path, "train").symlink_to(tmp_path / "thesis.tex")
    with pytest.raises(
        InputError,
        match=r"cartography_train.f32 is a link, and a run writes to files of its own alone; "
        r"remove the link",
    ):
        write_epoch(record_path(tmp_path, "train"), 0, record(finished)[0])
    assert (tmp_path / "thesis.tex").read_text() == "two years of work"
    record_path(tmp_path, "train").unlink()
    (tmp_path / "cartography_train.parquet").write_bytes(
        (finished / "cartography_train.parquet").read_bytes()
    )
    write_epoch(record_path(tmp_path, "train"), 0, record(finished)[0])
    assert read_run(tmp_path)[1].shape == (1, 3, ITEMS)
    write_epoch(record_path(tmp_path, "train"), 1, np.full((3, ITEMS), np.nan))
    with pytest.raises(
        InputError,
        match=r"cartography_train.f32 holds values that are not finite numbers; train this run "
        r"again",
    ):
        read_run(tmp_path)
