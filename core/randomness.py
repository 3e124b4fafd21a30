"""Random numbers as a function of (seed, purpose, counters).

So nothing depends on what was drawn before.
"""

import zlib

import numpy as np

from core.errors import InputError


def generator(seed: int, purpose: str, *counters: int) -> np.random.Generator:
    """A generator of its own for each purpose and counter; no two share a stream.

    >>> generator(0, "order", 3).random() == generator(0, "order", 3).random()
    True
    >>> generator(0, "order", 3).random() == generator(0, "order", 4).random()
    False
    """
    if seed < 0:
        raise InputError(f"seed is {seed}; it must be 0 or larger.")
    entropy = [seed, zlib.crc32(purpose.encode()), *counters]
    return np.random.default_rng(np.random.SeedSequence(entropy))


def advanced(rng: np.random.Generator, numbers: int) -> np.random.Generator:
    """The generator as it would be after `random` had given so many numbers, without making them.

    >>> generator(0, "order").random(5)[3:].tolist() == advanced(
    ...     generator(0, "order"), 3).random(2).tolist()
    True
    """
    if numbers:
        rng.bit_generator.advance(numbers)  # pyright: ignore[reportAttributeAccessIssue]  # PCG64
    return rng


def some_of(rows: np.ndarray, most: int | None, seed: int) -> np.ndarray:
    """At most so many of the rows, drawn without replacement; all of them if `most` is None.

    They keep their order.

    >>> some_of(np.arange(10, 20), 3, seed=0)
    array([16, 18, 19])
    """
    if most is None or len(rows) <= most:
        return rows
    return rows[np.sort(generator(seed, "some-of", len(rows)).permutation(len(rows))[:most])]
