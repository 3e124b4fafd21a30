"""The report of 10,000 finished runs, collection included, and a Wilcoxon test of 2,500 pairs.

One tiny run of the digits is trained. Its folder is then copied 10,000 times, with the names of the
10,000 runs of a study (four deliveries x 2,500 seeds), random scores, and everything else that a
finished run leaves; its checkpoint and its predictions are one file under many names, so that the
disk holds them once. The report is that of the digits study: a table with 15 tests of 2,500 pairs,
two figures of all runs, and, with `curves`, reliability curves from the predictions of all runs.

    python benchmarks/reporting.py [curves] [runs]      about 2 minutes, 200 MB of disk, one thread

Targets: 30 s for the report; 0.1 s for the test, whose peer is scipy's (exact without ties up to 50
pairs, normal beyond).
"""

import cProfile
import json
import os
import pstats
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
from measure import best_of, verdict
from scipy import stats

from studies.analysis.collect import Collection
from studies.analysis.statistics import paired_wilcoxon
from studies.commands import study_command
from studies.plan.study import Study
from studies.report.report import write_report

STUDY = "configs/studies/digits.yaml"
SHARED = ("checkpoints/best.ckpt", "predictions.parquet")  # one file under many names
RUNS, PAIRS = 10_000, 2_500


def main() -> None:
    """Make the runs, report on them and time the test."""
    words = sys.argv[1:]
    runs = next((int(word) for word in words if word.isdigit()), RUNS)
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="reporting-") as name:
        folder = Path(name)
        study = large_study(runs, curves="curves" in words)
        copy_runs(trained_run(folder / "one"), study, folder / "runs")
        start = perf_counter()
        found = Collection.of(study, folder / "runs")
        collecting = perf_counter() - start
        assert len(found.finished) == runs, found.missing
        profile = cProfile.Profile() if "profile" in words else None
        start = perf_counter()
        if profile:
            profile.enable()
        write_report(study, folder / "runs", folder / "report")
        reporting = perf_counter() - start
        if profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("cumulative").print_stats(60)
        files = [path for path in (folder / "report").rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        events = [path.stat().st_size for path in files if path.suffix == ".run"]
        again = perf_counter()
        write_report(study, folder / "runs", folder / "report")
        again = perf_counter() - again
    print(f"collection of {runs:,} finished runs: {collecting:.1f} s")
    print(
        f"report over {runs:,} finished runs: {reporting:.1f} s, written anew {again:.1f} s, "
        f"{size / 1e6:.1f} MB, event files of {np.mean(events) / 1e3:.1f} kB a run (target under "
        f"30 s): {verdict(max(reporting, again) < 30)}"
    )
    time_wilcoxon()


def time_wilcoxon() -> None:
    """Print what a test of 2,500 pairs takes here and in scipy."""
    a = np.random.default_rng(0).normal(0.02, 1.0, PAIRS)
    zeros = np.zeros(PAIRS)
    ours = best_of(20, lambda _: paired_wilcoxon(a, zeros))
    scipys = best_of(20, lambda _: stats.wilcoxon(a, zeros))
    print(
        f"Wilcoxon test of {PAIRS:,} pairs: {1e3 * ours:.2f} ms (target under 100 ms): "
        f"{verdict(ours < 0.1)}; {scipys / ours:.1f}x scipy's normal approximation "
        f"({1e3 * scipys:.2f} ms)"
    )


def large_study(runs: int, curves: bool) -> Study:
    """The digits study with so many seeds that it has so many runs."""
    template = Study.load(STUDY)
    grid = {**template.grids["main"], "seed_everything": list(range(runs // 4))}
    figures = [each for each in template.report["figures"] if curves or each["kind"] != "curves"]
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
    main()
