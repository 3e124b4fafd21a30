"""Which levels of a grid's factors a part of a report looks at, and that it mixes none unsaid."""

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
