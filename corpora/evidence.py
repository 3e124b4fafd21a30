"""How much each image of a corpus looks like each digit: what a simulated crowd goes by."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from core.errors import InputError
from core.randomness import generator
from corpora.annotation.crowd import class_evidence
from corpora.digit_corpus import DigitCorpus
from corpora.options import CorpusOptions
from corpora.sources import Source
from corpora.stages import Arrays, key_of, stage

EVIDENCE = "evidence.safetensors"


def make_evidence(
    corpus: DigitCorpus,
    mnist: Source,
    taken: np.ndarray,
    options: CorpusOptions,
    out: Path,
    key: str,
    say: Callable[[str], None],
) -> None:
    """Compare each image with digits of MNIST that are in none, as somebody who knows those would.

    `taken` are rows of MNIST that other images were made of. The result is kept in `out`.
    """
    used = np.union1d(taken, corpus.indices[corpus.source == "mnist"])
    rest, wanted = np.setdiff1d(np.arange(len(mnist)), used), options.known_digits
    if len(rest) < wanted:
        raise InputError(
            f"known_digits is {wanted}, but only {len(rest)} digits of MNIST are in no image "
            "of the corpus."
        )
    known = np.sort(generator(options.seed, "known-digits").permutation(rest)[:wanted])

    def make() -> Arrays:
        say("comparing the images with digits that a crowd knows")
        seen, examples = _flat(corpus.images), _flat(mnist.images[known])
        nothing = np.empty((len(seen), 0), int)
        digits = mnist.digits[known]
        evidence = class_evidence(seen, examples, digits, own=nothing, sharpness=1.0)
        return {"evidence": evidence, "known": known}

    shapes = {"evidence": (len(corpus), None), "known": (wanted,)}
    stage(out / EVIDENCE, key_of(key, "evidence"), make, shapes)


def evidence_of(out: Path, key: str) -> np.ndarray:
    """The evidence [items, digits] that was kept with a corpus whose report has this key."""

    def absent() -> Arrays:
        raise InputError(
            f"{out / EVIDENCE} was altered; delete {out / 'corpus.json'} to have the corpus built "
            "again."
        )

    shapes = {"evidence": (None, None), "known": (None,)}
    return stage(out / EVIDENCE, key_of(key, "evidence"), absent, shapes)["evidence"]


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1).astype(np.float32) / 255
