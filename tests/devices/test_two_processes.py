"""Two processes train and judge as one does, with numbers of items that do not divide: to rounding, in double precision, where rounding is tiny."""

import numpy as np
import pytest
import torch

from cli import main
from tests.devices.both import OPTIONS, Trained, cli, largest_difference, read_run, start, write_callbacks

MIXUP = '{"class_path": "Mixup", "init_args": {"base": {"class_path": "StochasticLabelSampling"}}}'  # random labels, and items that meet in pairs


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trained, Trained]:
    """A run by one process and by two, which Lightning starts."""
    folder = tmp_path_factory.mktemp("devices")
    options = [*OPTIONS, "--config", str(write_callbacks(folder, probes=True)), "--data.delivery", MIXUP, "--trainer.precision", "64-true"]
    ddp = ["--trainer.devices", "2", "--trainer.strategy", "ddp", "--trainer.default_root_dir", str(folder / "two")]
    for command in ("fit", "test"):
        main([command, *options, "--trainer.default_root_dir", str(folder / "one")])
        start(*cli(command, *options, *ddp))
    return read_run(folder / "one"), read_run(folder / "two")


def test_the_targets_of_an_item_are_the_same_in_one_process_and_in_two(both: tuple[Trained, Trained]):
    one, two = both
    assert [rank["ranks"] for rank in two.ranks] == [2, 2]
    shares = [rank["steps"] for rank in two.ranks]
    for whole, first, second in zip(one.ranks[0]["steps"], *shares, strict=True):
        assert whole[:2] == first[:2] == second[:2]  # epoch and step
        for part in (2, 3):  # items and their targets
            assert torch.equal(whole[part][0::2], first[part])
            assert torch.equal(whole[part][1::2], second[part])
    assert any(len(step[2]) == 0 for step in shares[1]), "no share was empty, so this case was not tried"


def test_each_item_comes_once_per_epoch_over_both_processes(both: tuple[Trained, Trained]):
    _, two = both
    steps = [step for rank in two.ranks for step in rank["steps"]]
    for epoch in range(2):
        items = torch.cat([step[2] for step in steps if step[0] == epoch])
        assert len(items) == len(items.unique()) == 97


def test_gradients_and_weights_are_those_of_one_process(both: tuple[Trained, Trained]):
    one, two = both
    assert len(one.ranks[0]["gradients"]) == 2 * 13
    for rank in two.ranks:
        for alone, together in zip(one.ranks[0]["gradients"], rank["gradients"], strict=True):
            assert largest_difference(alone, together) < 1e-12
        assert largest_difference(one.ranks[0]["weights"], rank["weights"]) < 1e-10
    first = one.ranks[0]["gradients"][0]
    assert max(gradient.abs().max().item() for gradient in first.values()) > 1e-3
    assert next(iter(first.values())).dtype == torch.float64


def test_every_metric_is_that_of_one_process(both: tuple[Trained, Trained]):
    one, two = (run.results for run in both)
    assert two["test_items"] == 61
    assert two["metrics"] == pytest.approx(one["metrics"], rel=1e-6, abs=1e-6)
    assert {"hessian_max", "hessian_trace_high", "gradient_variance_mc", "late_js_high", "cartography_confidence_hlv", "kl_hlv"} < set(
        two["metrics"]
    )
    assert {"smooth_ece", "entropy_spearman", "noise_auroc_odin", "noise_auroc_knn"} < set(two["metrics"])
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
