"""Two processes train and judge as one does, with numbers of items that do not divide: to rounding,
in double precision, where rounding is tiny.
"""

import numpy as np
import pytest

from cli import main
from tests.devices.both import (
    OPTIONS,
    PROBES,
    Trained,
    check_gradients,
    check_items,
    check_targets,
    cli,
    read_run,
    start,
    write_callbacks,
)

# random labels, and items that meet in pairs
MIXUP = '{"class_path": "Mixup", "init_args": {"base": {"class_path": "StochasticLabelSampling"}}}'


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Trained]:
    """A run by one process and by two, which Lightning starts."""
    folder = tmp_path_factory.mktemp("devices")
    options = [
        *OPTIONS,
        "--config",
        str(write_callbacks(folder, [*PROBES, "OODScores"])),
        "--data.delivery",
        MIXUP,
        "--trainer.precision",
        "64-true",
    ]
    ddp = [
        "--trainer.devices",
        "2",
        "--trainer.strategy",
        "ddp",
        "--trainer.default_root_dir",
        str(folder / "two"),
    ]
    for command in ("fit", "test"):
        main([command, *options, "--trainer.default_root_dir", str(folder / "one")])
        start(*cli(command, *options, *ddp), forked_ranks=True)
    return read_run(folder / "one"), read_run(folder / "two")


def test_the_targets_of_an_item_are_the_same_in_one_process_and_in_two(
    both: tuple[Trained, Trained],
):
    check_targets(*both)


def test_each_item_comes_once_per_epoch_over_both_processes(both: tuple[Trained, Trained]):
    check_items(both[1])


def test_gradients_and_weights_are_those_of_one_process(both: tuple[Trained, Trained]):
    check_gradients(*both)


def test_every_metric_is_that_of_one_process(both: tuple[Trained, Trained]):
    one, two = (run.results for run in both)
    assert two["test_items"] == 61
    assert two["metrics"] == pytest.approx(one["metrics"], rel=1e-6, abs=1e-6)
    assert {
        "hessian_max",
        "hessian_trace_high",
        "gradient_variance_mc",
        "late_js_high",
        "cartography_confidence_hlv",
        "kl_hlv",
    } < set(two["metrics"])
    assert {"smooth_ece", "entropy_spearman", "noise_auroc_odin", "noise_auroc_knn"} < set(
        two["metrics"]
    )
    assert any("absent" in note for note in two["notes"])
    assert two["notes"] == one["notes"]


def test_every_epoch_is_that_of_one_process(both: tuple[Trained, Trained]):
    one, two = both
    for epoch, same_epoch in zip(one.history, two.history, strict=True):
        assert {"train/loss", "train/kl", "val/loss"} < set(epoch)
        assert same_epoch == pytest.approx(epoch, rel=1e-6, abs=1e-6)
    records = [np.fromfile(run.folder / "cartography_train.f32", "<f4") for run in both]
    np.testing.assert_allclose(records[1], records[0], rtol=1e-6, atol=1e-6)
    assert len(records[0]) == 2 * (2 + 3 * 97)
