"""What a reader looks at to see whether predictions are of the right items and classes: classes by
their shares, and the items on which a file differs most from people.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from datamodules.votes.labels import printed
from metrics import per_item
from studies.tables.grid import Column, Grid, GridCell

MOST_CLASSES, MOST_ITEMS = 30, 10  # that are shown


def class_grid(
    tables: Mapping[str, np.ndarray], people: np.ndarray, class_names: Sequence[str]
) -> Grid:
    """The share of each class among votes and in each file's predictions; the most voted first."""
    columns = [Column("Class", "label", right=False)]
    columns += [Column(name, "value", right=True) for name in ("Votes", *tables)]
    shares = [people.mean(0), *(table.mean(0) for table in tables.values())]
    order = np.argsort(-shares[0], kind="stable")[:MOST_CLASSES]
    rows = [
        [GridCell(printed(class_names[k])), *(GridCell(f"{share[k]:.1%}") for share in shares)]
        for k in map(int, order)
    ]
    return Grid("classes", "Classes", [], columns, rows)


def item_grid(
    table: np.ndarray, people: np.ndarray, ids: Sequence[str], class_names: Sequence[str]
) -> Grid:
    """The items whose predictions are furthest from what people said, by KL.

    >>> grid = item_grid(np.array([[0.9, 0.1], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]]),
    ...     ["a", "b"], ["no", "yes"])
    >>> [cell.text for cell in grid.rows[0]]
    ['a', '2.303', 'yes (100%)', 'no (90%)']
    """
    headings = {"Item": "label", "KL (nats)": "value", "People": "value", "Model": "value"}
    apart = per_item.kl(torch.from_numpy(table), torch.from_numpy(people)).numpy()
    rows: list[list[GridCell]] = []
    for row in map(int, np.argsort(-apart, kind="stable")[:MOST_ITEMS]):
        said = [_top(shares[row], class_names) for shares in (people, table)]
        rows.append([GridCell(text) for text in (printed(ids[row]), f"{apart[row]:.3f}", *said)])
    columns = [Column(text, kind, kind != "label") for text, kind in headings.items()]  # pyright: ignore[reportArgumentType]
    return Grid("items", "Items", [], columns, rows)


def _top(shares: np.ndarray, class_names: Sequence[str]) -> str:
    return f"{printed(class_names[int(shares.argmax())])} ({shares.max():.0%})"
