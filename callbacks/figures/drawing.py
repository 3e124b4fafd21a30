"""A figure never costs a result: pictures are drawn when the numbers are safe, and one that cannot
be drawn becomes a note.
"""

import os
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

import numpy as np
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.loggers import TensorBoardLogger
from matplotlib.figure import Figure
from PIL import Image

from core.atomic_io import write_atomically
from core.errors import InputError

Picture = Figure | Callable[[], Figure]  # a figure, or what draws it


def draw_pictures(
    pictures: Mapping[str, Picture], folder: Path, also: Callable[[str, bytes], None] | None = None
) -> list[str]:
    """Draw to `figures/NAME.png` in a run's folder; returns a sentence for each picture that could
    not be drawn.

    `also` is given the content of every other file. Whatever drawing raises ends in the sentence:
    what was measured does not depend on it.
    """
    notes = []
    for name, picture in pictures.items():
        path = folder / "figures" / f"{name}.png"
        try:
            figure = picture() if callable(picture) else picture
            content = BytesIO()
            figure.savefig(content, format="png")
            if also:
                also(name, content.getvalue())
            write_atomically(path, content.getvalue())
        except Exception as error:
            notes.append(f"figures/{name}.png is not drawn: {reason(error)}")
            if os.path.lexists(path):  # that of an earlier test would now show something else
                path.unlink()
    return notes


def reason(error: Exception) -> str:
    r"""Why something was not drawn, as the end of a sentence.

    >>> reason(ValueError("zero-size array\nto reduction operation"))
    'zero-size array to reduction operation (ValueError).'
    """
    if isinstance(error, InputError):
        return str(error)
    message = str(InputError(" ".join(str(error).split()))).rstrip(".:")
    return f"{message} ({type(error).__name__})." if message else f"{type(error).__name__}."


class Draws(Callback):
    """A callback that leaves pictures.

    `Results` has them drawn after it has written the numbers; in a fit, or without `Results`, that
    is the last thing of all.
    """

    pictures: dict[str, Picture] | None = None  # still to be drawn, by file name

    def tag(self, name: str) -> str:
        """How TensorBoard calls a picture."""
        return f"test/{name}"

    def draw(self, trainer: Trainer, folder: Path | None = None) -> list[str]:
        """Draw what there is, to TensorBoard and a folder (else the run's); returns what could not
        be drawn, and why.
        """
        pictures, self.pictures = self.pictures or {}, None
        if not trainer.is_global_zero:
            return []
        loggers = [logger for logger in trainer.loggers if isinstance(logger, TensorBoardLogger)]

        def log(name: str, png: bytes) -> None:
            pixels = np.asarray(Image.open(BytesIO(png)).convert("RGB")) if loggers else None
            for logger in loggers:
                logger.experiment.add_image(
                    self.tag(name), pixels, trainer.current_epoch, dataformats="HWC"
                )

        return draw_pictures(pictures, folder or Path(trainer.default_root_dir), log)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """Draw what nobody had drawn before."""
        for note in self.draw(trainer):
            print(f"note: {note}")
