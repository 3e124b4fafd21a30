"""A report in TensorBoard: its figures, and one hparams entry per finished run with its factors and
metrics.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.utils.tensorboard import SummaryWriter

from core.atomic_io import naming

if TYPE_CHECKING:
    from studies.report.report import Report


def log_report(report: "Report", folder: Path) -> dict[str, Path]:
    """Write the log to a new folder, and return its files by their names in it.

    Each hparams entry must be a folder of its own.
    """
    with naming(folder.parent), SummaryWriter(str(folder)) as writer:
        for drawn in report.figures:
            if drawn.figure:
                writer.add_figure(f"report/{drawn.spec.name}", drawn.figure, close=False)
        for record in report.collection.finished.values():
            factors = {name: _plain(level) for name, level in record.factors.items()}
            writer.add_hparams(
                factors,
                {f"hparams/{name}": value for name, value in record.metrics.items()},
                run_name=record.run,
            )
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _plain(level: Any) -> Any:
    """TensorBoard takes numbers, texts and truth values only."""
    return level if isinstance(level, bool | int | float | str) else str(level)
