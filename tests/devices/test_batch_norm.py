"""BatchNorm over two processes without `sync_batchnorm`, which CPUs lack: a share of one item is
normalised by the running statistics, and a batch of one item trains as with one process.
"""

from pathlib import Path

import pytest

from cli import main
from tests.devices import both
from tests.devices.both import OPTIONS, Trained, cli, read_run, start, write_callbacks

pytestmark = pytest.mark.long  # two processes start for each

HEAD = ["--model.network", "MLPHead", "--model.network.norm", "batch"]
WHOLE = ["--model.network.dropout", "0", "--trainer.precision", "64-true"]
TWO = ["--trainer.devices", "2", "--trainer.strategy", "ddp"]


def trained_by_both(folder: Path, data: str) -> tuple[Trained, Trained]:
    options = [*OPTIONS, *HEAD, *WHOLE, "--config", str(write_callbacks(folder)), "--data", data]
    main(["fit", *options, "--trainer.default_root_dir", str(folder / "one")])
    start(*cli("fit", *options, *TWO, "--trainer.default_root_dir", folder / "two"))
    return read_run(folder / "one"), read_run(folder / "two")


def test_batches_of_one_item_train_as_with_one_process(tmp_path: Path):
    one, two = trained_by_both(tmp_path, "tests.devices.odd_digits.OneDigit")
    assert [len(step[2]) for rank in two.ranks for step in rank["steps"]] == [1, 1, 0, 0]
    for rank in two.ranks:
        for alone, together in zip(one.ranks[0]["gradients"], rank["gradients"], strict=True):
            assert both.largest_difference(alone, together) < 1e-12
            assert alone["network.body.2.weight"].any()  # BatchNorm's own
    weights = [run.ranks[0]["weights"] for run in (one, two)]
    assert both.largest_difference(*weights) < 1e-10
    assert weights[0]["network.body.2.num_batches_tracked"] == 0


def test_a_last_batch_of_one_item_leaves_the_statistics_alone(tmp_path: Path):
    one, two = trained_by_both(tmp_path, "tests.devices.odd_digits.OddDigits")
    tracked = [
        run.ranks[0]["weights"]["network.body.2.num_batches_tracked"].item() for run in (one, two)
    ]
    assert tracked == [24, 24]  # 12 batches of 8 in each of two epochs, and one item
    assert two.history[-1]["val/loss"] == pytest.approx(one.history[-1]["val/loss"], rel=0.2)
