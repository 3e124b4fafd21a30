"""A figure never costs a result: what can be drawn is, after the numbers; what cannot is a note."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from callbacks import uncertainty_figures
from callbacks.figures.drawing import draw_pictures
from callbacks.figures.figure_text import as_typed
from callbacks.results import read_results
from callbacks.uncertainty_figures import draw_entropies, draw_entropy_curve, draw_reliability
from cli import main
from experiment.configuration import resolve
from experiment.identity import run_name
from metrics import functional
from studies.launch.pack_job import run_pack
from studies.plan.study import Run
from tests.callbacks.test_results import read_strictly
from tests.quiet import QUIET

ROOT = Path(__file__).parents[3]
ODD = ["--trainer.callbacks+", "tests.callbacks.odd_pictures.OddPictures"]
ALIKE = [  # weights that decay to nothing, so that all predictions are alike
    "--config", str(ROOT / "configs/digits.yaml"), "--trainer.max_epochs", "1",
    "--model.optimizer", "torch.optim.AdamW", "--model.optimizer.init_args.weight_decay", "1000",
]  # fmt: skip
NOTES = [
    "OddPictures: it was here.",
    "figures/nothing.png is not drawn: after ['fingerprint.json', 'history.json', "
    "'odd_table.json', 'results.json', 'training.json'] nothing was left (ZeroDivisionError).",
]


def check_notes(notes: list[str]) -> None:
    assert notes[:2] == NOTES
    assert notes[2].startswith("figures/formula.png is not drawn: ")
    assert notes[2].endswith("(ValueError).")
    assert len(notes) == 3


def cannot_draw(*args) -> None:
    raise RuntimeError("out of ink")


def test_a_run_whose_confidences_are_all_alike_has_its_results_figures_and_notes(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    options = [*ALIKE, *ODD, *QUIET, "--trainer.default_root_dir", str(tmp_path)]
    with monkeypatch.context() as fitting:
        fitting.setattr(uncertainty_figures, "draw_entropies", cannot_draw)
        run = main(["fit", *options]).run_dir
    assert (
        "note: figures/val_entropy.png is not drawn: out of ink (RuntimeError).\n"
        in capsys.readouterr().out
    )
    assert [path.name for path in (run / "figures").iterdir()] == ["val_reliability.png"]
    main(["test", *options])
    results = read_results(run)
    assert results
    assert results["metrics"]["odd"] == 42
    assert results["metrics"]["soft_nll"] == pytest.approx(np.log(10), abs=0.01)
    check_notes(results["notes"])
    assert f"note: {NOTES[1]}" in capsys.readouterr().out
    assert {path.name for path in (run / "figures").iterdir()} >= {
        "test_reliability.png",
        "test_entropy.png",
        "empty.png",
    }
    assert not {"nothing.png", "formula.png"} & {path.name for path in (run / "figures").iterdir()}
    images = set(EventAccumulator(str(run)).Reload().Tags()["images"])
    assert images == {"val/reliability", "test/reliability", "test/entropy", "test/empty"}


def test_a_member_of_a_pack_has_its_results_and_notes_too(tmp_path: Path):
    config = resolve([*ALIKE, *ODD])
    run = Run(run_name(config), config, {})
    assert (
        run_pack([run], tmp_path, tmp_path / "state.pt", predict=False, progress=lambda share: None)
        == {}
    )
    results = read_results(run.folder(tmp_path))
    assert results
    assert results["metrics"]["odd"] == 42
    check_notes(results["notes"])
    assert (run.folder(tmp_path) / "figures" / "empty.png").exists()


def test_constant_embeddings_a_thousand_classes_and_few_items_have_results(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    (tmp_path / "votes.csv").write_text(
        "item,label\n" + "".join(f"{item},{item % 7}\n" for item in range(30))
    )
    np.save(tmp_path / "constant.npy", np.ones((30, 4), np.float32))
    options = [
        "--data",
        "OwnVotes",
        "--data.root",
        str(tmp_path),
        "--data.votes",
        "votes.csv",
        "--data.item",
        "item",
        "--data.label",
        "label",
    ]
    options += [
        "--data.embeddings",
        "constant.npy",
        "--data.classes",
        json.dumps([str(k) for k in range(1000)]),
    ]
    options += [
        "--model.network",
        "MLPHead",
        "--trainer.max_epochs",
        "1",
        *QUIET,
        "--trainer.default_root_dir",
        str(tmp_path / "runs"),
    ]
    run = main(["fit", *options]).run_dir
    main(["test", *options])
    results = read_results(run)
    assert results
    same = "is not defined, because one of the two entropies is the same for all items."
    *undefined, worth = results["notes"]
    assert undefined[-2:] == [f"entropy_pearson {same}", f"entropy_spearman {same}"]
    assert [note.split()[0] for note in undefined[:-2]] == ["disagreement_auroc"]
    assert worth.startswith("votes are too few to tell the ceiling from the floor")
    assert (
        read_strictly(run / "results.json")["metrics"].items()
        >= {"entropy_pearson": None, "entropy_spearman": None}.items()
    )
    assert re.search(r"entropy_spearman +│ +not defined", printed := capsys.readouterr().out)
    assert f"note: entropy_spearman {same}\n" in printed
    assert (run / "figures" / "test_reliability.png").exists()


def test_a_picture_of_an_earlier_test_does_not_stay_where_there_is_none(tmp_path: Path):
    assert draw_pictures({"one": Figure(), "two": Figure}, tmp_path) == []
    long = "n" * 300
    notes = draw_pictures(
        {"one": lambda: Figure(figsize=(0, -1)), "two": Figure, long: Figure}, tmp_path
    )
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["two.png"]
    assert notes[0].startswith("figures/one.png is not drawn: ")
    assert "File name too long" in notes[1]


PEOPLE = torch.from_numpy(np.random.default_rng(0).dirichlet(np.ones(4), 50))
FLAT = torch.tensor([[0.31, 0.25, 0.24, 0.2]], dtype=torch.float64).expand(50, 4)


@pytest.mark.parametrize(
    "probs", [FLAT, PEOPLE[:1], PEOPLE[:2]], ids=["alike", "one item", "two items"]
)
def test_what_has_no_curve_is_drawn_as_a_point(probs: torch.Tensor):
    annotator_probs = PEOPLE[: len(probs)]
    figure = Figure()
    left, right = figure.subplots(1, 2)
    draw_reliability(left, probs, annotator_probs, label="$a$ of us")
    draw_entropies(right, probs, annotator_probs)
    draw_entropy_curve(right, probs, annotator_probs, "black", "model")
    figure.canvas.draw()
    confidence, outcome = functional.confidence_and_outcome(probs, annotator_probs)
    if len(set(confidence.tolist())) == 1:
        assert left.lines[1].get_xydata().tolist() == [
            [pytest.approx(confidence[0].item()), pytest.approx(outcome.double().mean().item())]
        ]
    assert left.get_legend_handles_labels()[1][0].startswith(r"\$a\$ of us, smooth ECE ")


@pytest.mark.parametrize(
    "words", [r"$\frac{$", r"$x^2$", r"costs \$5", "50 % of $", "a_b^c \\ {", "\\$", "$$"]
)
def test_words_are_shown_as_they_were_typed(words: str):
    title = Figure().suptitle(as_typed(words))
    # what matplotlib makes of it before it draws
    shown, formula = title._preprocess_math(title.get_text())
    assert (shown, formula) == (words, False)
    title.get_window_extent()


def test_words_stay_readable():
    assert as_typed("a\x1b[31m\nb\u200bc") == "a [31m b c"
    assert as_typed("x" * 1000 + "end", longest=20) == "xxxxxxxxxx…xxxxxxend"
    lines = as_typed("$" * 50, 100, width=7).split("\n")
    assert lines == [r"\$" * 7] * 7 + [r"\$"]
    assert as_typed("日本 no") == "□□ no"
