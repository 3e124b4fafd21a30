"""A report in TensorBoard: its figures, and one hparams entry per finished run with its factors and
metrics.

An entry must be an event file in a folder of its own. `SummaryWriter.add_hparams` starts a thread
for each and writes the columns of the whole table into it; here the columns are written once, and
an entry is a file of about a kilobyte.
"""

import time
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image
from tensorboard.compat.proto import event_pb2, summary_pb2
from tensorboard.summary.writer.record_writer import RecordWriter
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import hparams

from core.atomic_io import naming

if TYPE_CHECKING:
    from studies.analysis.collect import Record
    from studies.figures.rendered_figure import RenderedFigure
    from studies.report.report import Report

# made at run time, so that no type checker sees them
Event: Any = event_pb2.Event  # pyright: ignore[reportAttributeAccessIssue]
Summary: Any = summary_pb2.Summary  # pyright: ignore[reportAttributeAccessIssue]
NAME = "events.out.tfevents"  # how TensorBoard knows an event file


def log_report(report: "Report", folder: Path) -> dict[str, Path]:
    """Write the log's files to a new folder, and return them by their names in the log."""
    records, now = list(report.collection.finished.values()), time.time_ns()
    with naming(folder.parent):
        with SummaryWriter(str(folder)) as writer:
            summaries = [_image(drawn) for drawn in report.figures if drawn.figure]
            if records:
                summaries.append(_columns(records))
            if writer.file_writer:
                for summary in summaries:
                    writer.file_writer.add_summary(summary)
        files = {path.name: path for path in folder.iterdir()}
        for number, record in enumerate(records):
            # a name of its own each time: TensorBoard goes on reading a file that it has open
            files[f"{record.run}/{NAME}.{now}.run"] = folder / f"{number}"
            _write_event(folder / f"{number}", _entry(record), now / 1e9)
    return files


def _image(drawn: "RenderedFigure") -> Any:
    """A figure's png as it is: `SummaryWriter.add_figure` would draw it again."""
    with Image.open(BytesIO(drawn.png)) as picture:
        image = Summary.Image(
            width=picture.width,
            height=picture.height,
            colorspace=len(picture.getbands()),
            encoded_image_string=drawn.png,
        )
    return Summary(value=[Summary.Value(tag=f"report/{drawn.spec.name}", image=image)])


def _columns(records: "list[Record]") -> Any:
    """What the table of all entries shows."""
    factors, metrics = {}, {}
    for record in records:
        factors |= _factors(record)
        metrics |= _metrics(record)
    return hparams(factors, metrics)[0]


def _entry(record: "Record") -> Any:
    """One run: its factors, that it ended, and its metrics."""
    _, start, end = hparams(_factors(record), {})
    numbers = [
        Summary.Value(tag=name, simple_value=value) for name, value in _metrics(record).items()
    ]
    return Summary(value=[*start.value, *end.value, *numbers])


def _factors(record: "Record") -> dict[str, Any]:
    return {name: _plain(level) for name, level in record.factors.items()}


def _metrics(record: "Record") -> dict[str, float]:
    return {f"hparams/{name}": value for name, value in record.metrics.items()}


def _write_event(path: Path, summary: Any, now: float) -> None:
    with open(path, "wb") as stream:
        records = RecordWriter(stream)
        records.write(Event(wall_time=now, file_version="brain.Event:2").SerializeToString())
        records.write(Event(wall_time=now, summary=summary).SerializeToString())


def _plain(level: Any) -> Any:
    """TensorBoard takes numbers, texts and truth values only."""
    return level if isinstance(level, bool | int | float | str) else str(level)
