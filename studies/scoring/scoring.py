"""Anybody's predictions judged: files and votes in, one page out."""

import math
import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.table import Table

from callbacks.figures.drawing import reason
from core.atomic_io import write_atomically
from core.terminal import plain_console
from datamodules.labelled_items import LabelledItems, labelled_items
from datamodules.votes.labels import escaped, printed
from experiment.build import build
from experiment.configuration import resolve
from metrics.registry import Score, registered
from metrics.worth import ceiling_in_words
from studies.scoring.judged_items import judged_items
from studies.scoring.judgement import Judgement, judge
from studies.scoring.prediction_file import read_prediction_file
from studies.scoring.score_figure import score_figure
from studies.scoring.score_options import ScoreOptions
from studies.scoring.score_page import ScoreReport, between, number
from studies.scoring.shown_items import class_grid, item_grid

PACKAGES = ("torch", "numpy", "scipy", "relplot")
# what a dataset's options need beside them, though nothing is trained
UNUSED = ["--model.network", "SimpleFFN"]
WIDTH = 100  # of the table, so that no interval is broken


def score(options: ScoreOptions, typed: Sequence[str]) -> None:
    """Judge the files, write the page, and tell the scores of all items."""
    data = build(resolve([*UNUSED, *options.data])["data"])
    items = labelled_items(data)
    files = [
        read_prediction_file(
            path, items.class_names, items.id_columns, len(items.votes), options.item
        )
        for path in options.files
    ]
    rows, probs = judged_items(files, items, options.split)
    tables = dict(zip(names_of(options.files), probs.values(), strict=True))
    scores = list(registered(data.ordinal).values())
    parts, notes = judged_parts(tables, items, rows, scores, data.seed)
    what = {"all": "items", "given": "given items"}.get(options.split, f"{options.split} items")
    crowd = "SIMULATED annotators" if data.simulated else ""
    title = ", ".join(filter(None, [f"{len(rows):,} {what} of {items.name}", crowd]))
    people, ids = items.votes.probs[rows], items.id_texts().take(pa.array(rows)).to_pylist()
    figure = None
    try:
        figure = score_figure(tables, people, title)
    except Exception as error:  # a figure never costs a result
        notes.append(f"The figure is not drawn: {reason(error)}")
    report = ScoreReport(
        title=f"Predictions of {len(rows):,} {what} of {items.name}",
        notices=[f"{crowd}: the votes were drawn by a program, not given by people."] * bool(crowd),
        about=about(items, rows, data.seed, options),
        parts=parts,
        notes=notes,
        figure=figure,
        classes=class_grid(tables, people, items.class_names),
        items={
            name: item_grid(table, people, ids, items.class_names) for name, table in tables.items()
        },
        command=escaped(shlex.join(["python", "cli.py", "score", *typed])),
        versions=", ".join(
            [f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in PACKAGES)]
        ),
    )
    write_atomically(options.report, report.page())
    tell(next(iter(parts.values())), report.title, data.simulated, notes, options.report)


def names_of(paths: Sequence[Path]) -> list[str]:
    """What files are called in tables: their names, or numbers and paths where names are the same.

    >>> names_of([Path("a/x.csv"), Path("b/y.csv")]), names_of([Path("a/x.csv"), Path("b/x.csv")])
    (['x.csv', 'y.csv'], ['1. a/x.csv', '2. b/x.csv'])
    """
    short = [printed(path.name) for path in paths]
    if len(set(short)) == len(short):
        return short
    return [f"{place + 1}. {printed(str(path), longest=200)}" for place, path in enumerate(paths)]


def judged_parts(
    tables: Mapping[str, np.ndarray],
    items: LabelledItems,
    rows: np.ndarray,
    scores: Sequence[Score],
    seed: int,
) -> tuple[dict[str, Judgement], list[str]]:
    """All items, then those on which annotators agree and those on which they do not, by heading;
    and what a reader must know.
    """
    training = items.votes.take(items.splits["train"])
    unanimous = items.unanimous[rows]
    masks = {
        "All items": np.ones(len(rows), bool),
        "Unanimous items (NoHLV)": unanimous,
        "Items with disagreement (HLV)": ~unanimous,
    }
    notes = [f"{heading}: there are none." for heading, mask in masks.items() if not mask.any()]
    some = {heading: mask for heading, mask in masks.items() if mask.any()}
    parts = judge(tables, items.votes.take(rows), training, some, scores, seed)
    for heading, judged in parts.items():
        undefined = [
            score.label
            for score in scores
            if any(math.isnan(found[score.name].value) for found in judged.found.values())
        ]
        if undefined:
            notes.append(f"{heading}: not defined for every file: {', '.join(undefined)}.")
        if items.votes.counts is not None and not judged.bounds:
            notes.append(f"{heading}: too few for ceilings and skill.")
    if items.votes.counts is None:
        notes.append(
            "Ceilings and skill are not known: the votes are shares, without the number of votes."
        )
    return {f"{heading}: {judged.items:,}": judged for heading, judged in parts.items()}, notes


def about(items: LabelledItems, rows: np.ndarray, seed: int, options: ScoreOptions) -> list[str]:
    """Which items were judged, by how many votes, and what the files are."""
    split = np.full(len(items.votes), "no split", dtype="<U8")
    for name in ("train", "val", "test"):
        split[items.splits[name]] = name
    kinds, sizes = np.unique(split[rows], return_counts=True)
    of_splits = ", ".join(f"{size:,} of {kind}" for kind, size in zip(kinds, sizes, strict=True))
    lines = [
        f"Judged: {len(rows):,} of {len(items.votes):,} items of {items.name} ({of_splits}; "
        f"seed {seed}). Floors are out of its {len(items.splits['train']):,} training items."
    ]
    if items.votes.counts is not None:
        each = items.votes.counts[rows].sum(1)
        lines.append(
            f"Votes per judged item: {each.min()} to {each.max()}, {each.mean():.1f} on average."
        )
    return [*lines, f"Files: {', '.join(printed(str(path), 200) for path in options.files)}."]


def tell(judged: Judgement, title: str, simulated: bool, notes: Sequence[str], path: Path) -> None:
    """The scores of all items, for whoever started it."""
    console = plain_console()
    console.width = max(console.width, WIDTH)
    for name, found in judged.found.items():
        crowd = ", SIMULATED annotators" if simulated else ""
        table = Table(title=f"{name}{crowd}", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("metric")
        for heading in ("value", "95 % interval", "floor", "ceiling", "skill"):
            table.add_column(heading, justify="right")
        for score in judged.scores:
            each, bounds = found[score.name], judged.bounds.get(score.name)
            floor, digits = judged.floors[score.name], score.digits
            table.add_row(
                score.name,
                number(each.value, digits),
                between(each.low, each.high, digits),
                "" if floor is None else number(floor, digits),
                ceiling_in_words(bounds, digits) if bounds else "",
                "" if math.isnan(each.skill) else f"{each.skill:.1%}",
            )
        console.print(table)
    for note in notes:
        console.print(f"note: {note}", soft_wrap=True, highlight=False)
    console.print(f"{title}. Written to {path}", soft_wrap=True, highlight=False)
