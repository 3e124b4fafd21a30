"""How much OpenAI's embedding models take at once, in one text and in one request."""

from collections.abc import Iterator

import numpy as np

from core.errors import InputError, name_rows

MOST_TOKENS = 8_192  # of one text
# of a text that is cut: fewer than allowed, because a cut end may become other tokens
KEPT_TOKENS = 8_000
MOST_TOKENS_PER_REQUEST = 300_000


def cut_to_limit(texts: list[str]) -> tuple[list[str], int]:
    """Texts that the model takes, and the tokens that are kept of those which were too long for it.

    A token is at least one byte, so the tokens of short texts need not be counted, nor the
    tokenizer installed.

    >>> cut_to_limit(["A dog barks."])
    (['A dog barks.'], 8000)
    """
    long = [row for row, text in enumerate(texts) if len(text.encode()) > MOST_TOKENS]
    if not long:
        return texts, KEPT_TOKENS
    encoding, fitting = _encoding(long), list(texts)
    for row in long:
        tokens = encoding.encode(texts[row], disallowed_special=())
        if len(tokens) > MOST_TOKENS:
            fitting[row] = encoding.decode_bytes(tokens[:KEPT_TOKENS]).decode(errors="ignore")
    return fitting, KEPT_TOKENS


def _encoding(rows: list[int]):
    try:
        import tiktoken

        return tiktoken.get_encoding("cl100k_base")
    except Exception as error:  # not installed, or no vocabulary to be had: there are many errors
        raise InputError(
            f"{name_rows(rows)} of the texts may be too long, and the tokens cannot be counted "
            f"({type(error).__name__}); "
            'install the tokenizer with pip install -e ".[openai]" and let it fetch its '
            "vocabulary once."
        ) from error


def requests_within_limits(texts: list[str], batch_size: int) -> Iterator[slice]:
    """Cut texts into requests of at most `batch_size` texts.

    A request has at most as many bytes as it may have tokens.

    >>> texts = ["a" * 200_000, "b" * 90_000, "c" * 90_000, "d"]
    >>> list(requests_within_limits(texts, batch_size=256))
    [slice(0, 2, None), slice(2, 4, None)]
    """
    ends = np.cumsum([len(text.encode()) for text in texts])
    start = 0
    while start < len(texts):
        before = ends[start - 1] if start else 0
        within = int(np.searchsorted(ends, before + MOST_TOKENS_PER_REQUEST, side="right"))
        stop = max(start + 1, min(start + batch_size, within))
        yield slice(start, stop)
        start = stop
