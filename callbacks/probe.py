"""What probes have in common: each looks at a trained model after its test and leaves numbers,
pictures and notes.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch
from lightning import Callback, LightningModule, Trainer

from callbacks.figures.drawing import Draws, Picture, draw_pictures
from callbacks.results import output_folder
from core.atomic_io import write_atomically
from core.errors import InputError
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier
from lightning_modules.preserve_state import preserve_state


@dataclass
class ProbeResult:
    """What a probe found: numbers for `results.json`, pictures, plain data for files of its own,
    and what a reader must know about them.
    """

    metrics: dict[str, float] = field(default_factory=dict)
    # by file name, without its ending; drawn when the numbers are safe
    figures: dict[str, Picture] = field(default_factory=dict)
    tables: dict[str, Any] = field(default_factory=dict)  # the same; written as JSON
    # the same, of one row per item; written as parquet
    items: dict[str, pa.Table] = field(default_factory=dict)
    # one sentence each: what is absent, what did not converge
    notes: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Tables, then pictures to `figures/NAME.png` in a run's folder; what could not be drawn is
        added to the notes.
        """
        self.write_tables(folder)
        self.notes += draw_pictures(self.figures, folder)

    def write_tables(self, folder: Path) -> None:
        """Tables alone, to `NAME.json` or `NAME.parquet` in a run's folder."""
        for name, table in self.tables.items():
            write_atomically(folder / f"{name}.json", json.dumps(table) + "\n")
        for name, rows in self.items.items():
            content = BytesIO()
            pq.write_table(rows, content)
            write_atomically(folder / f"{name}.parquet", content.getvalue())


class Probe(Draws, ABC):
    """A callback that measures a trained classifier on its datamodule, after a test, and changes
    nothing in either.

    `measure` knows no Trainer, so that it also serves the members of a pack and anybody's own
    script.
    """

    changes_training = False

    notes: list[str]  # of the last test; `Results` keeps them beside the metrics
    folder: Path | None = None  # of the run that is examined, where it has one

    @abstractmethod
    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """Look at the classifier, which is in eval mode, on data that is set up.

        Every rank of a DDP run calls this at the same time.
        """

    def run(
        self, classifier: AnnotatorClassifier, data: VoteDataModule, folder: Path | None = None
    ) -> ProbeResult:
        """`measure`, after a check of the weights and without leaving a trace in the classifier.

        `folder` is where the run's files are.
        """
        name = next(
            (name for name, value in classifier.named_parameters() if not value.isfinite().all()),
            None,
        )
        if name is not None:
            raise InputError(
                f"{type(self).__name__}: {name} holds values that are not finite numbers; this "
                "training diverged, so train again with a lower learning rate."
            )
        self.folder = folder
        with preserve_state(classifier):
            return self.measure(classifier, data)

    @classmethod
    def can_be_packed(cls) -> bool:
        """Whether the members of a pack are served as a run alone is.

        A pack calls `measure`, but none of Lightning's hooks; so a class with hooks of its own is
        not served, and its runs train alone.
        """
        return not own_hooks(cls, Probe)

    def on_test_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Run and log; pictures are left for `Results` to have drawn."""
        assert isinstance(pl_module, AnnotatorClassifier)
        result = self.run(pl_module, trainer.datamodule, Path(trainer.default_root_dir))  # pyright: ignore[reportAttributeAccessIssue]
        self.notes = result.notes
        numbers = {
            f"test/{name}": torch.tensor(value, dtype=torch.float64)
            for name, value in result.metrics.items()
        }
        pl_module.log_dict(numbers, sync_dist=True)
        self.pictures = result.figures
        if trainer.is_global_zero:
            result.write_tables(output_folder(trainer))


def own_hooks(kind: type[Callback], base: type[Callback]) -> list[str]:
    """The hooks of Lightning by which a class differs from the base that it derives from.

    >>> class Watcher(Callback):
    ...     def on_train_epoch_end(self, trainer, pl_module): ...
    >>> own_hooks(Watcher, Callback)
    ['on_train_epoch_end']
    """
    others = ("setup", "teardown", "state_dict", "load_state_dict")
    return [
        name
        for name in dir(Callback)
        if (name.startswith("on_") or name in others)
        and getattr(kind, name) is not getattr(base, name)
    ]
