"""`make demo`: the digits study from start to report, and a table to read on the terminal.

Its annotators are SIMULATED.
"""

import math
from pathlib import Path

from rich.table import Table as Lines

from core.terminal import plain_console
from studies.plan.study import Study
from studies.report.files import check_report, write_files
from studies.report.report import build_report
from studies.report.section import Section
from studies.study_command import study_command
from studies.tables.cell_worth import span
from studies.tables.tables import Cell, Table
from studies.tables.worth_rows import bounds_of

STUDY = "configs/studies/digits.yaml"
COLUMNS = {
    "soft_nll": "soft NLL",
    "kl": "KL",
    "accuracy": "accuracy",
    "entropy_spearman": "ent. corr.",
    "ece": "ECE",
}
SKILL = "soft_nll"  # the score whose skill is shown


def demo(runs: Path = Path("runs")) -> None:
    """Run what is left of the study, write its report and show the main numbers."""
    study_command(["run", STUDY, "--runs", str(runs)])
    study, console = Study.load(STUDY), plain_console()
    out = runs / f"{study.name}-report"
    check_report(study, out)
    report = build_report(study, runs, out)
    page = write_files(report, out)
    (table,) = report.tables
    console.print(main_table(table, report.section))
    seeds = len(study.grids["main"]["seed_everything"])
    console.print(
        f"Real digits, SIMULATED annotators; mean±SD over {seeds} seeds, 540 test items each; "
        "soft NLL and KL in nats. Ensemble: the mean prediction of the seeds that tested an item, "
        "two or more. Floor: the best constant; ceiling: a model that knew every item's "
        "distribution; skill: where soft NLL lies between the two.",
        soft_wrap=True,
    )
    figures = sorted(str(path) for path in (out / "figures").glob("*.png"))
    console.print("figures:", *figures, sep="\n  ", soft_wrap=True)
    console.print(f"report (opens in any browser): {page}", soft_wrap=True)
    console.print("every run: .venv/bin/tensorboard --logdir runs")


def main_table(table: Table, section: Section) -> Lines:
    """The main numbers of each delivery as mean and standard deviation over seeds, and of its
    ensemble; then floor and ceiling.
    """
    lines = Lines(
        title="Digits, SIMULATED annotators", title_justify="left", box=None, padding=(0, 1, 0, 0)
    )
    lines.add_column("delivery")
    for heading in (*COLUMNS.values(), "skill"):
        lines.add_column(heading, justify="right")
    for row in table.rows:
        cells = [table.cells[row, column] for column in COLUMNS]
        means = [f"{s.mean:.3f}±{s.sd:.3f}" if (s := cell.summary) else "" for cell in cells]
        scores = [f"{e.value:.3f}" if (e := cell.ensemble) else "" for cell in cells]
        shown = table.cells[row, SKILL]
        if shown.summary:
            lines.add_row(section.label(row), *means, _skill(shown, shown.summary.mean))
        if shown.ensemble:
            lines.add_row("  ensemble", *scores, _skill(shown, shown.ensemble.on_all_items))
    for bound in ("floor", "ceiling"):
        ends = [bounds_of(table, table.rows, column, bound) for column in COLUMNS]
        shown = [span(pair, 3).replace(" to ", "-") if pair else "" for pair in ends]
        lines.add_row(bound, *shown, "")
    return lines


def _skill(cell: Cell, score: float) -> str:
    """Of a delivery's mean or of its ensemble; empty where it is not known."""
    skill = cell.worth.skill(score) if cell.worth else math.nan
    return "" if math.isnan(skill) else f"{100 * skill:.1f}%"


if __name__ == "__main__":
    demo()
