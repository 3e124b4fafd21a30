"""The levels of a grid's factors: how they are called, which of them a part of a report looks at,
and that it mixes none unsaid.
"""

from typing import Any

from studies.schema.checks import Checks

Levels = dict[str, list[Any]]  # by factor


def chosen_levels(checks: Checks, where: Any, levels: Levels, key: str) -> tuple[Levels, Levels]:
    """`where` with a list for every factor that it names, and what it leaves of the levels of all
    factors.
    """
    where = checks.mapping(where or {}, key, set(levels))
    where = {
        factor: chosen if isinstance(chosen, list) else [chosen] for factor, chosen in where.items()
    }
    for factor, chosen in where.items():
        if not chosen:
            checks.wrong(f"{key}.{factor}", "is an empty list; it must leave at least one level")
        for level in chosen:
            checks.one_of(level, levels[factor], f"{key}.{factor}", f"a level of {factor}")
    return where, {
        factor: [level for level in all_ if level in where.get(factor, all_)]
        for factor, all_ in levels.items()
    }


def nothing_left_over(
    checks: Checks, levels: Levels, shown: set[str], paired: list[str], key: str
) -> None:
    """A mean over a factor that is neither shown nor paired would mix different experiments
    unsaid.
    """
    for factor in shown.intersection(paired):
        checks.wrong(
            key, f"shows {factor}, which is paired: its levels are what means are taken over"
        )
    for factor, left in levels.items():
        if len(left) > 1 and factor not in shown and factor not in paired:
            checks.wrong(
                key, f"would average over {factor}; show that factor, or fix its level with where"
            )


def all_levels(grid: dict[str, Any]) -> Levels:
    """The levels of every factor of a grid, in the order of the YAML."""
    return {factor: list(labelled_levels(factor, levels)) for factor, levels in grid.items()}


def labelled_levels(name: str, levels: Any) -> dict[Any, dict[str, Any]]:
    """Each level's label and the options that it sets."""
    if isinstance(levels, dict):
        return levels
    return {level_label(value): {name: value} for value in levels}


def level_label(value: Any) -> Any:
    """A level as it appears in tables: a class by its name and options, anything else as it is.

    >>> level_label({"class_path": "StochasticLabelSampling", "init_args": {"resample_every": 5}})
    'StochasticLabelSampling(resample_every=5)'
    """
    if isinstance(value, dict) and "class_path" in value:
        options = ", ".join(f"{key}={option}" for key, option in value.get("init_args", {}).items())
        return f"{value['class_path']}({options})" if options else value["class_path"]
    return value
