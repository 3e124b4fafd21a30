"""`calibrate` as a factor of a grid: levels that differ only after training.

    grids:
      main:
        calibrate: [none, temperature, temperature_majority]
        seed_everything: [0, 1, 2]

are three runs, not nine. Each is tested with all these calibrators, and looked at once as it is and
once by each of them: as `none` its `kl` is `kl` of its results.json, and as `temperature`
`kl_temperature`.
"""

from collections.abc import Sequence
from typing import Any

from studies.schema.checks import Checks

CALIBRATE, RAW = "calibrate", "none"  # the factor, and its level of a model as it is


def split_off(factors: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The factors that runs are made of, and the levels of this one; none where there is none.

    >>> split_off({"calibrate": ["none", "vector"], "seed_everything": [0, 1]})
    ({'seed_everything': [0, 1]}, ['none', 'vector'])
    """
    others = {name: levels for name, levels in factors.items() if name != CALIBRATE}
    return others, factors.get(CALIBRATE, [])


def check_levels(levels: Any, key: str, checks: Checks) -> None:
    """Refuse what is no calibrator."""
    from metrics.calibrators import FORMS  # a file with a mistake is told so without torch

    if not isinstance(levels, list):
        checks.wrong(key, f"must be a list of calibrators, such as [{RAW}, temperature]")
    for level in levels:
        checks.one_of(level, (RAW, *FORMS), key)


def with_calibrators(config: dict[str, Any], levels: Sequence[str]) -> dict[str, Any]:
    """A run's config with the probe that measures these levels."""
    from experiment.run_callbacks import add_calibrators

    forms = [level for level in levels if level != RAW]
    if not forms:
        return config
    callbacks = add_calibrators(config["trainer"].get("callbacks"), forms)
    return {**config, "trainer": {**config["trainer"], "callbacks": callbacks}}


def as_calibrated(results: dict[str, Any], level: str) -> dict[str, Any]:
    """A run's results as if its model predicted what a calibrator makes of it: only the scores that
    there are of that, under their plain names.

    >>> as_calibrated({"metrics": {"kl": 0.4, "kl_vector": 0.3, "val_loss": 1.0}}, "vector")
    {'metrics': {'kl': 0.3}, 'worth': {}}
    """
    if level == RAW:
        return results
    metrics = {
        name: results["metrics"][f"{name}_{level}"]
        for name in results["metrics"]
        if f"{name}_{level}" in results["metrics"]
    }
    worth = {
        name: {**bounds, "skill": _skill(metrics[name], bounds)}
        for name, bounds in results.get("worth", {}).items()
        if name in metrics
    }
    return {**results, "metrics": metrics, "worth": worth}


def _skill(score: float, bounds: dict[str, Any]) -> float | None:
    """Where a score stands between a floor and a ceiling, which are those of the items."""
    floor, ceiling = bounds.get("floor"), bounds.get("ceiling")
    if floor is None or ceiling is None or floor == ceiling:
        return None
    return (floor - score) / (floor - ceiling)
