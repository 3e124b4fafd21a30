"""What papers published, from `published/*.yaml`: tables to show beside ours, and facts of their
running text.
"""

from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

PUBLISHED = Path(__file__).parents[1] / "published"


@cache
def published(kind: Literal["tables", "facts"]) -> dict[str, dict[str, Any]]:
    """Every entry by its name, as `basins.table2`, with the paper that it is from.

    >>> published("facts")["basins.loss_barrier"]["values"]
    {'mean': 2.05}
    """
    result = {}
    for path in sorted(PUBLISHED.glob("*.yaml")):
        content = yaml.safe_load(path.read_text())
        paper = {name: content[name] for name in ("paper", "source", "setting")}
        result |= {
            f"{path.stem}.{name}": {**paper, **entry}
            for name, entry in (content.get(kind) or {}).items()
        }
    return result


def published_fact(name: str) -> list[str]:
    """What a paper says in the place of a figure, for its caption; nothing where no fact is
    named.
    """
    return [f"Published: {fact_in_words(name)}."] if name else []


def fact_in_words(name: str) -> str:
    """
    >>> fact_in_words("basins.sparse_agreement")
    'agreeing 9, cells 12 (cells of Table 1 in which all 5 seeds favour hard delivery, of all cells;
    arXiv:2605.20642v1, Section 5.1)'
    """
    fact = published("facts")[name]
    values = ", ".join(f"{what} {value}" for what, value in fact["values"].items())
    note = f"; {fact['note']}" if "note" in fact else ""
    return f"{values} ({fact['what']}; {fact['source']}, {fact['where']}{note})"
