"""A report in TensorBoard: its figures, and one hparams entry per finished run with its factors and metrics."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.utils.tensorboard import SummaryWriter

if TYPE_CHECKING:
    from studies.report import Report


def log_report(report: "Report", folder: Path) -> None:
    """Write the log anew. Each hparams entry must be a folder of its own, so what an earlier report left is replaced as a whole."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}.part")
    try:
        with SummaryWriter(str(fresh)) as writer:
            for drawn in report.figures:
                if drawn.figure:
                    writer.add_figure(f"report/{drawn.spec.name}", drawn.figure, close=False)
            for record in report.collection.finished.values():
                factors = {name: _plain(level) for name, level in record.factors.items()}
                writer.add_hparams(factors, {f"hparams/{name}": value for name, value in record.metrics.items()}, run_name=record.run)
        if folder.exists():
            shutil.rmtree(folder)
        os.replace(fresh, folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _plain(level: Any) -> Any:
    """TensorBoard takes numbers, texts and truth values only."""
    return level if isinstance(level, bool | int | float | str) else str(level)
