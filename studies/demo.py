"""`make demo`: four deliveries of the same votes on the embedded digits, three seeds each, as one table and one picture.

The digits are real scans, the annotators are SIMULATED. A run that is already there is not trained again.
"""

import io
import json
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from torch import Tensor

from callbacks.uncertainty_figures import GREY, draw_reliability
from cli import main
from metrics import functional

DELIVERIES = {"SoftLabels": "soft labels", "MajorityVote": "majority vote", "Multipass": "multipass", "StochasticLabelSampling": "SLS"}
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")  # colour-blind safe (Okabe and Ito)
COLUMNS = {"soft_nll": "soft NLL", "kl": "KL", "accuracy": "accuracy", "entropy_spearman": "ent. corr.", "ece": "ECE"}
SEEDS = (0, 1, 2)
QUIET = ("--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false")


def demo() -> None:
    """Train, test and predict every run, then show what was found."""
    torch.set_num_threads(1)  # such small networks gain nothing from a second thread, and lose much on a busy machine
    console = Console()
    columns = (TextColumn("{task.description:32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    folders: dict[str, list[Path]] = {delivery: [] for delivery in DELIVERIES}
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting", total=len(DELIVERIES) * len(SEEDS))
        for seed in SEEDS:
            for delivery, name in DELIVERIES.items():
                progress.update(task, description=f"training: {name}, seed {seed}")
                folders[delivery].append(run(delivery, seed))
                progress.advance(task)
    figure = Path("runs") / "demo.png"
    draw(folders, figure)
    console.print(table(folders))
    console.print(f"Real digits, SIMULATED annotators; mean ± SD over {len(SEEDS)} seeds. KL and soft NLL in nats.")
    console.print(
        f"Figures: {figure} and figures/ in each of:", *(str(folder) for folder in folders["SoftLabels"][:1]), "...", soft_wrap=True
    )
    console.print("Look closer: .venv/bin/tensorboard --logdir runs")


def run(delivery: str, seed: int) -> Path:
    """One run through the command line's own door; its output is kept out of the progress bar's way."""
    options = ["--config", "configs/digits.yaml", "--data.delivery", delivery, "--seed_everything", str(seed), *QUIET]
    with redirect_stdout(io.StringIO()):
        folder = main(["fit", *options]).run_dir
        main(["test", *options])
        main(["predict", *options])
    return folder


def table(folders: dict[str, list[Path]]) -> Table:
    result = Table(title="Digits, SIMULATED annotators", title_justify="left", box=None, padding=(0, 1, 0, 0))
    result.add_column("delivery")
    for heading in COLUMNS.values():
        result.add_column(heading, justify="right")
    for delivery, name in DELIVERIES.items():
        metrics = [json.loads((folder / "results.json").read_text())["metrics"] for folder in folders[delivery]]
        cells = [[m[column] for m in metrics] for column in COLUMNS]
        result.add_row(name, *(f"{np.mean(values):.3f}±{np.std(values, ddof=1):.3f}" for values in cells))
    return result


def draw(folders: dict[str, list[Path]], path: Path) -> None:
    """Reliability and entropy of all deliveries, the test items of all seeds pooled."""
    figure = Figure(figsize=(8.4, 4.0), layout="constrained", dpi=150)
    left, right = figure.subplots(1, 2)
    for (delivery, name), color in zip(DELIVERIES.items(), COLORS, strict=True):
        probs, target_probs = test_predictions(folders[delivery])
        draw_reliability(left, probs, target_probs, color, name)
        draw_entropy_curve(right, probs, target_probs, color, name)
    right.axline((0, 0), slope=1, color=GREY, linewidth=1, linestyle="--", zorder=0)
    right.set(xlabel="annotators' entropy (nats)", ylabel="model's mean entropy (nats)", ylim=(0, None))
    right.legend(loc="upper left", frameon=False, fontsize=8)
    figure.suptitle(f"Digits, simulated annotators: test items of {len(SEEDS)} seeds", fontsize=10)
    figure.savefig(path)


def test_predictions(folders: list[Path]) -> tuple[Tensor, Tensor]:
    tables = [pq.read_table(folder / "predictions.parquet", filters=[("split", "=", "test")]) for folder in folders]

    def stacked(prefix: str) -> Tensor:
        names = [f"{prefix}_{k}" for k in range(10)]
        return torch.from_numpy(np.concatenate([np.column_stack([t[name].to_numpy() for name in names]) for t in tables]))

    return stacked("model"), stacked("annotators")


def draw_entropy_curve(axes: Axes, probs: Tensor, target_probs: Tensor, color: str, label: str) -> None:
    """The model's mean entropy over nine bins that hold equally many disagreeing items, after one for the unanimous ones."""
    model, people = functional.entropy(probs).numpy(), functional.entropy(target_probs).numpy()
    order = np.argsort(people, kind="stable")
    unanimous = int((people < 1e-9).sum())
    bins = [order[:unanimous], *np.array_split(order[unanimous:], 9)]
    points = [(people[rows].mean(), model[rows].mean()) for rows in bins if len(rows)]
    axes.plot(*zip(*points, strict=True), color=color, marker="o", markersize=3.5, linewidth=1.5, label=label)


if __name__ == "__main__":
    demo()
