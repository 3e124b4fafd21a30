"""`make demo`: the digits study from start to report, and a table to read on the terminal.

Its annotators are SIMULATED.
"""

from pathlib import Path

import numpy as np
from rich.table import Table

from core.terminal import plain_console
from studies.analysis.collect import collect
from studies.plan.study import Study
from studies.report.report import write_report
from studies.study_command import study_command

STUDY = "configs/studies/digits.yaml"
COLUMNS = {
    "soft_nll": "soft NLL",
    "kl": "KL",
    "accuracy": "accuracy",
    "entropy_spearman": "ent. corr.",
    "ece": "ECE",
}


def demo(runs: Path = Path("runs")) -> None:
    """Run what is left of the study, write its report and show the main numbers."""
    study_command(["run", STUDY, "--runs", str(runs)])
    study, console = Study.load(STUDY), plain_console()
    out = runs / f"{study.name}-report"
    report = write_report(study, runs, out)
    console.print(main_table(study, runs))
    seeds = len(study.grids["main"]["seed_everything"])
    console.print(
        f"Real digits, SIMULATED annotators; mean±SD over {seeds} seeds, 540 test items each; "
        "soft NLL and KL in nats.",
        soft_wrap=True,
    )
    figures = sorted(str(path) for path in (out / "figures").glob("*.png"))
    console.print("figures:", *figures, sep="\n  ", soft_wrap=True)
    console.print(f"report (opens in any browser): {report}", soft_wrap=True)
    console.print("every run: .venv/bin/tensorboard --logdir runs")


def main_table(study: Study, runs: Path) -> Table:
    """The main numbers of each delivery, as mean and standard deviation over seeds."""
    labels = study.report["labels"]
    table = Table(
        title="Digits, SIMULATED annotators", title_justify="left", box=None, padding=(0, 1, 0, 0)
    )
    table.add_column("delivery")
    for heading in COLUMNS.values():
        table.add_column(heading, justify="right")
    records = collect(study, runs, "main")
    for delivery in study.grids["main"]["data.delivery"]:
        own = [record for record in records if record.factors["data.delivery"] == delivery]
        columns = [[record.metrics[column] for record in own] for column in COLUMNS]
        cells = [f"{np.mean(values):.3f}±{np.std(values, ddof=1):.3f}" for values in columns]
        table.add_row(labels[delivery], *cells)
    return table


if __name__ == "__main__":
    demo()
