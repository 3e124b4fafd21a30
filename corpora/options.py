"""What can be chosen about a corpus of digits: a YAML of configs/corpora, checked.

The defaults are those of the stand-in of soft-digits.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from core.errors import InputError
from core.plain_yaml import read_plain
from corpora.difficulty import Regions
from corpora.sources import PUBLISHED

INTERPOLATED = (
    "interpolated"  # the ambiguous digits that are made here, which are not Ambiguous-MNIST
)


@dataclass(frozen=True)
class SourceOptions:
    """What becomes of one source.

    One without sizes is searched for duplicates and mapped, but nothing of it is chosen.
    """

    regions: Regions = field(default_factory=Regions)
    sizes: tuple[int, int, int] | None = None  # items of train, validation and test

    def __post_init__(self):
        if self.sizes is not None and (
            len(self.sizes) != 3
            or not all(isinstance(size, int) and size > 0 for size in self.sizes)
        ):
            raise InputError(
                f"sizes is {list(self.sizes)}; it must be three numbers above 0, of train, "
                "validation and test."
            )


@dataclass(frozen=True)
class Interpolation:
    """How ambiguous digits are made where Ambiguous-MNIST is not at hand."""

    # of MNIST's training part, for this alone: none of them is in the corpus itself, and each is in
    # one image at most
    digits: int = 30_000
    dimensions: int = 10  # of the latent space
    epochs: int = 15  # of the autoencoder
    classifier_epochs: int = 3  # of the classifier whose softmax labels them
    # chosen evenly over the entropy of their labels and over digits, to take the place of
    # Ambiguous-MNIST's 12,000
    images: int = 8_000

    def __post_init__(self):
        for name in ("dimensions", "epochs", "classifier_epochs", "images"):
            if getattr(self, name) < 1:
                raise InputError(
                    f"interpolation.{name} is {getattr(self, name)}; it must be 1 or more."
                )
        if self.digits < 2 * self.images:
            raise InputError(
                f"interpolation.digits is {self.digits}; {self.images} images of two digits each "
                f"take at least {2 * self.images}."
            )


def _stand_in() -> dict[str, SourceOptions]:
    soft = Regions(epochs=20, ambiguous_variability=0.15, easy_confidence=0.6, hard_confidence=0.4)
    return {
        "mnist": SourceOptions(Regions(), (2131, 457, 457)),
        INTERPOLATED: SourceOptions(soft, (1738, 373, 373)),
    }


@dataclass(frozen=True)
class CorpusOptions:
    """A whole corpus.

    Where two images are alike, the one of the earlier source is kept; within a source, train goes
    before test.
    """

    sources: dict[str, SourceOptions] = field(default_factory=_stand_in)
    # correlation of pixels from which two images count as one; below it, on MNIST, any two thin
    # ones are alike
    near_duplicate: float = 0.99
    easy_per_digit: int = 150  # easy items of every digit in training, at least
    known_digits: int = (
        20_000  # of MNIST, that are in no image: what a simulated crowd has seen before
    )
    interpolation: Interpolation = field(default_factory=Interpolation)
    seed: int = 0

    def __post_init__(self):
        allowed = (*PUBLISHED, INTERPOLATED)
        other = [name for name in self.sources if name not in allowed]
        if other or not any(source.sizes for source in self.sources.values()):
            message = f"sources has {other[0]}" if other else "no source has sizes"
            raise InputError(
                f"{message}; sources are of {', '.join(allowed)}, and one at least needs sizes."
            )
        if not 0 < self.near_duplicate <= 1:
            raise InputError(
                f"near_duplicate is {self.near_duplicate}; it must be a correlation above 0 and "
                "at most 1."
            )
        for name in ("easy_per_digit", "known_digits"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} is {getattr(self, name)}; it must be 0 or more.")


@dataclass(frozen=True)
class Place:
    """Where a corpus is made of what."""

    root: str  # the folder that holds `mnist` and the other sources
    out: Path


def read_options(path: Path) -> tuple[CorpusOptions, Place]:
    """A YAML with the fields above, and `root` and `out`."""
    try:
        given = read_plain(path)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(
            f"{path} cannot be read as YAML; it must be a file like those of configs/corpora."
        ) from error
    try:
        given = _fields(given, {*CorpusOptions.__dataclass_fields__, "root", "out"}, "the file")
        place = Place(
            str(given.pop("root", "data")),
            Path(str(given.pop("out", "data/soft-digits-simulated"))),
        )
        if "sources" in given:
            entries = _fields(given["sources"], {*PUBLISHED, INTERPOLATED}, "sources")
            given["sources"] = {name: _source(entry, name) for name, entry in entries.items()}
        if "interpolation" in given:
            given["interpolation"] = _made(Interpolation, given["interpolation"], "interpolation")
        return _made(CorpusOptions, given, "the file"), place
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _source(entry: Any, name: str) -> SourceOptions:
    entry = dict(_fields(entry, {*Regions.__dataclass_fields__, "sizes"}, name))
    sizes = entry.pop("sizes", None)
    if sizes is not None and not isinstance(sizes, list):
        raise InputError(
            f"sizes of {name} is {sizes}; it must be three numbers above 0, of train, validation "
            "and test."
        )
    return SourceOptions(_made(Regions, entry, name), None if sizes is None else tuple(sizes))  # pyright: ignore[reportArgumentType]


def _fields(value: Any, allowed: set[str], of: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{of} is {value}; it must have entries, of {', '.join(sorted(allowed))}.")
    for name in value:
        if name not in allowed:
            raise InputError(
                f"{of} has the entry {name}; allowed are {', '.join(sorted(allowed))}."
            )
    return value


def _made(kind: type, value: Any, of: str) -> Any:
    """A dataclass of plain numbers (and what was made before); a default's type says what a number
    must be.
    """
    fields = kind.__dataclass_fields__
    for name, number in _fields(value, set(fields), of).items():
        wanted = type(fields[name].default)
        if wanted in (int, float) and (
            isinstance(number, bool)
            or not isinstance(number, int if wanted is int else int | float)
        ):
            raise InputError(
                f"{name} of {of} is {number}; it must be a "
                f"{'whole ' if wanted is int else ''}number."
            )
    return kind(**value)
