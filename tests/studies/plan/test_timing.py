"""What a study would cost, from some of its own steps."""

import math
from pathlib import Path

import pytest
import yaml
from torch import nn

from cli import main
from datamodules import Digits
from lightning_modules.threads import forward_flops
from studies.plan.cost import training_batches
from studies.plan.study import Study
from studies.plan.timing import calibrate
from tests import processes

ROOT = Path(__file__).parents[3]


def study(folder: Path, **content) -> Path:
    path = folder / "study.yaml"
    grids = {"main": {"model.network": ["SimpleFFN", "LeNet"], "seed_everything": [0, 1, 2]}}
    basis = {
        "name": "small",
        "configs": [str(ROOT / "configs/digits.yaml")],
        "grids": grids,
        "predict": True,
    }
    path.write_text(yaml.safe_dump({**basis, **content}, sort_keys=False))
    return path


def test_one_measurement_for_each_shape_of_run(tmp_path: Path):
    result = calibrate(Study.load(study(tmp_path)).runs(), predict=True, steps=2)
    assert [(c.network, c.runs) for c in result] == [("SimpleFFN", 3), ("LeNet", 3)]
    first, data = result[0], Digits()
    data.setup()
    train, val, test = (len(data.rows(split)) for split in ("train", "val", "test"))
    assert first.steps == 3 * 30 * math.ceil(train / 64)
    assert first.evaluated == 3 * (30 * val + test + len(data.annotator_probs))
    assert first.step > 0
    assert first.product == 0  # no run looks at its Hessian
    assert first.hours == pytest.approx(
        (first.steps * first.step + first.evaluated * first.evaluation) / 3600
    )
    assert result[1].flops > first.flops


def test_runs_of_one_shape_count_by_their_own_lengths(tmp_path: Path):
    grids = {
        "main": {
            "trainer.max_epochs": [2, 200],
            "data.delivery": ["SoftLabels", "Multipass"],
            "model.optimizer.init_args.lr": [0.1, 0.2],
        }
    }
    (result,) = calibrate(Study.load(study(tmp_path, grids=grids)).runs(), predict=False, steps=1)
    data = Digits()
    data.setup()
    assert result.runs == 8
    assert result.steps == 4 * 202 * math.ceil(len(data.rows("train")) / 64)


def test_hessians_count_where_a_run_has_the_probe(tmp_path: Path):
    for most, items in ((None, 540), (100, 100)):
        options = {
            "trainer.callbacks": [
                {"class_path": "HessianSpectrum", "init_args": {"most_items": most}}
            ]
        }
        (first, _) = calibrate(
            Study.load(study(tmp_path, options=options)).runs(), predict=False, steps=1
        )
        assert first.product > 0
        # half of 60 products over the test items, or a sample of them
        assert first.differentiated == 3 * 60 * items // 2


def test_arithmetic_of_a_layer_is_that_of_its_matrix():
    assert forward_flops(nn.Linear(7, 5), (7,)) == 2 * 7 * 5


@pytest.mark.parametrize(("limit", "batches"), [(None, 4), (1.0, 4), (0.5, 2), (3, 3), (9, 4)])
def test_steps_of_an_epoch_follow_the_trainers_limit(limit, batches: int):
    config = {"data": {"init_args": {"batch_size": 3}}, "trainer": {"limit_train_batches": limit}}
    assert training_batches(config, 10) == batches


def test_plan_says_what_was_measured(tmp_path: Path, capsys: pytest.CaptureFixture):
    main(["study", "plan", str(study(tmp_path)), "--calibrate", "--runs", str(tmp_path / "runs")])
    message = capsys.readouterr().out
    assert "SimpleFFN on this CPU" in message
    assert "3 runs one after the other" in message
    assert "by arithmetic, not measured" in message


def test_calibrating_a_run_is_a_mistake(tmp_path: Path):
    ended = processes.run(
        ["study", "run", study(tmp_path), "--calibrate", "--runs", tmp_path / "runs"]
    )
    assert ended.returncode != 0
    assert ended.stderr.strip().splitlines()[-1] == "error: --calibrate is for plan, not for run."
