"""Damaged copies of a file, each a function of (seed, number): the same case comes back by its
number alone.
"""

from collections.abc import Callable

import numpy as np

from core.randomness import generator

MAGIC = (
    b"\x1f\x8b\x08\x00",
    b"PK\x03\x04",
    b"PAR1",
    b"\x89PNG\r\n\x1a\n",
    b"\x93NUMPY\x01\x00",
    b"\x80\x04\x95",
    b"%!PS-Adobe-3.0 EPSF-3.0\n",
)
LARGE = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
    b"\x80\0\0\0",
    b"\0\0\0\x80",
)
WORDS = (
    *(
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-1",
        "0",
        "9",
        "99999999999999999999",
        "0x7fffffff",
        "1_000_000_000",
        "null",
        "None",
        "true",
    ),
    *(
        "[]",
        "{}",
        "[[[[",
        "{{{{",
        "}",
        "]",
        ",",
        ";",
        "\t",
        "\n",
        "\n\n",
        "\r",
        '"',
        "'",
        ":",
        "- ",
        "&a ",
        "*a ",
        "<<: *a",
    ),
    *(
        "!!python/object/apply:os.system ",
        "!!binary ",
        "\0",
        "\x1b[2J",
        "\u202e",
        "\ufeff",
        "é",
        "\U0001f600",
    ),
)
BROKEN_TEXT = (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80")  # none of them is UTF-8


def mutated(content: bytes, seed: int, number: int) -> tuple[str, bytes]:
    """What was done to the content, in a word, and what came of it.

    The first few numbers are the plainest damages; later ones combine several.

    >>> mutated(b"votes", seed=0, number=0), mutated(b"votes", seed=0, number=2)
    (('empty', b''), ('doubled', b'votesvotes'))
    """
    if number < len(PLAIN):
        name, change = PLAIN[number]
        return name, change(content)
    rng = generator(seed, "mutation", number)
    names = []
    for _ in range(1 + int(rng.integers(3)) * int(rng.integers(2))):
        change = CHANGES[int(rng.integers(len(CHANGES)))]
        content = change(content, rng)
        names.append(change.__name__.strip("_"))
    return " + ".join(names), content


PLAIN: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("empty", lambda content: b""),
    ("one byte", lambda content: content[:1]),
    ("doubled", lambda content: content * 2),
    ("the last byte is absent", lambda content: content[:-1]),
    ("half", lambda content: content[: len(content) // 2]),
    ("zeros", lambda content: bytes(len(content))),
    (
        "a page of the web",
        lambda content: b"<!DOCTYPE html><html><body>404: come back later</body></html>\n",
    ),
    ("a pickle", lambda content: b"cos\nsystem\n(S'true'\ntR."),
)


def _somewhere(content: bytes, rng: np.random.Generator) -> int:
    """A place in the file; every other time in its first bytes, where headers are."""
    return int(rng.integers(max(1, min(len(content), 128) if rng.integers(2) else len(content))))


def _range(content: bytes, rng: np.random.Generator) -> slice:
    start = _somewhere(content, rng)
    return slice(
        start, start + 1 + int(rng.integers(64 if rng.integers(2) else max(1, len(content) // 2)))
    )


def _put(content: bytes, place: slice, new: bytes) -> bytes:
    return content[: place.start] + new + content[place.stop :]


def _cut_short(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def _without_its_beginning(content: bytes, rng: np.random.Generator) -> bytes:
    return content[int(rng.integers(len(content) + 1)) :]


def _flipped_bit(content: bytes, rng: np.random.Generator) -> bytes:
    if not content:
        return content
    place = _somewhere(content, rng)
    return _put(
        content, slice(place, place + 1), bytes([content[place] ^ 1 << int(rng.integers(8))])
    )


def _other_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    place = _range(content, rng)
    return _put(content, place, rng.bytes(len(content[place])))


def _inserted_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    place = _somewhere(content, rng)
    return _put(content, slice(place, place), rng.bytes(1 + int(rng.integers(16))))


def _zeroed_range(content: bytes, rng: np.random.Generator) -> bytes:
    place = _range(content, rng)
    return _put(content, place, bytes(len(content[place])))


def _removed_range(content: bytes, rng: np.random.Generator) -> bytes:
    return _put(content, _range(content, rng), b"")


def _repeated_range(content: bytes, rng: np.random.Generator) -> bytes:
    place = _range(content, rng)
    return _put(content, place, content[place] * (2 + int(rng.integers(3))))


def _large_number(content: bytes, rng: np.random.Generator) -> bytes:
    place, number = _somewhere(content, rng), LARGE[int(rng.integers(len(LARGE)))]
    return _put(content, slice(place, place + len(number)), number)


def _other_magic(content: bytes, rng: np.random.Generator) -> bytes:
    magic = MAGIC[int(rng.integers(len(MAGIC)))]
    return _put(content, slice(0, len(magic)), magic)


def _hostile_word(content: bytes, rng: np.random.Generator) -> bytes:
    """In the place of a number or word of a text, or between two of them."""
    words = [word.encode() for word in WORDS] + list(BROKEN_TEXT)
    start = _somewhere(content, rng)
    stop = start
    while rng.integers(8) and stop < len(content) and content[stop : stop + 1].isalnum():
        stop += 1
    return _put(content, slice(start, stop), words[int(rng.integers(len(words)))])


CHANGES = (
    _cut_short,
    _without_its_beginning,
    _flipped_bit,
    _other_bytes,
    _inserted_bytes,
    _zeroed_range,
    _removed_range,
    _repeated_range,
    _large_number,
    _other_magic,
    _hostile_word,
    _hostile_word,
)
