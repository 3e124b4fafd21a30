"""Floor and ceiling in figures: where they are drawn, and what is said where they are not."""

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.figures.bound_lines import draw_bounds
from studies.figures.figure_spec import Around
from studies.figures.kinds.lines import Lines
from studies.figures.kinds.points import Points
from studies.report.section import Section
from tests.studies.report.report_checks import check_legible

AROUND = Around(Section([], []), ["seed"], DataOfRuns())
LEVELS = {"delivery": ["a", "b"], "votes": [5, 10], "seed": [0, 1, 2]}
WORTH = {"floor": 0.6, "ceiling": 0.3, "low": 0.3, "high": 0.3, "skill": None}


def records(**worth: Any) -> list[Record]:
    """Soft NLL between 0.4 and 0.5."""
    return [
        Record(
            f"{delivery}{votes}{seed}",
            Path("r"),
            {"delivery": delivery, "votes": votes, "seed": seed},
            {"soft_nll": 0.4 + 0.1 * (seed + (delivery == "b")) / 3},
            {"worth": {"soft_nll": {**WORTH, **worth}}},
            {},
        )
        for delivery in LEVELS["delivery"]
        for votes in LEVELS["votes"]
        for seed in LEVELS["seed"]
    ]


def panel() -> Any:
    axes = Figure().subplots()
    axes.plot([0, 1], [0.4, 0.5])
    return axes


def texts(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_bounds_near_the_range_are_lines_with_their_names():
    axes = panel()
    assert draw_bounds(axes, [records()], "soft_nll") == ["Soft NLL: floor 0.6000, ceiling 0.3000."]
    heights = [line.get_ydata()[0] for line in axes.get_lines()[1:]]
    assert heights == pytest.approx([0.6, 0.3])
    assert texts(axes) == ["floor", "ceiling"]
    low, high = axes.get_ylim()
    assert low < 0.3 < 0.6 < high


def test_bounds_far_from_the_range_are_said_and_leave_the_axis_as_it_is():
    axes = panel()
    before = axes.get_ylim()
    assert draw_bounds(
        axes, [records(floor=2.3, ceiling=-1.0, low=-1.0, high=-1.0)], "soft_nll"
    ) == ["Soft NLL: floor 2.3000 (beyond the axis), ceiling -1.0000 (beyond the axis)."]
    assert axes.get_ylim() == before
    assert len(axes.get_lines()) == 1


def test_an_uncertain_ceiling_is_a_band():
    axes = panel()
    (message,) = draw_bounds(axes, [records(low=0.31, high=0.36, ceiling=0.33)], "soft_nll")
    assert message == "Soft NLL: floor 0.6000, ceiling 0.3100 to 0.3600."
    (band,) = axes.patches
    assert band.get_y() == pytest.approx(0.31)
    assert band.get_height() == pytest.approx(0.05)


def test_bounds_of_different_data_are_not_drawn_as_one():
    axes = panel()
    (message,) = draw_bounds(axes, [records(), records(floor=0.7)], "soft_nll")
    assert message == (
        "Soft NLL: floor 0.6000 to 0.7000 (not drawn: it is not the same for all), ceiling 0.3000."
    )
    assert texts(axes) == ["ceiling"]


def test_nothing_is_drawn_where_nothing_is_known():
    axes = panel()
    assert draw_bounds(axes, [records()], "kl") == []
    old = [Record("r", Path("r"), {}, {"soft_nll": 0.4}, {}, {})]
    assert draw_bounds(axes, [old], "soft_nll") == []
    assert len(axes.get_lines()) == 1


def test_points_and_lines_show_them():
    points = Points("p", "P", metric="soft_nll", rows="delivery", levels=LEVELS)
    chosen = [record for record in records() if record.factors["votes"] == 5]
    figure, messages = points.draw(chosen, AROUND)
    check_legible(figure)
    assert messages == ["Soft NLL: floor 0.6000, ceiling 0.3000."]
    assert texts(figure.axes[0]) == ["floor", "ceiling"]
    assert figure.axes[0].get_xlim()[1] > 0.6
    lines = Lines("l", "L", metric="soft_nll", x="votes", lines="delivery", levels=LEVELS)
    figure, messages = lines.draw(records(), AROUND)
    check_legible(figure)
    assert messages == ["Soft NLL: floor 0.6000, ceiling 0.3000."]
    assert texts(figure.axes[0]) == ["floor", "ceiling"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b"]
