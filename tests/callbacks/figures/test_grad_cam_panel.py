"""The panel of Grad-CAM maps as a user gets it: which items, which class, what is said of them, and
mistakes told in one sentence.
"""

import json
import os
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import image
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from callbacks import grad_cam
from callbacks.grad_cam import GradCAM, grad_cam_maps, panel_rows
from cli import main
from core.errors import InputError
from datamodules import CIFAR10H, Digits
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import LeNet, ResNet18, SimpleFFN
from tests import processes

ROOT = Path(__file__).parents[3]
QUICK = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--model.network", "LeNet",
    "--trainer.max_epochs", "1",
    "--trainer.limit_train_batches", "0.2",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip
PROBE = ["--trainer.callbacks+=GradCAM", "--trainer.callbacks.items=5"]


@cache
def digits_data() -> Digits:
    data = Digits(batch_size=64)
    data.setup()
    return data


def digits(network=LeNet) -> tuple[AnnotatorClassifier, Digits]:
    """Untrained, as the tests do not mind."""
    data = digits_data()
    return AnnotatorClassifier(data.input_shape, data.num_classes, network), data


def titles(figure: Figure) -> list[str]:
    return [text for axes in figure.axes if (text := axes.get_title(loc="left"))]


def test_the_panel_shows_the_least_and_the_most_agreed_on_test_items():
    classifier, data = digits()
    rows = panel_rows(data, 6)
    votes, test = data.corpus.votes, data.corpus.splits["test"]
    assert set(rows) <= set(test)
    assert len(set(rows)) == 6
    assert sorted(votes.entropy[rows[:3]]) == sorted(np.sort(votes.entropy[test])[-3:])
    assert votes.unanimous[rows[3:]].all()
    figure = GradCAM(items=6).run(classifier, data).figures["grad_cam"]()
    with torch.no_grad():
        probs = classifier.eval()(next(iter(data.loader(rows, training=False)))[0]).softmax(-1)
    for title, row, prob in zip(titles(figure), rows, probs, strict=True):
        counts = votes.counts[row]
        annotator_probs = (
            f"annotators: class {counts.argmax()} ({100 * counts.max() / counts.sum():.0f} %)"
        )
        assert (
            title == f"item {row}\n{annotator_probs}\nmodel: class {prob.argmax()} "
            f"({100 * prob.max():.0f} %)"
        )


def test_the_panel_explains_the_class_that_was_asked_for(monkeypatch: pytest.MonkeyPatch):
    classifier, data = digits()
    asked = []

    def record(network, layer, inputs, classes):
        asked.append(classes)
        return grad_cam_maps(network, layer, inputs, classes)

    monkeypatch.setattr(grad_cam, "grad_cam_maps", record)
    figures = [
        GradCAM(items=12, explain=explain).run(classifier, data).figures["grad_cam"]()
        for explain in ("majority", "predicted")
    ]
    rows = panel_rows(data, 12)
    assert asked[0].tolist() == data.corpus.votes.majority[rows].tolist()
    with torch.no_grad():
        assert torch.equal(
            asked[1], classifier.eval()(next(iter(data.loader(rows, training=False)))[0]).argmax(-1)
        )
    assert not torch.equal(*asked)
    assert ["majority" in figure.get_suptitle() for figure in figures] == [True, False]


def test_images_are_drawn_in_their_own_colours_beside_their_maps(small_cifar: Path):
    data = CIFAR10H(root=str(small_cifar))
    data.setup()
    classifier = AnnotatorClassifier(
        data.input_shape, data.num_classes, lambda shape, classes: ResNet18(shape, classes, width=4)
    )
    figure = GradCAM(items=4).run(classifier, data).figures["grad_cam"]()
    for axes, row in zip(figure.axes, panel_rows(data, 4)[:2], strict=False):
        drawn = axes.get_images()[0].get_array()
        image = data.corpus.inputs[row].permute(1, 2, 0).numpy() / 255
        np.testing.assert_allclose(
            drawn[:, :32], (image - image.min()) / (image.max() - image.min()), atol=1e-5
        )
        assert drawn.shape == (32, 32 + 2 + 32, 3)


def test_maps_of_a_class_that_nothing_speaks_for_are_counted_in_a_note():
    classifier, data = digits()
    with torch.no_grad():
        classifier.network.head.weight.zero_()
    assert GradCAM(items=4).run(classifier, data).notes == [
        "GradCAM: of the 4 maps shown, 4 are zero everywhere: nothing at that layer speaks for "
        "the class."
    ]


def test_fewer_items_than_ranks_are_shown_once_each(monkeypatch: pytest.MonkeyPatch):
    classifier, data = digits()
    rows = panel_rows(data, 3)
    alone = GradCAM(items=3)._look(
        classifier.network.eval(), classifier.network.spatial, data, rows
    )
    monkeypatch.setattr(grad_cam, "rank_and_ranks", lambda: (0, 8))
    together = GradCAM(items=3)._look(
        classifier.network.eval(), classifier.network.spatial, data, rows
    )
    assert torch.equal(alone[0], next(iter(data.loader(rows, training=False)))[0]), (
        "the items are not in their order"
    )
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(
    ("make", "probe", "message"),
    [
        (
            SimpleFFN,
            lambda: GradCAM(),
            "Grad-CAM knows no layer of SimpleFFN that gives maps; name one with the option layer",
        ),
        (
            SimpleFFN,
            lambda: GradCAM(layer="body.1"),
            "layer is SimpleFFN.body.1, whose output is no map",
        ),
        (
            LeNet,
            lambda: GradCAM(layer="conv7"),
            "layer is conv7, which LeNet does not have; its modules are convolutions",
        ),
        (LeNet, lambda: GradCAM(items=1), "GradCAM's items is 1"),
        (LeNet, lambda: GradCAM(explain="all"), "GradCAM's explain is all"),
    ],
)
def test_bad_options_are_named(make, probe, message: str):
    with pytest.raises(InputError, match=message):
        probe().run(*digits(make))


def test_a_tested_run_gets_its_panel_also_from_two_processes(tmp_path: Path):
    options = [*QUICK, "--trainer.default_root_dir", str(tmp_path)]
    run_dir = main(["fit", *options]).run_dir
    main(["test", *options])
    plain = json.loads((run_dir / "results.json").read_text())
    main(["test", *options, *PROBE])
    assert (
        json.loads((run_dir / "results.json").read_text()) | {"notes": [], "probes": []} == plain
    ), "a panel changed what was measured"
    assert "test/grad_cam" in EventAccumulator(str(run_dir)).Reload().Tags()["images"]
    panel = run_dir / "figures" / "grad_cam.png"
    alone = image.imread(panel)
    panel.unlink()
    ddp = ["--trainer.devices", "2", "--trainer.strategy", "ddp"]
    forked = {**os.environ, processes.FORKED_RANKS: "1"}
    done = processes.run(["test", *options, *PROBE, *ddp], env=forked)
    assert done.returncode == 0, done.stderr[-2000:]
    # shares are convolved in other batches, so last bits may differ
    np.testing.assert_allclose(image.imread(panel), alone, atol=2 / 255)
