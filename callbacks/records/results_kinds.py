"""Whether a file's results are what a test writes: it may have been altered, and a report shows
whatever they say.
"""

from typing import Any

from core.read_json import is_number

KINDS: dict[str, Any] = {  # of all that is read of results
    "run": str,
    "dataset": str,
    "simulated_annotators": bool,
    "embedder": str | None,
    "val_is_test": bool,
    "versions": dict,
    "metrics": dict,
    "notes": list,
    "probes": list,
    "evaluated": dict,
    "worth": dict,
}


def are_results(content: dict[str, Any]) -> bool:
    """Whether there are metrics, and everything is of its kind; a file of an earlier version may
    lack some of the rest. A metric that is not defined is null.

    >>> sound, too_large = {"metrics": {"accuracy": 0.9}}, {"metrics": {"accuracy": 10**400}}
    >>> are_results(sound), are_results(too_large), are_results({"versions": [1]})
    (True, False, False)
    """
    return (
        "metrics" in content
        and all(isinstance(content[name], kind) for name, kind in KINDS.items() if name in content)
        and all(value is None or is_number(value) for value in content["metrics"].values())
        and all(isinstance(number, str) for number in content.get("versions", {}).values())
        and all(isinstance(note, str) for note in content.get("notes", []))
        and all(isinstance(probe, dict) for probe in content.get("probes", []))
        and all(_is_origin(origin) for origin in content.get("evaluated", {}).values())
        and all(_is_worth(worth) for worth in content.get("worth", {}).values())
    )


def _is_origin(origin: Any) -> bool:
    """Whether this says when, and by which version, a number was added to a test's."""
    return isinstance(origin, dict) and all(isinstance(part, str) for part in origin.values())


def _is_worth(worth: Any) -> bool:
    """Whether this says floor, ceiling and skill of a metric, as far as they are known."""
    return isinstance(worth, dict) and all(
        value is None or is_number(value) for value in worth.values()
    )
