"""Training histories as a figure: means over seeds where runs exist, marks at the mean epochs, and
what is said about them.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.analysis.collect import Record
from studies.figures.history_curves import curve_of
from studies.figures.kinds.history import HistoryFigure, draw_history
from studies.report.section import Section

SPEC = HistoryFigure(
    "h",
    "History",
    metric="val/soft_nll",
    lines="delivery",
    levels={"delivery": ["a", "b", "c"]},
)
SECTION = Section([], [], labels={"a": "first"})


def run(
    folder: Path, delivery: str, seed: int, scores: list[float], column: str = "val/soft_nll"
) -> Record:
    own = folder / f"{delivery}{seed}"
    own.mkdir()
    rows = [{"epoch": epoch, "lr": 0.1, column: score} for epoch, score in enumerate(scores)]
    (own / "history.json").write_text(json.dumps(rows))
    return Record(own.name, own, {"delivery": delivery, "seed": seed}, {}, {}, {})


def test_means_are_over_the_runs_that_reached_an_epoch(tmp_path):
    records = [
        run(tmp_path, "a", 0, [2.0, 1.0]),
        run(tmp_path, "a", 1, [4.0, 3.0, 2.0, 1.5]),
        run(tmp_path, "b", 0, [1.0, float("nan"), 0.5]),
    ]
    figure, message = draw_history(SPEC, records, SECTION)
    assert figure is not None
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert np.asarray(lines["first"].get_xdata()).tolist() == [0, 1, 2, 3]
    assert np.asarray(lines["first"].get_ydata()).tolist() == [3.0, 2.0, 2.0, 1.5]
    assert np.asarray(lines["b"].get_xdata()).tolist() == [0, 2]
    text = " ".join(message)
    assert "mean over 1 to 2 seeds" in text
    assert "Runs differ in length" in text
    assert "Nothing to draw yet for c." in text


def test_best_epochs_are_marked_on_the_mean_curve(tmp_path):
    records = [
        run(tmp_path, "a", 0, [1.0, 0.5, 0.49, 0.6, 0.7]),
        run(tmp_path, "a", 1, [1.0, 0.8, 0.6, 0.51, 0.5]),
    ]
    figure, message = draw_history(SPEC, records, SECTION)
    assert figure is not None
    marks = {
        line.get_marker(): line
        for line in figure.axes[0].get_lines()
        if line.get_marker() not in ("", "None")
    }
    assert marks["*"].get_xdata() == pytest.approx([3.0])  # of epochs 2 and 4
    assert marks["o"].get_xdata() == pytest.approx([2.0])  # of epochs 1 and 3
    assert marks["*"].get_ydata() == pytest.approx([(0.6 + 0.51) / 2])
    assert "first 3.0 and 2.0" in " ".join(message)


def test_other_columns_have_no_marks_and_their_own_names(tmp_path):
    spec = HistoryFigure("h", metric="val/js_hlv", lines="delivery", levels={"delivery": ["a"]})
    records = [run(tmp_path, "a", seed, [0.1, 0.01, 0.001], "val/js_hlv") for seed in (0, 1)]
    figure, message = draw_history(spec, records, SECTION)
    assert figure is not None
    axes = figure.axes[0]
    assert len(axes.get_lines()) == 1
    assert "not unanimous" in axes.get_ylabel()
    assert "(nats)" in axes.get_ylabel()
    assert axes.get_yscale() == "log"
    assert "Stars" not in " ".join(message)


def test_high_first_epochs_are_cut_off_and_it_is_said(tmp_path):
    scores = [50.0, 0.9, *np.linspace(0.8, 0.5, 20)]
    figure, message = draw_history(SPEC, [run(tmp_path, "a", 0, scores)], SECTION)
    assert figure is not None
    assert figure.axes[0].get_ylim()[1] < 1
    assert "The first epochs go beyond the axis, up to 50." in message


def test_a_column_that_no_run_has_is_not_drawn_and_the_others_are_named(tmp_path):
    figure, message = draw_history(SPEC, [run(tmp_path, "a", 0, [1.0], "val/kl")], SECTION)
    assert figure is None
    assert message == [
        "Not drawn: no finished run's history.json has the column val/soft_nll; they have lr, "
        "val/kl."
    ]


def test_spread_is_the_sample_sd():
    histories = [[{"epoch": 0, "x": value}] for value in (1.0, 2.0, 4.0)]
    epochs, mean, low, high = curve_of(histories, "x")
    assert (epochs.tolist(), mean[0], (high - low)[0] / 2) == (
        [0],
        pytest.approx(7 / 3),
        pytest.approx(np.std([1, 2, 4], ddof=1)),
    )


def test_on_a_logarithmic_axis_bands_are_the_range_of_seeds_and_nothing_is_cut_off(tmp_path):
    spec = HistoryFigure("h", metric="val/js_hlv", lines="delivery", levels={"delivery": ["a"]})
    records = [
        run(tmp_path, "a", seed, [5.0, first, *[0.001] * 20], "val/js_hlv")
        for seed, first in enumerate((1e-4, 1e-4, 1e-1))
    ]
    figure, message = draw_history(spec, records, SECTION)
    assert figure is not None
    (band,) = figure.axes[0].collections
    edges = {tuple(point) for point in band.get_paths()[0].vertices.tolist()}
    assert {(1.0, 1e-4), (1.0, 1e-1)} <= edges  # the mean less one SD would lie below 0
    assert figure.axes[0].get_ylim()[1] > 5
    assert "on logarithmic axes from the least seed to the greatest" in " ".join(message)
    assert "SD" not in " ".join(message)


def test_panels_are_levels_of_another_factor_and_columns_are_rows_of_panels(tmp_path):
    records = []
    for dataset, base in (("x", 1.0), ("y", 10.0)):
        (tmp_path / dataset).mkdir()
        for record in (
            run(tmp_path / dataset, "a", 0, [base, base / 2]),
            run(tmp_path / dataset, "b", 0, [base, base / 4], "train/kl"),
        ):
            records.append(replace(record, factors={**record.factors, "dataset": dataset}))
    spec = replace(
        SPEC,
        metric=["val/soft_nll", "train/kl"],
        panels="dataset",
        levels={"delivery": ["a", "b"], "dataset": ["x", "y"]},
    )
    figure, message = draw_history(
        spec, records, Section([], [], labels={"a": "first", "x": "the x"})
    )
    assert figure is not None
    drawn = [
        [
            (line.get_label(), np.asarray(line.get_ydata()).tolist())
            for line in axes.get_lines()
            if line.get_marker() == ""
        ]
        for axes in figure.axes
    ]
    assert drawn == [
        [("first", [1.0, 0.5])],
        [("first", [10.0, 5.0])],
        [("b", [1.0, 0.25])],
        [("b", [10.0, 2.5])],
    ]
    assert [axes.get_title() for axes in figure.axes] == ["the x", "y"] * 2
    # once for each row
    assert [axes.get_ylabel().split(" ")[0] for axes in figure.axes] == [
        "Validation",
        "",
        "Training",
        "",
    ]
    assert (
        figure.axes[0].get_subplotspec().rowspan.start
        < figure.axes[2].get_subplotspec().rowspan.start
    )  # pyright: ignore
    text = " ".join(message)
    assert "the x, val/soft_nll: Nothing to draw yet for b." in text
    assert "the x, val/soft_nll: first 1.0 and 1.0; y, val/soft_nll: first 1.0 and 1.0." in text
    one_row, _ = draw_history(replace(spec, metric="val/soft_nll"), records, SECTION)
    assert one_row is not None
    assert len(one_row.axes) == 2


def test_several_columns_are_panels_of_their_own(tmp_path):
    record = run(tmp_path, "a", 0, [2.0, 1.0])
    rows = [{"epoch": epoch, "val/loss": 1.0 + epoch, "test/kl": 0.5} for epoch in range(2)]
    (record.folder / "history.json").write_text(json.dumps(rows))
    spec = replace(SPEC, metric=["val/loss", "test/kl"], levels={"delivery": ["a"]})
    figure, _ = draw_history(spec, [record], SECTION)
    assert figure is not None
    assert [axes.get_ylabel().replace("\n", " ") for axes in figure.axes] == [
        "Validation loss (nats)",
        "Test KL to annotators (nats)",
    ]
    assert np.asarray(figure.axes[0].get_lines()[0].get_ydata()).tolist() == [1.0, 2.0]


def test_floor_and_ceiling_of_test_items_are_drawn_where_they_are_near(tmp_path):
    bounds = {"floor": 9.0, "ceiling": 0.4, "low": 0.4, "high": 0.4, "skill": 0.9}
    records = [
        replace(
            run(tmp_path, delivery, 0, [0.8, 0.6, 0.5]),
            metrics={"soft_nll": 0.5},
            results={"worth": {"soft_nll": bounds}},
        )
        for delivery in ("a", "b")
    ]
    figure, message = draw_history(SPEC, records, SECTION)
    assert figure is not None
    assert [text.get_text() for text in figure.axes[0].texts] == ["ceiling"]
    expected = "Soft NLL, test items: floor 9.0000 (beyond the axis), ceiling 0.4000."
    assert expected in message
    of_training = replace(SPEC, metric="train/soft_nll")
    assert not [s for s in draw_history(of_training, records, SECTION)[1] if "ceiling" in s]
