"""JSON of runs, which somebody may have cut short, altered, or made to deceive."""

import json
import sys
from pathlib import Path
from typing import Any

from bounded_files import read_bounded

MOST_BYTES = 100_000_000


def read_json(path: Path) -> Any:
    """What a JSON file says; None where it is absent, cut short, no file, or no JSON that could be written again."""
    try:
        text = read_bounded(path, MOST_BYTES)
        content = json.loads(text)
        if "\\u" in text:
            json.dumps(content, ensure_ascii=False).encode()  # half a character is no text that any file can hold
        return content
    except (OSError, ValueError, RecursionError):
        return None


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number that a float can hold; it may be NaN or infinite.

    >>> is_number(3), is_number(float("nan")), is_number(True), is_number("3"), is_number(10**400)
    (True, True, False, False, False)
    """
    return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
