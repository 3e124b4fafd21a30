"""JSON of runs, which somebody may have cut short, altered, or made to deceive.

JSON has neither NaN nor infinity. Where a number is not defined a file says null, which is read as
NaN; earlier versions wrote NaN.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

from core.bounded_files import read_bounded

MOST_BYTES = 100_000_000


def read_json(path: Path) -> Any:
    """What a JSON file says; None where it is absent, cut short, or no JSON that can be written."""
    try:
        text = read_bounded(path, MOST_BYTES)
        content = json.loads(text)
        if "\\u" in text:
            # half a character is no text that any file can hold
            json.dumps(content, ensure_ascii=False).encode()
        return content
    except (OSError, ValueError, RecursionError):
        return None


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number that a float can hold; it may be NaN or infinite.

    >>> is_number(3), is_number(float("nan")), is_number(True), is_number("3"), is_number(10**400)
    (True, True, False, False, False)
    """
    return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)


def without_nan(content: Any) -> Any:
    """The same content as a file holds it: null for a number that is not defined.

    >>> without_nan({"kl": [0.5, float("nan")]})
    {'kl': [0.5, None]}
    """
    if isinstance(content, dict):
        return {key: without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def with_nan(numbers: dict[str, float | None]) -> dict[str, float]:
    """The numbers of a file: NaN for null."""
    return {name: math.nan if value is None else value for name, value in numbers.items()}
