"""Reports of runs that were never trained: every number against numpy, scipy and statsmodels, and
every file as its reader sees it.
"""

import csv
import json
import math
import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from matplotlib import image
from scipy import stats
from statsmodels.stats.multitest import multipletests
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from callbacks.prediction_table import prediction_table
from core.errors import InputError
from studies.analysis.collect import collect, missing
from studies.plan.published_numbers import PUBLISHED, fact_in_words
from studies.plan.study import Run, Study
from studies.report.page import common_options
from studies.report.report import build_report, write_report
from tests.finished import FINISHED
from tests.hostile.outcomes import limits
from tests.studies.report.report_checks import check_legible

DELIVERIES = ["SoftLabels", "StochasticLabelSampling", "Multipass"]
VERSIONS = {"python": "3.11.7", "torch": "2.14.0"}
TABLE1 = {
    "name": "table1",
    "title": "Soft NLL by votes & more: 100 % of it",
    "grid": "sweep",
    "rows": "data.delivery",
    "columns": "data.votes_per_item",
    "metric": "soft_nll",
    "reference": "SoftLabels",
    "test": "wilcoxon",
    "alternative": "less",
    "family": "holm",
    "published": "basins.table1",
}
AT_5 = {"data.votes_per_item": 5}
METRICS = {
    "name": "metrics",
    "grid": "sweep",
    "rows": "data.delivery",
    "columns": ["soft_nll", "accuracy"],
    "where": AT_5,
    "reference": "SoftLabels",
    "test": "t",
    "published": "basins.table2",
}
FIGURES = [
    {
        "name": "points",
        "kind": "points",
        "metric": "soft_nll",
        "rows": "data.delivery",
        "where": AT_5,
    },
    {
        "name": "lines",
        "title": "A title that is far too long for one line of a column " * 2,
        "kind": "lines",
        "metric": "soft_nll",
        "x": "data.votes_per_item",
        "lines": "data.delivery",
    },
    {"name": "curves", "kind": "curves", "rows": "data.delivery", "where": AT_5},
]
HISTORY = {
    "name": "history",
    "kind": "history",
    "metric": "val/soft_nll",
    "lines": "data.delivery",
    "where": AT_5,
}
ERROR = {
    "name": "gap",
    "kind": "target_error",
    "rows": "data.delivery",
    "reference": "SoftLabels",
    "panels": "data.votes_per_item",
}
NETS = {"name": "nets", "rows": "data.delivery", "where": AT_5}
CONTENT = {
    "name": "sweep",
    "title": "A sweep",
    "configs": ["configs/digits.yaml"],
    "grids": {
        "sweep": {
            "data.delivery": DELIVERIES,
            "data.votes_per_item": [5, 10],
            "seed_everything": [0, 1, 2, 3, 4],
        }
    },
    "report": {"scale": "3 epochs instead of 200", "tables": [TABLE1, METRICS], "figures": FIGURES},
}


@pytest.fixture(autouse=True, scope="module")
def _plan_once():
    """Most studies here have the same runs, and expanding a grid is tested elsewhere."""
    planned, expand = {}, Study.runs

    def runs(study: Study) -> list[Run]:
        key = json.dumps(study.grids)
        if key not in planned:
            planned[key] = expand(study)
        return planned[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, "runs", runs)
        yield


def make_study(folder: Path, **changes: Any) -> Study:
    path = folder / "sweep.yaml"
    path.write_text(yaml.safe_dump({**CONTENT, **changes}, sort_keys=False))
    return Study.load(path)


def score(metric: str, factors: dict[str, Any]) -> float:
    """A made-up result.

    It depends on the seed most of all, so that only paired tests see what a delivery does.
    """
    seed, delivery, votes = (
        factors["seed_everything"],
        DELIVERIES.index(factors["data.delivery"]),
        factors["data.votes_per_item"],
    )
    noise = np.random.default_rng([seed, delivery, votes]).normal() * 0.004
    value = 0.5 + 0.05 * seed + 0.2 / votes - 0.005 * delivery + noise
    return float(value if metric == "soft_nll" else 1 - value)


def finish(study: Study, runs: Path, simulated: bool = True) -> None:
    """Write the results.json of every run, in the format of `callbacks.Results`."""
    for run in study.runs():
        (factors,) = run.factors.values()
        results = {
            **FINISHED,
            "run": run.name,
            "dataset": "Digits",
            "simulated_annotators": simulated,
            "delivery": {"name": factors["data.delivery"]},
            "seed": factors["seed_everything"],
            "versions": VERSIONS,
            "metrics": {metric: score(metric, factors) for metric in ("soft_nll", "accuracy")},
        }
        run.folder(runs).mkdir(parents=True)
        (run.folder(runs) / "results.json").write_text(json.dumps(results, indent=2) + "\n")


def expected(metric: str, delivery: str, votes: int) -> np.ndarray:
    return np.array(
        [
            score(
                metric,
                {"data.delivery": delivery, "data.votes_per_item": votes, "seed_everything": s},
            )
            for s in range(5)
        ]
    )


def read_csv(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    with open(path, newline="") as stream:
        return {(line["row"], line["column"]): line for line in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a report of finished runs, two of which have predictions."""
    folder = tmp_path_factory.mktemp("report")
    study = make_study(folder)
    finish(study, folder / "runs")
    rng = np.random.default_rng(0)
    annotator_probs = torch.from_numpy(rng.dirichlet(np.full(3, 0.4), 200))
    for run in study.runs():
        if run.factors["sweep"] in (
            {"data.delivery": d, **AT_5, "seed_everything": 0} for d in DELIVERIES[:2]
        ):
            table = prediction_table(
                annotator_probs * 0.8 + 0.2 / 3,
                annotator_probs,
                torch.arange(200),
                {"test": np.arange(200)},
            )
            pq.write_table(table, run.folder(folder / "runs") / "predictions.parquet")
    assert write_report(study, folder / "runs", folder / "out") == folder / "out" / "report.html"
    return folder


def test_csv_has_the_numbers_of_numpy_scipy_and_statsmodels(written):
    lines = read_csv(written / "out" / "tables" / "table1.csv")
    assert len(lines) == 6
    tests = {}
    for (row, column), line in lines.items():
        values, reference = (
            expected("soft_nll", row, int(column)),
            expected("soft_nll", "SoftLabels", int(column)),
        )
        assert float(line["mean"]) == pytest.approx(values.mean(), rel=1e-12)
        assert float(line["sd"]) == pytest.approx(values.std(ddof=1), rel=1e-9)
        assert line["n"] == "5"
        if row == "SoftLabels":
            assert line["p"] == line["p_holm"] == line["agree"] == ""
            continue
        tests[row, column] = stats.wilcoxon(values, reference, alternative="less", method="exact")[
            1
        ]
        assert float(line["p"]) == pytest.approx(tests[row, column])
        assert float(line["minimum_p"]) == 1 / 32
        assert (int(line["agree"]), line["agree_of"]) == (np.sum(values < reference), "5")
        differences = values - reference
        assert float(line["effect_size"]) == pytest.approx(
            differences.mean() / differences.std(ddof=1)
        )
        assert float(line["difference_low"]) < differences.mean() < float(line["difference_high"])
    adjusted = multipletests(list(tests.values()), method="holm")[1]
    assert [float(lines[key]["p_holm"]) for key in tests] == pytest.approx(adjusted)


def test_t_test_in_a_table_of_metrics(written):
    lines = read_csv(written / "out" / "tables" / "metrics.csv")
    assert {column for _, column in lines} == {"soft_nll", "accuracy"}
    for (row, metric), line in lines.items():
        values, reference = expected(metric, row, 5), expected(metric, "SoftLabels", 5)
        assert float(line["mean"]) == pytest.approx(values.mean(), rel=1e-12)
        if row != "SoftLabels":
            assert float(line["p"]) == pytest.approx(stats.ttest_rel(values, reference).pvalue)


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_one_sided_t_test(alternative, tmp_path):
    study = make_study(tmp_path, report={"tables": [{**METRICS, "alternative": alternative}]})
    finish(study, tmp_path / "runs")
    (table,) = build_report(study, tmp_path / "runs").tables
    for metric in METRICS["columns"]:
        test = table.cells["Multipass", metric].test
        wanted = stats.ttest_rel(
            expected(metric, "Multipass", 5),
            expected(metric, "SoftLabels", 5),
            alternative=alternative,
        )
        assert test is not None
        assert test.p == pytest.approx(wanted.pvalue)


def test_bold_is_the_best_in_the_direction_of_each_metric(written):
    for name, columns in (("table1", ("5", "10")), ("metrics", ("soft_nll", "accuracy"))):
        lines = read_csv(written / "out" / "tables" / f"{name}.csv")
        for column in columns:
            means = {row: float(line["mean"]) for (row, c), line in lines.items() if c == column}
            best = (max if column == "accuracy" else min)(means, key=lambda row: means[row])
            assert [row for row in means if lines[row, column]["best"] == "True"] == [best]
            shown = f"{means[best]:.4f}"
            assert f"**{shown} ±" in (written / "out" / "tables" / f"{name}.md").read_text()
            assert (
                rf"\textbf{{{shown} $\pm$"
                in (written / "out" / "tables" / f"{name}.tex").read_text()
            )
            assert f"<strong>{shown} ±" in (written / "out" / "report.html").read_text()


def test_published_values_stand_beside_their_own_cells(written):
    row = next(
        line
        for line in (written / "out" / "tables" / "table1.md").read_text().splitlines()
        if line.startswith("| Multipass")
    )
    at_5, at_10 = row.split(" | ")[1:]
    assert "published 0.5649 (p 0.063)" in at_5
    assert "published 0.5371 (p 0.031)" in at_10
    lines = read_csv(written / "out" / "tables" / "metrics.csv")
    sls = lines["StochasticLabelSampling", "accuracy"]
    assert (sls["published_mean"], sls["published_sd"]) == ("0.8695", "0.0105")
    assert sls["published_where"] == "arXiv:2605.20642v1, Table 2"
    assert lines["Multipass", "accuracy"]["published_mean"] == ""  # that row is not in Table 2


def test_captions_state_the_statistics(written):
    table1 = (written / "out" / "tables" / "table1.md").read_text()
    assert "Mean ± SD over 5 seeds" in table1
    assert "Wilcoxon" in table1
    assert "0.03125 (5 pairs" in table1
    assert "over all 4 tests" in table1
    assert "none can be below 0.125" in table1
    assert "5/5" in table1
    assert "paired t-test, two-sided" in (written / "out" / "tables" / "metrics.md").read_text()


def test_html_needs_no_other_file_and_no_network(written):
    page = (written / "out" / "report.html").read_text()
    sources = re.findall(r'(?:src|href|url|action|data|poster)\s*[=(]\s*["\']?([^"\'\s>)]+)', page)
    assert len(sources) == 3
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert not re.search(r"https?://|@import|<script|<link", page)
    for source in sources:
        assert ElementTree.fromstring(b64decode(source.split(",", 1)[1])).tag.endswith("svg")


def test_html_says_what_produced_it(written):
    page = (written / "out" / "report.html").read_text()
    assert "30 of 30 runs finished, 0 missing" in page
    assert "torch 2.14.0" in page
    assert "DIFFER" not in page
    assert "3 epochs instead of 200" in page.split("The study: ")[1]
    assert "trainer.max_epochs: 30" in page


def test_simulated_annotators_and_scale_are_said_at_every_table_and_figure(written):
    out = written / "out"
    page = (out / "report.html").read_text()
    sections = page.split("<section>")
    assert len(sections) == 1 + 2 + 3
    for text in [
        *sections,
        *(
            path.read_text()
            for suffix in ("md", "tex")
            for path in (out / "tables").glob(f"*.{suffix}")
        ),
    ]:
        assert "SIMULATED annotators" in text
        assert "REDUCED scale: 3 epochs instead of 200." in text
    assert all(
        line["simulated"] == "True" for line in read_csv(out / "tables" / "table1.csv").values()
    )
    for drawn in build_report(Study.load(written / "sweep.yaml"), written / "runs").figures:
        assert drawn.figure is not None
        assert "SIMULATED" in drawn.figure.get_suptitle()


def test_nothing_is_called_simulated_or_reduced_that_is_not(tmp_path):
    study = make_study(tmp_path, report={"tables": [TABLE1], "figures": FIGURES[:1]})
    finish(study, tmp_path / "runs", simulated=False)
    page = write_report(study, tmp_path / "runs", tmp_path / "out").read_text()
    assert "SIMULATED" not in page
    assert "REDUCED" not in page


def test_tex_is_balanced_and_escaped(written):
    for path in (written / "out" / "tables").glob("*.tex"):
        text = path.read_text()
        body = re.sub(r"^%.*\n", "", text)
        assert re.sub(r"\\[{}]", "", body).count("{") == re.sub(r"\\[{}]", "", body).count("}")
        assert re.findall(r"\\begin{(\w+)}", body) == re.findall(r"\\end{(\w+)}", body)[::-1]
        assert not re.search(r"(?<!\\)[_%#]", body.replace(r"\label{tab:" + path.stem + "}", ""))
        assert body.isascii()
        columns = len(re.search(r"{tabular}{(\w+)}", body)[1])  # pyright: ignore
        rows = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert all(len(re.findall(r"(?<!\\)&", line)) == columns - 1 for line in rows)
    assert r"votes \& more: 100 \% of it" in (written / "out" / "tables" / "table1.tex").read_text()


def test_figures_are_files_of_both_kinds(written):
    for name in ("points", "lines", "curves"):
        picture = image.imread(written / "out" / "figures" / f"{name}.png")
        assert picture.shape[1] >= 5 * 150
        assert (
            ElementTree.parse(written / "out" / "figures" / f"{name}.svg")
            .getroot()
            .tag.endswith("svg")
        )


def test_figures_are_legible_and_nothing_is_clipped(written):
    for drawn in build_report(Study.load(written / "sweep.yaml"), written / "runs").figures:
        check_legible(drawn.figure)
        assert drawn.figure
        assert all(axes.get_xlabel() for axes in drawn.figure.axes)


def test_points_are_the_seeds_and_lines_the_means(written):
    points, lines, _ = (
        drawn.figure
        for drawn in build_report(Study.load(written / "sweep.yaml"), written / "runs").figures
    )
    assert points is not None
    assert lines is not None
    for delivery, dots in zip(DELIVERIES, points.axes[0].collections, strict=True):
        assert np.asarray(dots.get_offsets())[:, 0] == pytest.approx(
            expected("soft_nll", delivery, 5)
        )
    for delivery, line in zip(DELIVERIES, lines.axes[0].get_lines(), strict=True):
        assert np.asarray(line.get_xdata()).tolist() == [5, 10]
        assert np.asarray(line.get_ydata()) == pytest.approx(
            [expected("soft_nll", delivery, k).mean() for k in (5, 10)]
        )


def test_curves_use_what_predictions_there_are_and_say_so(written, tmp_path):
    page = (written / "out" / "report.html").read_text()
    assert (
        "Drawn from the 2 of 15 runs that have a predictions.parquet. Nothing to draw yet for "
        "Multipass." in page
    )
    study = make_study(tmp_path, report={"figures": FIGURES})
    finish(study, tmp_path / "runs")
    page = write_report(study, tmp_path / "runs", tmp_path / "out").read_text()
    assert "Not drawn: none of its runs has a predictions.parquet" in page
    assert not (tmp_path / "out" / "figures" / "curves.png").exists()


def test_tensorboard_has_figures_and_one_hparams_entry_per_run(written):
    folder = written / "out" / "tensorboard"
    events = EventAccumulator(str(folder)).Reload()
    assert set(events.Tags()["images"]) == {"report/points", "report/lines", "report/curves"}
    (logged,) = events.Images("report/points")
    assert logged.encoded_image_string == (written / "out/figures/points.png").read_bytes()
    entries = {path.name for path in folder.iterdir() if path.is_dir()}
    study = Study.load(written / "sweep.yaml")
    assert entries == {run.name for run in study.runs()}
    write_report(study, written / "runs", written / "out")  # written anew, not added to
    assert len(list(folder.rglob("events*"))) == 31
    run = study.runs()[0]
    of_run = EventAccumulator(str(folder / run.name)).Reload()
    assert of_run.Scalars("hparams/soft_nll")[0].value == pytest.approx(
        score("soft_nll", run.factors["sweep"])
    )


def test_missing_and_broken_runs_are_listed_and_not_counted(tmp_path):
    study, runs = make_study(tmp_path), tmp_path / "runs"
    finish(study, runs)
    absent, cut, bare, other = [
        run for run in study.runs() if run.factors["sweep"]["seed_everything"] == 4
    ][:4]
    (absent.folder(runs) / "results.json").unlink()
    whole = (cut.folder(runs) / "results.json").read_text()
    (cut.folder(runs) / "results.json").write_text(whole[: len(whole) // 2])
    (bare.folder(runs) / "results.json").write_text("{}")
    (other.folder(runs) / "results.json").write_text("[1, 2]")
    broken = [run.name for run in (absent, cut, bare, other)]
    assert missing(study, runs) == broken
    assert {record.run for record in collect(study, runs, "sweep")} == {
        run.name for run in study.runs()
    } - set(broken)
    page = write_report(study, runs, tmp_path / "out").read_text()
    assert "26 of 30 runs finished, 4 missing" in page
    listed = re.search(r"<details><summary>Missing runs \(4\).*?<pre>(.*?)</pre>", page, re.S)
    assert listed is not None
    causes = ("training not ended", *["damaged results.json"] * 3)
    assert listed[1].split("\n") == [
        f"{name}: {cause}" for name, cause in zip(broken, causes, strict=True)
    ]
    lines = read_csv(tmp_path / "out" / "tables" / "table1.csv")
    gone = absent.factors["sweep"]
    line = lines[gone["data.delivery"], str(gone["data.votes_per_item"])]
    assert line["n"] == "4"
    assert float(line["mean"]) == pytest.approx(
        expected("soft_nll", gone["data.delivery"], gone["data.votes_per_item"])[:4].mean()
    )
    assert "n = 4" in (tmp_path / "out" / "tables" / "table1.md").read_text()
    assert "(of 5 planned)" in (tmp_path / "out" / "tables" / "table1.md").read_text()


def test_pairs_are_seeds_that_both_rows_have(tmp_path):
    study, runs = make_study(tmp_path), tmp_path / "runs"
    finish(study, runs)
    for run in study.runs():
        if run.factors["sweep"] in (
            {"data.delivery": d, **AT_5, "seed_everything": s}
            for d, s in (("SoftLabels", 0), ("Multipass", 3))
        ):
            (run.folder(runs) / "results.json").unlink()
    line = read_csv(write_report(study, runs, tmp_path / "out").parent / "tables" / "metrics.csv")[
        "Multipass", "soft_nll"
    ]
    both = [1, 2, 4]
    wanted = stats.ttest_rel(
        expected("soft_nll", "Multipass", 5)[both], expected("soft_nll", "SoftLabels", 5)[both]
    )
    assert (line["n"], line["pairs"]) == ("4", "3")
    assert float(line["p"]) == pytest.approx(wanted.pvalue)


def test_a_value_that_is_not_finite_is_left_out_and_said(tmp_path):
    study, runs = make_study(tmp_path), tmp_path / "runs"
    finish(study, runs)
    path = study.runs()[0].folder(runs) / "results.json"
    results = json.loads(path.read_text())
    results["metrics"]["soft_nll"] = math.nan
    path.write_text(json.dumps(results))
    page = write_report(study, runs, tmp_path / "out").read_text()
    assert "Left out because they are NaN or infinite: 1 value." in page
    assert (
        read_csv(tmp_path / "out" / "tables" / "metrics.csv")["SoftLabels", "soft_nll"]["n"] == "4"
    )


def test_a_report_of_nothing_is_a_report(tmp_path):
    page = write_report(make_study(tmp_path), tmp_path / "runs", tmp_path / "out").read_text()
    assert "0 of 30 runs finished, 30 missing" in page
    assert page.count("Not drawn: none of its runs is finished.") == 3
    assert "No test was possible" in page


def test_versions_that_differ_are_named(tmp_path):
    study, runs = make_study(tmp_path), tmp_path / "runs"
    finish(study, runs)
    path = study.runs()[0].folder(runs) / "results.json"
    path.write_text(path.read_text().replace("2.14.0", "2.9.1"))
    page = write_report(study, runs, tmp_path / "out").read_text()
    assert "Versions DIFFER between runs" in page
    assert "<li>1 run: python 3.11.7, torch 2.9.1</li>" in page
    assert "<li>29 runs: python 3.11.7, torch 2.14.0</li>" in page


def test_text_of_the_study_cannot_become_markup(tmp_path):
    study = make_study(
        tmp_path,
        title="<script>alert(1)</script>",
        report={"tables": [{**METRICS, "title": "a < b | c"}]},
    )
    finish(study, tmp_path / "runs")
    page = write_report(study, tmp_path / "runs", tmp_path / "out").read_text()
    assert "<script" not in page
    assert "a &lt; b | c" in page


def test_common_options_are_those_of_every_run(tmp_path):
    study = make_study(tmp_path)
    finish(study, tmp_path / "runs")
    common = common_options(build_report(study, tmp_path / "runs").collection)
    assert common["data.init_args.batch_size"] == 64
    assert (
        not {"data.init_args.votes_per_item", "data.init_args.delivery", "seed_everything"}
        & common.keys()
    )


@pytest.mark.parametrize(
    ("report", "key", "allowed"),
    [
        ({"tabels": []}, "report.tabels", "tables"),
        ({"tables": [{**METRICS, "colour": "red"}]}, "report.tables[0].colour", "reference"),
        ({"tables": [{**METRICS, "columns": ["soft_nl"]}]}, "report.tables[0].columns", "soft_nll"),
        (
            {"tables": [{**METRICS, "columns": "data.dropout"}]},
            "report.tables[0].columns",
            "data.votes_per_item",
        ),
        (
            {"tables": [{**METRICS, "rows": "data.delivry"}]},
            "report.tables[0].rows",
            "data.delivery",
        ),
        ({"tables": [{**METRICS, "grid": "main"}]}, "report.tables[0].grid", "sweep"),
        (
            {"tables": [{**METRICS, "reference": "Mixup"}]},
            "report.tables[0].reference",
            "SoftLabels",
        ),
        ({"tables": [{**METRICS, "test": "anova"}]}, "report.tables[0].test", "wilcoxon"),
        ({"tables": [{**METRICS, "alternative": "lower"}]}, "report.tables[0].alternative", "less"),
        (
            {"tables": [{**METRICS, "published": "basins.table22"}]},
            "report.tables[0].published",
            "basins.table2",
        ),
        (
            {"tables": [{**METRICS, "published": "basins.table1"}]},
            "report.tables[0].published",
            "soft_nll",
        ),
        (
            {"tables": [{**METRICS, "where": {"data.votes_per_item": 7}}]},
            "report.tables[0].where.data.votes_per_item",
            "5, 10",
        ),
        (
            {"tables": [{**METRICS, "where": {}}]},
            "report.tables[0]",
            "average over data.votes_per_item",
        ),
        (
            {"tables": [{**METRICS, "rows": "seed_everything", "reference": 0}]},
            "report.tables[0]",
            "paired",
        ),
        ({"tables": [{**METRICS, "name": "../up"}]}, "report.tables[0].name", "letters"),
        (
            {"tables": [{k: v for k, v in METRICS.items() if k != "reference"}]},
            "report.tables[0].test",
            "reference",
        ),
        (
            {"tables": [{k: v for k, v in TABLE1.items() if k != "metric"}]},
            "report.tables[0].metric",
            "one metric",
        ),
        ({"tables": [METRICS, METRICS]}, "report.tables", "twice"),
        ({"tables": ["main"]}, "report.tables[0]", "columns"),
        (
            {"figures": [{**FIGURES[0], "kind": "pie"}]},
            "report.figures[0].kind",
            "curves, data_map, entropy_histogram",
        ),
        (
            {"figures": [{**FIGURES[0], "x": "data.votes_per_item"}]},
            "report.figures[0].x",
            "does not belong",
        ),
        (
            {"figures": [{**FIGURES[1], "x": "data.delivery", "lines": "data.votes_per_item"}]},
            "report.figures[0].x",
            "numbers",
        ),
        ({"labels": {"SoftLabel": "soft"}}, "report.labels.SoftLabel", "SoftLabels"),
        (
            {"figures": [{**FIGURES[0], "metric": ["soft_nll", "soft_nl"]}]},
            "report.figures[0].metric",
            "soft_nll",
        ),
        ({"figures": [{**FIGURES[1], "metric": []}]}, "report.figures[0].metric", "at least one"),
        (
            {"figures": [{**HISTORY, "metric": []}]},
            "report.figures[0].metric",
            "a column of history.json",
        ),
        (
            {"figures": [{**HISTORY, "metric": ["val/soft_nll", 3]}]},
            "report.figures[0].metric",
            "a list of columns",
        ),
        ({"figures": [{**HISTORY, "bins": 3}]}, "report.figures[0].bins", "does not belong"),
        (
            {"figures": [{k: v for k, v in ERROR.items() if k != "reference"}]},
            "report.figures[0].reference",
            "missing from",
        ),
        (
            {"figures": [{**ERROR, "reference": "Mixup"}]},
            "report.figures[0].reference",
            "SoftLabels",
        ),
        ({"figures": [{**ERROR, "distance": "cosine"}]}, "report.figures[0].distance", "js, l1"),
        ({"figures": [{**ERROR, "items": "some"}]}, "report.figures[0].items", "all, high"),
        (
            {"figures": [{**ERROR, "bins": 2.5}]},
            "report.figures[0].bins",
            "whole number of at least 1",
        ),
        ({"figures": [{**ERROR, "quantile": 1}]}, "report.figures[0].quantile", "below 1"),
        (
            {"figures": [{k: v for k, v in ERROR.items() if k != "panels"}]},
            "report.figures[0]",
            "average over data.votes_per_item",
        ),
        (
            {"comparisons": [{"name": "nets", "where": AT_5}]},
            "report.comparisons[0].rows",
            "missing",
        ),
        (
            {"comparisons": [{"name": "nets", "rows": "data.delivery"}]},
            "report.comparisons[0]",
            "average over data.votes_per_item",
        ),
        ({"comparisons": [{**NETS, "points": 2}]}, "report.comparisons[0].points", "at least 3"),
        (
            {"comparisons": [{**NETS, "name": "metrics"}], "tables": [METRICS]},
            "report",
            "metrics twice",
        ),
        ({"comparisons": [NETS, NETS]}, "report.comparisons", "twice"),
        ({"tables": [{**METRICS, "name": "ensembles"}]}, "report", "ensembles twice"),
        ({"tables": {"name": "main"}}, "report.tables", "a list of entries"),
    ],
)
def test_a_mistake_in_the_section_names_file_key_and_choices(report, key, allowed, tmp_path):
    study = make_study(tmp_path, report=report)
    with pytest.raises(InputError) as error:
        write_report(study, tmp_path / "runs", tmp_path / "out")
    message = str(error.value)
    assert message.startswith(f"{study.path}: {key} ")
    assert allowed in message
    assert not (tmp_path / "out").exists()


def test_target_errors_are_of_sparse_targets_only(tmp_path):
    grid = {
        "data.delivery": DELIVERIES[:2],
        "data.votes_per_item": [5, None],
        "seed_everything": [0],
    }
    study = make_study(tmp_path, grids={"sweep": grid}, report={"figures": [ERROR]})
    with pytest.raises(InputError, match="which trains on all votes"):
        build_report(study, tmp_path / "runs")
    five = replace(study, report={"figures": [{**ERROR, "where": AT_5}]})
    assert build_report(five, tmp_path / "runs").figures[0].caption == [
        "Not drawn: none of its runs is finished."
    ]


def test_kinds_that_need_more_than_results_say_what_is_absent(tmp_path):
    study = make_study(tmp_path, report={"figures": [HISTORY, ERROR], "comparisons": [NETS]})
    finish(study, tmp_path / "runs")
    page = write_report(study, tmp_path / "runs", tmp_path / "out").read_text()
    assert "Not drawn: no finished run&#x27;s history.json has the column val/soft_nll." in page
    assert "Not drawn: none of its runs has a predictions.parquet" in page
    assert "Not drawn: no method has two finished runs with a checkpoint." in page
    assert "Left out, because they have no checkpoint: 15 finished runs." in page
    assert not (tmp_path / "out" / "figures").exists()
    assert not (tmp_path / "out" / "representations.json").exists()


def test_several_metrics_are_panels_of_one_figure(tmp_path):
    figures = [
        {**FIGURES[0], "metric": ["soft_nll", "accuracy"]},
        {**FIGURES[1], "metric": ["soft_nll", "accuracy", "kl"]},
    ]
    study = make_study(tmp_path, report={"figures": figures})
    finish(study, tmp_path / "runs")
    points, lines = (drawn.figure for drawn in build_report(study, tmp_path / "runs").figures)
    assert points is not None
    assert lines is not None
    assert [len(figure.axes) for figure in (points, lines)] == [2, 3]
    for axes, metric in zip(points.axes, ("soft_nll", "accuracy"), strict=True):
        for delivery, dots in zip(DELIVERIES, axes.collections, strict=True):
            assert np.asarray(dots.get_offsets())[:, 0] == pytest.approx(
                expected(metric, delivery, 5)
            )
    for axes, metric in zip(lines.axes[:2], ("soft_nll", "accuracy"), strict=True):
        assert np.asarray(axes.get_lines()[2].get_ydata()) == pytest.approx(
            [expected(metric, "Multipass", k).mean() for k in (5, 10)]
        )
    assert not lines.axes[2].get_lines()  # no run has kl


def test_a_metric_that_only_the_runs_know_is_shown_without_a_best(tmp_path):
    study, runs = (
        make_study(
            tmp_path,
            report={"tables": [{**METRICS, "columns": ["my_score"], "published": "basins.table2"}]},
        ),
        tmp_path / "runs",
    )
    finish(study, runs)
    for path in runs.glob("*/results.json"):
        path.write_text(path.read_text().replace('"accuracy"', '"my_score"'))
    lines = read_csv(write_report(study, runs, tmp_path / "out").parent / "tables" / "metrics.csv")
    assert [line["best"] for line in lines.values()] == ["False"] * 3


def test_the_study_of_the_repository_has_a_report(tmp_path):
    study = Study.load("configs/studies/digits.yaml")
    page = write_report(study, tmp_path / "runs", tmp_path / "out").read_text()
    assert f"0 of {len(study.runs())} runs finished" in page


def test_seeds_with_predictions_are_shown_as_one_model_too(tmp_path):
    """Beside what their scores are worth; and what is not known is said."""
    study, runs = make_study(tmp_path, report={"tables": [METRICS]}), tmp_path / "runs"
    finish(study, runs)
    people = torch.from_numpy(np.random.default_rng(0).dirichlet(np.full(3, 0.4), 50))
    bounds = {"floor": 1.5, "ceiling": 0.3, "low": 0.3, "high": 0.3, "skill": 0.5}
    for run in study.runs():
        factors = run.factors["sweep"]
        if factors["data.votes_per_item"] == 5 and factors["data.delivery"] != "Multipass":
            rng = np.random.default_rng(factors["seed_everything"])
            probs = torch.from_numpy(rng.dirichlet(np.ones(3), 50))
            table = prediction_table(probs, people, torch.arange(50), {"test": np.arange(50)})
            pq.write_table(table, run.folder(runs) / "predictions.parquet")
            path = run.folder(runs) / "results.json"
            results = {**json.loads(path.read_text()), "worth": {"soft_nll": bounds}}
            path.write_text(json.dumps(results))
    out = write_report(study, runs, tmp_path / "out").parent
    page, table = (out / "report.html").read_text(), (out / "tables" / "metrics.md").read_text()
    assert "<h2>Ensembles over seeds</h2>" in page
    assert table.count("| ensemble of 5 |") == 2
    assert "No ensemble in 1 cell: fewer than two seeds have a predictions.parquet" in table
    assert "not in the results of 5 of 15 runs; study evaluate adds them" in table
    lines = list(csv.DictReader((out / "tables" / "ensembles.csv").read_text().splitlines()))
    assert [line["cell"] for line in lines] == DELIVERIES[:2]
    members = [
        np.random.default_rng(seed).dirichlet(np.ones(3), 50).astype(np.float64)
        for seed in range(5)
    ]
    entropy = stats.entropy(np.mean(members, axis=0), axis=1).mean()
    assert float(lines[0]["entropy"]) == pytest.approx(entropy, rel=1e-5)


def test_published_numbers_are_whole():
    """Every cell has a mean, every entry its place in the paper; spot checks against the paper
    itself.
    """
    content = yaml.safe_load((PUBLISHED / "basins.yaml").read_text())
    tables = content["tables"]
    assert {entry["where"] for entry in tables.values()} >= {
        f"Table {number}" for number in range(1, 10)
    }
    for entry in tables.values():
        assert entry["seeds"] in (5, 10)
        for cells in entry["cells"].values():
            assert all(
                set(cell) <= {"mean", "sd", "p"} and isinstance(cell["mean"], float)
                for cell in cells.values()
            )
    assert tables["table2"]["cells"]["Mixup"]["ece"] == {"mean": 0.0977, "sd": 0.0063}
    assert tables["table3"]["cells"]["ShuffledSLS"]["entropy_spearman"]["mean"] == -0.0058
    assert tables["table6"]["cells"]["SoftLabels"][25] == {"mean": 267.1, "sd": 43.7}
    assert all("where" in fact and fact["values"] for fact in content["facts"].values())


def test_published_numbers_of_the_epistemic_paper_are_whole():
    content = yaml.safe_load((PUBLISHED / "epistemic.yaml").read_text())
    tables, facts = content["tables"], content["facts"]
    datasets = {"ChaosNLI", "POPQUORN", "CIFAR10HHard"}
    assert (
        set(tables["table1"]["cells"])
        == set(tables["table3"]["cells"])
        == set(tables["table4"]["cells"]) - {"average"}
        == datasets
    )
    for entry in (tables["table3"], tables["table4"]):
        assert (entry["groups"], entry["seeds"]) == ("dataset", 10)
        for rows in entry["cells"].values():
            for cells in rows.values():
                assert all(
                    set(cell) <= {"mean", "sd", "p"} and isinstance(cell["mean"], int | float)
                    for cell in cells.values()
                )
    for dataset in datasets:
        theirs, again = tables["table3"]["cells"][dataset], tables["table4"]["cells"][dataset]
        assert all(
            theirs[row]["kl"]["mean"] == again[row]["kl"]["mean"]
            for row in ("MajorityVote", "SoftLabels")
        )
        assert (
            facts["entropy_correlation_by_dataset"]["values"][dataset]
            == again["change"]["entropy_pearson"]["mean"]
        )
        for delivery in ("MajorityVote", "SoftLabels"):
            settings = facts[f"table2_{dataset}_{delivery}"]["values"]
            assert settings["lr"] in (1e-3, 1e-4, 1e-5)
            assert (settings["batch_size"], settings["epochs"]) in [
                (b, e) for b in (8, 16, 32) for e in (10, 15, 20)
            ]
    assert tables["table3"]["cells"]["CIFAR10HHard"]["SoftLabels"]["kl"] == {
        "mean": 0.406,
        "sd": 0.021,
        "p": 1.6e-05,
    }
    assert tables["table1"]["cells"]["POPQUORN"]["votes_per_item"]["mean"] == 6.7
    assert "by the paper's own means it is 20.3 %" in fact_in_words("epistemic.kl_improvement")


def test_a_thousand_runs_are_reported_soon(tmp_path):
    grid = {**CONTENT["grids"]["sweep"], "seed_everything": list(range(167))}  # 1,002 runs
    study = replace(make_study(tmp_path), grids={"sweep": grid})
    with limits(
        seconds=120, memory=2**33
    ):  # of a core, of which it takes five: what does more for each pair of runs takes thousands
        finish(study, tmp_path / "runs")  # expands the grid, which a report does too
        page = write_report(study, tmp_path / "runs", tmp_path / "out").read_text()
    assert "1002 of 1002 runs finished" in page
