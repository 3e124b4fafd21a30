"""Encoded pictures, from a file or from a cell of a table: read by Pillow, in the few formats that
only hold pixels.
"""

import struct
import warnings
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from core.errors import InputError

# Others can do more than hold pixels: an EPS file, for one, is a program that Pillow hands to
# Ghostscript.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
# what Pillow's readers of single formats raise for files that are no whole images
UNREADABLE = (
    *(OSError, SyntaxError, ValueError, EOFError, OverflowError, IndexError, TypeError, KeyError),
    *(struct.error, zlib.error, Warning, Image.DecompressionBombError),
)
MOST_PIXELS = 50_000_000  # an image that unpacks to more is no image of a dataset


def decode_image(content: Path | bytes, mode: str, name: str) -> np.ndarray:
    """The pixels of a picture as bytes, [height, width, 3] for the mode RGB and [height, width] for
    L; errors call it by `name`.

    >>> white = BytesIO()
    >>> Image.new("L", (3, 2), 255).save(white, "png")
    >>> decode_image(white.getvalue(), "L", "a cell").tolist()
    [[255, 255, 255], [255, 255, 255]]
    """
    try:
        with warnings.catch_warnings():
            # Pillow warns of files that are cut short or too large, and goes on
            warnings.simplefilter("error")
            with Image.open(
                BytesIO(content) if isinstance(content, bytes) else content, formats=FORMATS
            ) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise InputError(
                        f"{name} has {image.width} x {image.height} pixels; an image may have "
                        f"{MOST_PIXELS:,}."
                    )
                if image.mode.startswith(("I", "F")):
                    raise InputError(
                        f"{name} has more than 8 bits per pixel and channel ({image.mode}); save "
                        "it with 8."
                    )
                return np.array(image.convert(mode))
    except InputError:
        raise
    except UNREADABLE as error:
        raise InputError(
            f"{name} cannot be read as an image; it was cut short or is something else."
        ) from error
