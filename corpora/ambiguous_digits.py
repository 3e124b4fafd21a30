"""Ambiguous digits of our own, where Ambiguous-MNIST is not at hand: decoded from between two
digits, labelled by a classifier's softmax.

They follow the recipe of Mukhoti et al. (2023) in small: a plain autoencoder, one classifier
instead of an ensemble, and no filter by mutual information. They are called `interpolated` wherever
they go, for they are not Ambiguous-MNIST.
"""

from pathlib import Path

import numpy as np
import torch
from scipy.special import entr
from torch import nn

from core.errors import InputError
from core.randomness import generator
from corpora.latent_digits import DigitVAE, between, trained_vae
from corpora.options import INTERPOLATED, Interpolation
from corpora.selection import draw, even_quotas
from corpora.short_training import predicted, reproducibly, trained
from corpora.sources import Source
from corpora.stages import Arrays, Shapes, key_of, stage
from datamodules.io.mnist import DIGITS, SIDE
from lightning_modules.networks import LeNet

ENTROPY_BINS = 10


def interpolated_source(
    mnist: Source, options: Interpolation, seed: int, folder: Path, key: str
) -> tuple[Source, np.ndarray]:
    """The made digits as a source, and the rows of MNIST that they were made of: two for each
    image. Every step is kept in `folder`.
    """
    digits = mnist.digits
    reserved = reserve(mnist.part, options.digits, seed)
    images, labels = mnist.images[reserved], mnist.labels[reserved]
    with reproducibly(seed):
        vae, reader = DigitVAE(options.dimensions).eval(), LeNet((1, SIDE, SIDE), DIGITS)
    learned = stage(
        folder / "autoencoder.safetensors",
        key_of(key, "autoencoder"),
        lambda: _weights(trained_vae(images, options.dimensions, options.epochs, seed)),
        _shapes(vae),
    )
    _fill(vae, learned)
    learned = stage(
        folder / "classifier.safetensors",
        key_of(key, "classifier"),
        lambda: _weights(trained(LeNet, images, labels, options.classifier_epochs, seed)),
        _shapes(reader),
    )
    _fill(reader, learned)

    def make() -> Arrays:
        ends = pairs(digits[reserved], seed)
        share = generator(seed, "interpolation").uniform(0.2, 0.8, size=len(ends))
        decoded = between(vae, images[ends[:, 0]], images[ends[:, 1]], share)
        with reproducibly(seed):
            probs = predicted(reader, decoded).double().numpy()
        probs /= probs.sum(1, keepdims=True)
        chosen = evenly(probs, options.images, seed)
        return {
            "images": decoded[chosen],
            "labels": probs[chosen],
            "ends": reserved[ends[chosen]],
            "share": share[chosen],
        }

    number = options.images
    shapes = {
        "images": (number, SIDE, SIDE),
        "labels": (number, DIGITS),
        "ends": (number, 2),
        "share": (number,),
    }
    made = stage(folder / "interpolated.safetensors", key_of(key, "interpolated"), make, shapes)
    return Source(
        INTERPOLATED, made["images"], made["labels"], np.repeat("made", len(made["images"]))
    ), made["ends"]


def reserve(part: np.ndarray, number: int, seed: int) -> np.ndarray:
    """The rows of MNIST's training part that are kept for interpolation alone."""
    rows = np.flatnonzero(part == "train")
    if number > len(rows):
        raise InputError(
            f"interpolation.digits is {number}, but MNIST has only {len(rows)} training items."
        )
    return np.sort(generator(seed, "interpolation-digits").permutation(rows)[:number])


def pairs(digits: np.ndarray, seed: int) -> np.ndarray:
    """Row numbers of two images each that show different digits, [P, 2]; no image is in two pairs.

    >>> found = pairs(np.arange(100) % 10, seed=0)
    >>> bool((found[:, 0] % 10 != found[:, 1] % 10).all()), len(np.unique(found)) == found.size
    (True, True)
    """
    shuffled = generator(seed, "interpolation-pairs").permutation(len(digits))
    both = shuffled[: len(digits) // 2 * 2].reshape(-1, 2)
    return both[digits[both[:, 0]] != digits[both[:, 1]]]


def evenly(probs: np.ndarray, number: int, seed: int) -> np.ndarray:
    """Rows of so many labels, as evenly as there are some over ten bins of normalised entropy and
    over the likeliest digit.
    """
    level = np.minimum(entr(probs).sum(1) / np.log(DIGITS) * ENTROPY_BINS, ENTROPY_BINS - 1).astype(
        int
    )
    cell = level * DIGITS + probs.argmax(1)
    available = np.bincount(cell, minlength=ENTROPY_BINS * DIGITS)
    if number > len(probs):
        raise InputError(
            f"interpolation.images is {number}, but interpolation.digits gave only {len(probs)} "
            "pairs of different digits; ask for more digits."
        )
    return draw(cell, even_quotas(available, number), seed)


def _weights(network: nn.Module) -> Arrays:
    return {name: tensor.detach().numpy() for name, tensor in network.state_dict().items()}


def _shapes(network: nn.Module) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}


def _fill(network: nn.Module, weights: Arrays) -> None:
    network.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
