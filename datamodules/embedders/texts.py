"""What embedders of texts check before they start."""

from core.errors import InputError, name_rows
from datamodules.embedders.embedder import Inputs


def check_texts(inputs: Inputs, name: str) -> list[str]:
    """The texts, if all of them say something: the embedding of nothing would look like any other.

    >>> check_texts(["A dog barks.", " ", "It rains.", ""], "MiniLM")
    Traceback (most recent call last):
    core.errors.InputError: rows 1, 3 of the texts hold nothing to embed; leave such items out.
    """
    if not isinstance(inputs, list):
        raise InputError(
            f"{name} embeds texts, but these inputs are images; choose an embedder of images."
        )
    empty = [row for row, text in enumerate(inputs) if not text.strip()]
    if empty:
        raise InputError(
            f"{name_rows(empty)} of the texts hold{'s' * (len(empty) == 1)} nothing to embed; "
            "leave such items out."
        )
    broken = [row for row, text in enumerate(inputs) if not _is_unicode(text)]
    if broken:
        raise InputError(
            f"{name_rows(broken)} of the texts cannot be written as UTF-8; read the file again "
            "with its right encoding."
        )
    return inputs


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, as a careless \\u escape leaves it
        return False
    return True
