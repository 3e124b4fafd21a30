"""A tiny study on the digits from its runs to its report and the copy of it: every file that a
reader looks for is there.
"""

import csv
import json
import math
import re
import socket
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from matplotlib import image

from cli import main
from core.errors import InputError
from core.read_json import without_nan
from experiment.run_checkpoints import best_checkpoint
from studies.analysis.comparison import kept_comparisons
from studies.analysis.comparison.comparison import Comparison, PairLine, PairValue
from studies.analysis.comparison.kept_comparisons import comparison_of, read_kept
from studies.analysis.comparison.loss_barrier import LossLine
from studies.figures.kinds.history import HistoryFigure
from studies.launch.pack_job import run_pack
from studies.plan.study import Study
from studies.report.copy import MARK, write_copy
from studies.report.owned_files import LIST
from studies.report.report import Report, build_report, write_files

ROOT = Path(__file__).parents[3]
DELIVERIES = ["SoftLabels", "StochasticLabelSampling", "Multipass"]
AT_3 = {"data.votes_per_item": 3}
OF = {
    "metric": "soft_nll",
    "rows": "data.delivery",
    "level": "Multipass",
    "reference": "SoftLabels",
    "where": AT_3,
}
ERROR = {"kind": "target_error", "rows": "data.delivery", "reference": "SoftLabels"}
REPORT: dict[str, Any] = {
    "scale": "two epochs",
    "comment": "These digits say nothing about photographs.",
    "labels": {"StochasticLabelSampling": "SLS"},
    "tables": [
        {
            "name": "main",
            "rows": "data.delivery",
            "columns": ["soft_nll"],
            "where": AT_3,
            "published": "basins.table2",
        }
    ],
    "figures": [
        {
            "name": "sweep",
            "kind": "lines",
            "metric": ["soft_nll", "accuracy"],
            "x": "data.votes_per_item",
            "lines": "data.delivery",
        },
        {
            "name": "brier",
            "kind": "points",
            "metric": ["brier_reliability", "brier_resolution"],
            "rows": "data.delivery",
            "where": AT_3,
        },
        {
            "name": "history",
            "kind": "history",
            "metric": "val/soft_nll",
            "lines": "data.delivery",
            "where": AT_3,
        },
        {"name": "js", **ERROR, "panels": "data.votes_per_item"},
        {"name": "high", **ERROR, "where": AT_3, "distance": "l1", "items": "high"},
    ],
    "comparisons": [
        {"name": "nets", "title": "Networks", "rows": "data.delivery", "where": AT_3, "points": 3}
    ],
    "claims": [
        {"id": "better", "claim": "Multipass is better.", "paper": "Table 1", "test": "less", **OF},
        {
            "id": "alike",
            "claim": "Both are alike.",
            "paper": "Table 2",
            "test": "equal",
            "margin": "5 %",
            **OF,
        },
        {
            "id": "gap",
            "claim": "The gain grows with the error.",
            "paper": "Figure 2",
            "test": "family",
            "direction": "greater",
            "figure": "js",
            "levels": DELIVERIES[1:],
            "bound": 0,
            "published": "basins.sparse_target_spearman",
        },
        {
            "id": "basins",
            "claim": "They lie in different basins.",
            "paper": "Figure 11",
            "test": "above",
            "bound": 0.1,
            "comparison": "nets",
            "metric": "barrier",
            "between": ["SoftLabels", "Multipass"],
        },
        {
            "id": "maps",
            "claim": "Maps are stable.",
            "paper": "Figure 9",
            "test": "above",
            "bound": 0,
            "comparison": "nets",
            "metric": "grad_cam",
            "level": "Multipass",
        },
    ],
}
FIGURES = {"sweep", "brier", "history", "js", "high", "nets-barrier", "nets-cka"}
TABLES = {"main", "ensembles", "nets", "claims"}
TABLES |= {"js-spearman", "js-bins", "high-spearman", "high-bins"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, Path, Report]:
    """A finished study, where its runs are, and its report as written."""
    folder = tmp_path_factory.mktemp("tiny")
    content = {
        "name": "tiny",
        "title": "A tiny study",
        "configs": [str(ROOT / "configs/digits.yaml")],
        "options": {"trainer.max_epochs": 2},
        "grids": {
            "sweep": {
                "data.delivery": DELIVERIES,
                "data.votes_per_item": [3, 10],
                "seed_everything": [0, 1, 2],
            }
        },
        "predict": True,
        "report": REPORT,
    }
    (folder / "tiny.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    study = Study.load(folder / "tiny.yaml")
    planned = study.runs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, "runs", lambda _: planned)
        assert run_pack(planned, folder / "runs", folder / "pack.pt", True, lambda _: None) == {}
        report = build_report(study, folder / "runs", folder / "out")
        write_files(report, folder / "out")
        write_copy(report, folder / "copy")
        yield study, folder, report  # pyright: ignore[reportReturnType]


def test_every_file_of_the_report_is_there(tiny):
    _, folder, _ = tiny
    out = folder / "out"
    assert {path.name for path in (out / "figures").iterdir()} == {
        f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")
    }
    assert {path.name for path in (out / "tables").iterdir()} == {
        f"{name}.{kind}" for name in TABLES for kind in ("md", "csv", "tex")
    }
    assert (out / "representations.json").is_file()
    page = (out / "report.html").read_text()
    assert "Not drawn: SimpleFFN has no layer that gives maps." in page
    assert "These digits say nothing about photographs." in page
    assert page.count("<section>") == 1 + 1 + 5 + 4 + 1
    for section in page.split("<section>"):
        assert "SIMULATED annotators" in section
        assert "REDUCED scale: two epochs." in section


def test_claims_are_the_last_section_and_say_what_three_seeds_cannot(tiny):
    _, folder, _ = tiny
    last = (folder / "out" / "report.html").read_text().split("<section>")[-1]
    assert "<h2>Claims</h2>" in last
    with open(folder / "out" / "tables" / "claims.csv", newline="") as stream:
        claims = {line["id"]: line for line in csv.DictReader(stream)}
    assert list(claims) == ["better", "alike", "gap", "basins", "maps"]
    assert claims["gap"]["outcome"] == claims["basins"]["outcome"] == "undecided"
    assert "3 seeds cannot reach a p below 0.125" in claims["gap"]["statistic"]
    assert "because these values are not scores of test items" in claims["basins"]["statistic"]
    better = claims["better"]
    assert (
        "over seeds, items and votes" in better["statistic"] or "study evaluate" in better["reason"]
    )
    assert (claims["maps"]["outcome"], claims["maps"]["statistic"]) == ("not tested", "")
    assert re.search(
        r"Of 5 claims: \d supported, \d not supported, \d undecided at this power, \d not tested",
        last,
    )


def test_target_errors_are_of_the_training_items_of_each_seed(tiny):
    _, folder, report = tiny
    with open(folder / "out" / "tables" / "js-bins.csv", newline="") as stream:
        lines = list(csv.DictReader(stream))
    for delivery in ("SLS", "Multipass"):
        for votes in ("3", "10"):
            of_cell = [
                line for line in lines if (line["delivery"], line["panel"]) == (delivery, votes)
            ]
            assert sum(int(line["items"]) for line in of_cell) == 3 * 2516
    (drawn,) = [drawn for drawn in report.figures if drawn.spec.name == "js"]
    assert "2,516 training items of each seed" in " ".join(drawn.caption)
    assert len(drawn.figure.axes) == 2


def test_panels_show_their_own_metric(tiny):
    study, folder, report = tiny
    figures = {drawn.spec.name: drawn.figure for drawn in report.figures}
    for axes, metric in zip(
        figures["brier"].axes, ("brier_reliability", "brier_resolution"), strict=True
    ):
        seeds = [
            json.loads((run.folder(folder / "runs") / "results.json").read_text())["metrics"][
                metric
            ]
            for run in study.runs()
            if run.factors["sweep"]["data.delivery"] == "SoftLabels"
            and run.factors["sweep"]["data.votes_per_item"] == 3
        ]
        assert np.asarray(axes.collections[0].get_offsets())[:, 0] == pytest.approx(seeds)
        assert metric.split("_")[1] in axes.get_xlabel()
    left, right = figures["sweep"].axes
    assert "Soft NLL" in left.get_ylabel()
    assert "accuracy" in right.get_ylabel()
    assert len(left.get_lines()) == len(right.get_lines()) == 3


def test_new_figures_are_legible_and_nothing_is_clipped(tiny):
    _, _, report = tiny
    for drawn in report.figures:
        figure = drawn.figure
        if figure is None:
            continue
        figure.draw_without_rendering()
        texts = [
            text
            for text in figure.findobj(lambda artist: hasattr(artist, "get_fontsize"))
            if text.get_visible() and text.get_text()
        ]
        assert min(text.get_fontsize() for text in texts) >= 8
        page, content = figure.bbox, figure.get_tightbbox()
        assert min(content.x0, content.y0) >= 0, drawn.spec.name
        assert content.x1 * figure.dpi <= page.width + 1, drawn.spec.name
        assert content.y1 * figure.dpi <= page.height + 1, drawn.spec.name
        assert "SIMULATED" in figure.get_suptitle()
        boxes = [axes.get_tightbbox() for axes in figure.axes]
        for axes in figure.axes:
            if legend := axes.get_legend():
                assert not legend.get_window_extent().overlaps(
                    axes.xaxis.label.get_window_extent()
                ), drawn.spec.name
        assert not any(
            a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[number + 1 :]
        ), drawn.spec.name


def test_networks_are_compared_once_and_again_when_a_checkpoint_changes(
    tiny, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    study, folder, _ = tiny
    some = replace(
        study, report={"comparisons": REPORT["comparisons"], "claims": REPORT["claims"][3:]}
    )
    calls, compare = [], kept_comparisons.compare_runs
    monkeypatch.setattr(
        kept_comparisons,
        "compare_runs",
        lambda *args, **options: calls.append(args) or compare(*args, **options),
    )
    first, second = (build_report(some, folder / "runs", tmp_path) for _ in range(2))
    assert len(calls) == 1
    assert [drawn.caption for drawn in first.figures] == [drawn.caption for drawn in second.figures]
    assert [drawn.svg for drawn in first.figures] == [drawn.svg for drawn in second.figures]
    assert [one.verdict for one in first.claims] == [one.verdict for one in second.claims]
    checkpoint = best_checkpoint(study.runs()[0].folder(folder / "runs"))
    before = checkpoint.read_bytes()
    try:
        torch.save({**torch.load(checkpoint, weights_only=True), "epoch": 99}, checkpoint)
        build_report(some, folder / "runs", tmp_path)
    finally:
        checkpoint.write_bytes(before)
    assert len(calls) == 2
    (tmp_path / "representations.json").write_text("[")
    with pytest.raises(InputError, match=r"representations\.json cannot be read"):
        build_report(some, folder / "runs", tmp_path)


@pytest.mark.parametrize("reestimated", [None, [1.0, math.nan, 2.0]])
def test_what_is_kept_is_read_back_whole(reestimated):
    values = [
        PairValue("cka", ("a", "b"), (0, 1), 0.5, 10),
        PairValue("grad_cam", (3, 3), (1, 2), math.nan, 0, 4),
    ]
    lines = [PairLine(("a", "b"), 0, 10, LossLine([0.0, 0.5, 1.0], [1.0, 3.0, 2.0], reestimated))]
    comparison = Comparison(
        "Digits",
        True,
        "LeNet",
        None,
        "data.delivery",
        ["a", "b", 3],
        100,
        0.9,
        values,
        lines,
        ["A note."],
    )
    text = json.dumps(without_nan(asdict(comparison)), allow_nan=False)
    # NaN is not equal to itself, but reads the same
    assert repr(asdict(comparison_of(json.loads(text)))) == repr(asdict(comparison))


@pytest.mark.parametrize(
    "change",
    [
        lambda kept: kept["values"][0].update(value=math.inf),
        lambda kept: kept["values"][0].update(value="0.5"),
        lambda kept: kept["values"][0].update(measure="mood"),
        lambda kept: kept["values"][0].update(methods=["a", "c"]),
        lambda kept: kept["values"][0].update(seeds=[0]),
        lambda kept: kept["lines"][0]["line"].update(plain=[1.0, 3.0]),
        lambda kept: kept["lines"][0]["line"].update(plain=[1.0, 3.0, math.inf]),
        lambda kept: kept["lines"][0].update(methods=["a"]),
    ],
)
def test_kept_comparisons_that_cannot_be_are_refused(tmp_path: Path, change):
    values, lines = (
        [PairValue("cka", ("a", "b"), (0, 1), 0.5, 10)],
        [PairLine(("a", "b"), 0, 10, LossLine([0.0, 0.5, 1.0], [1.0, 3.0, 2.0], None))],
    )
    kept = asdict(
        Comparison(
            "Digits", True, "LeNet", None, "data.delivery", ["a", "b"], 100, 0.9, values, lines, []
        )
    )
    path = tmp_path / "representations.json"
    path.write_text(json.dumps({"basins": {"comparison": kept}}))
    assert read_kept(path)["basins"]["comparison"].values == values
    change(kept)
    path.write_text(json.dumps({"basins": {"comparison": kept}}))
    with pytest.raises(
        InputError,
        match=r"representations\.json cannot be read; delete it to have networks compared again",
    ):
        read_kept(path)


def test_runs_without_a_checkpoint_are_left_out_and_none_is_no_error(tiny, tmp_path):
    study, folder, _ = tiny
    runs = tmp_path / "runs"
    for number, run in enumerate(study.runs()):
        own = run.folder(runs)
        own.mkdir(parents=True)
        (own / "results.json").write_bytes(
            (run.folder(folder / "runs") / "results.json").read_bytes()
        )
        if run.factors["sweep"]["data.delivery"] == "SoftLabels" or number == 6:
            best_checkpoint(own).parent.mkdir()
            best_checkpoint(own).write_bytes(
                best_checkpoint(run.folder(folder / "runs")).read_bytes()
            )
    some = replace(
        study, report={"comparisons": REPORT["comparisons"], "claims": REPORT["claims"][3:4]}
    )
    report = build_report(some, runs)
    assert (
        "Left out, because they have no checkpoint: 5 finished runs." in report.figures[0].caption
    )
    assert (
        "Left out, because only one seed of them is there: StochasticLabelSampling."
        in report.figures[0].caption
    )
    assert report.figures[0].caption[-1] == "Not drawn: no seed has runs of two methods."
    assert report.figures[1].figure is not None  # CKA within soft labels
    assert "no barrier between both" in report.claims[0].verdict.reason
    for path in runs.glob("*/checkpoints/best.ckpt"):
        path.unlink()
    none = build_report(some, runs)
    assert (
        none.figures[0].caption[-1]
        == "Not drawn: no method has two finished runs with a checkpoint."
    )
    assert none.claims[0].verdict.reason == "no method has two finished runs with a checkpoint"


def test_the_copy_is_small_whole_and_says_nothing_of_the_machine(tiny):
    _, folder, report = tiny
    copy = folder / "copy"
    files = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    tables = {f"tables/{name}.{kind}" for name in TABLES for kind in ("md", "csv")}
    assert files == {"README.md", LIST, *tables, *(f"figures/{name}.png" for name in FIGURES)}
    readme = (copy / "README.md").read_text()
    linked = set(re.findall(r"\]\(([^)#]+)\)", readme))
    assert linked <= files
    assert {f"figures/{name}.png" for name in FIGURES} <= linked
    for path in copy.rglob("*"):
        if path.suffix in (".md", ".csv", ".json"):
            text = path.read_text()
            assert str(folder) not in text
            assert socket.gethostname() not in text
            assert not re.search(r"(?<![\w.:/<])/(?:\w+/)+", text)
    picture, original = (
        image.imread(path)
        for path in (copy / "figures" / "js.png", folder / "out" / "figures" / "js.png")
    )
    assert picture.shape[1] == pytest.approx(0.75 * original.shape[1], abs=1)
    assert sum(path.stat().st_size for path in copy.rglob("*.png")) < 100_000 * len(FIGURES)
    for message in (
        "# A tiny study",
        "SIMULATED annotators",
        "REDUCED scale: two epochs.",
        "These digits say nothing about photographs.",
    ):
        assert message in readme
    assert "python cli.py study run tiny.yaml" in readme
    assert (
        "torch "
        f"{report.collection.finished[next(iter(report.collection.finished))].results['versions']['torch']}"
        in readme
    )
    assert "published 0.5096 ± 0.0233" in readme
    assert "lowest 0.05, highest 0.16" in readme
    assert readme.index("## Claims") > readme.index("## Networks")


def test_a_copy_replaces_an_earlier_one_and_nothing_else(tiny, tmp_path):
    report = replace(tiny[2], figures=tiny[2].figures[:2])
    write_copy(report, tmp_path / "a")
    assert (tmp_path / "a" / "figures" / "brier.png").exists()
    (tmp_path / "a" / "notes.txt").write_text("a person's")
    write_copy(replace(report, figures=report.figures[:1], claims=[]), tmp_path / "a")
    left = {path.name for path in (tmp_path / "a").rglob("*") if path.is_file()}
    tables = {f"{name}.{kind}" for name in ("main", "ensembles") for kind in ("md", "csv")}
    assert left == {"README.md", LIST, *tables, "sweep.png", "notes.txt"}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "README.md").write_text("# A person's own page\n")
    with pytest.raises(InputError, match="was not written by a copy"):
        write_copy(report, tmp_path / "b")
    assert (tmp_path / "b" / "README.md").read_text() == "# A person's own page\n"


def test_figures_that_show_items_are_left_out_of_the_copy(
    tiny, tmp_path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(HistoryFigure, "shows_items", True)
    write_copy(replace(tiny[2], figures=tiny[2].figures[1:3]), tmp_path)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["brier.png"]
    assert "it shows items of the dataset" in (tmp_path / "README.md").read_text()


def test_the_command_writes_report_and_copy(tiny, capsys: pytest.CaptureFixture):
    study, folder, _ = tiny
    content = yaml.safe_load(study.path.read_text())
    path, out = folder / "short.yaml", folder / "runs" / "short-report"
    path.write_text(
        yaml.safe_dump({**content, "name": "short", "report": {"tables": REPORT["tables"]}})
    )
    main(
        [
            "study",
            "report",
            str(path),
            "--runs",
            str(folder / "runs"),
            "--copy",
            str(folder / "second"),
        ]
    )
    printed = capsys.readouterr().out
    assert f"report: {out / 'report.html'}" in printed
    assert f"copy: {folder / 'second' / 'README.md'}" in printed
    assert (folder / "second" / "README.md").read_text().startswith(MARK)
    with pytest.raises(SystemExit):
        main(["study", "plan", str(path), "--copy", "docs"])
    assert "--copy is docs; it is for report, not for plan." in capsys.readouterr().err
