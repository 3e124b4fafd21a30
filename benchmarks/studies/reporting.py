"""The report of 10,000 finished runs, collection included, and a Wilcoxon test of 2,500 pairs.

One tiny run of the digits is trained. Its folder is then copied 10,000 times, with the names of the
10,000 runs of a study (four deliveries x 2,500 seeds), random scores, and everything else that a
finished run leaves; its checkpoint and its predictions are one file under many names, so that the
disk holds them once. The report is that of the digits study without its reliability curves, which
read every run's predictions: a table with 15 tests of 2,500 pairs, two figures of all runs, and an
event file for each run. It is written twice, the second time in place of the first.

    python -m benchmarks.studies.reporting      about 2 minutes, 300 MB of disk, one thread

Targets: 30 s for the report; 0.1 s for the test. scipy's test is exact up to 50 pairs without ties,
and normal beyond.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.measure import best_of
from benchmarks.row import Row, main
from studies.analysis.collect import Collection
from studies.analysis.statistics import paired_wilcoxon
from studies.plan.study import Study
from studies.report.report import write_report
from studies.study_command import study_command

STUDY = "configs/studies/digits.yaml"
SHARED = ("checkpoints/best.ckpt", "predictions.parquet")  # one file under many names
RUNS, PAIRS = 10_000, 2_500


def rows() -> Iterator[Row]:
    """Time the test, then make the runs and report on them."""
    yield from wilcoxon_rows()
    with tempfile.TemporaryDirectory(prefix="reporting-") as name:
        folder = Path(name)
        study = large_study()
        copy_runs(trained_run(folder / "one"), study, folder / "runs")
        start, busy = time.perf_counter(), time.process_time()
        found = Collection.of(study, folder / "runs")
        assert len(found.finished) == RUNS, found.missing
        yield _row("collection", start, busy)
        for what in ("report", "report in place of an earlier one"):
            start, busy = time.perf_counter(), time.process_time()
            write_report(study, folder / "runs", folder / "report")
            events = [path.stat().st_size for path in (folder / "report").rglob("*.run")]
            yield _row(what, start, busy, f", event files of {np.mean(events) / 1e3:.1f} kB a run")


def _row(what: str, start: float, busy: float, also: str = "") -> Row:
    seconds, core = time.perf_counter() - start, time.process_time() - busy
    note = f"{core:.1f} s of a core{also}"
    return Row(f"{what}, {RUNS:,} runs", "at most 30 s", seconds, 30.0, 1.0, note)


def wilcoxon_rows() -> Iterator[Row]:
    """A test of 2,500 pairs, by the bound and by scipy's."""
    a = np.random.default_rng(0).normal(0.02, 1.0, PAIRS)
    zeros = np.zeros(PAIRS)
    ours = best_of(20, lambda _: paired_wilcoxon(a, zeros))
    scipys = best_of(20, lambda _: stats.wilcoxon(a, zeros))
    what = f"Wilcoxon test, {PAIRS:,} pairs"
    yield Row(what, "at most 0.1 s", ours, 0.1, 1.0)
    note = "theirs is the normal approximation"
    yield Row(what, "scipy.stats.wilcoxon", ours, scipys, None, note)


def large_study() -> Study:
    """The digits study with so many seeds that it has 10,000 runs."""
    template = Study.load(STUDY)
    grid = {**template.grids["main"], "seed_everything": list(range(RUNS // 4))}
    figures = [each for each in template.report["figures"] if each["kind"] != "curves"]
    return replace(
        template, name="large", grids={"main": grid}, report={**template.report, "figures": figures}
    )


def trained_run(folder: Path) -> Path:
    """The folder of one run of the digits that was trained, tested and predicted with."""
    folder.mkdir()
    path = folder / "tiny.yaml"
    path.write_text(
        f"name: tiny\nconfigs: [{Path('configs/digits.yaml').resolve()}]\npredict: true\n"
        "options: {trainer.max_epochs: 2}\n"
        "grids: {main: {data.delivery: [SoftLabels], seed_everything: [0]}}\n"
    )
    study_command(["run", str(path), "--runs", str(folder), "--processes", "1"])
    return Study.load(path).runs()[0].folder(folder)


def copy_runs(finished: Path, study: Study, folder: Path) -> None:
    """A finished run's folder under the name of every run of a study, with scores of its own."""
    results = json.loads((finished / "results.json").read_text())
    small = [
        path.relative_to(finished)
        for path in finished.rglob("*")
        if path.is_file() and path.relative_to(finished).as_posix() not in SHARED
    ]
    rng = np.random.default_rng(0)
    for run in study.runs():
        to = run.folder(folder)
        (to / "checkpoints").mkdir(parents=True)
        for path in SHARED:
            os.link(finished / path, to / path)
        for path in small:
            (to / path).parent.mkdir(exist_ok=True)
            shutil.copyfile(finished / path, to / path)
        metrics = {name: value + rng.normal(0, 0.01) for name, value in results["metrics"].items()}
        delivery = {"name": run.factors["main"]["data.delivery"]}
        own = {"run": run.name, "delivery": delivery, "metrics": metrics}
        own["seed"] = run.factors["main"]["seed_everything"]
        (to / "results.json").write_text(json.dumps({**results, **own}, indent=2) + "\n")


if __name__ == "__main__":
    main(rows)
