"""Files of somebody else's runs that are whole and yet not what they seem: other types, numbers
beyond all measure, words that a browser or a terminal obeys.
"""

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from studies.analysis.comparison.kept_comparisons import FILE
from tests.hostile import reported_runs as runs
from tests.hostile.readers import parquet

Cases = Iterator[tuple[str, bytes]]
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
WORDS = {
    "a script": SCRIPT,
    "a command to a terminal": "\x1b[2J\0\x07",
    "half a formula": r"$\frac{$",
    "half a letter": "\ud800",
    "long": "x" * 10**6,
}
NUMBERS = {
    "a googol⁴": 10**400,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "large": 1.7e308,
    "below 0": -1,
    "half": 1.5,
    "truth": True,
}
OTHERS = {
    "null": None,
    "nothing": "",
    "a list": [1],
    "entries": {"a": 1},
    "lists": [[[]]],
    "entries of half letters": {"\ud800": "\ud800"},
}
ANYTHING = {**WORDS, **NUMBERS, **OTHERS}
DEEP = {
    "brackets": b"[" * 100_000,
    "entries": b'{"a":' * 100_000,
    "a list in a list": b"[" * 900 + b"]" * 900,
}


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


def _with(content: Any, path: tuple, value: Any) -> bytes:
    copy = json.loads(json.dumps(content))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return _json(copy)


def results() -> Cases:
    good = runs.results(0)
    for key in (*good, "more"):
        yield from (
            (f"{key} is {kind}", _with(good, (key,), value)) for kind, value in ANYTHING.items()
        )
    for metric in ("soft_nll", "more", SCRIPT):
        yield from (
            (f"metrics.{metric[:8]} is {kind}", _with(good, ("metrics", metric), value))
            for kind, value in ANYTHING.items()
        )
    yield "no metrics", _with(good, ("metrics",), {})
    yield (
        "versions without end",
        _json(good)[:-1].replace(b'{"torch": "2"}', b'{"a":' * 5000 + b"1" + b"}" * 5000) + b"}",
    )
    yield from DEEP.items()


def history() -> Cases:
    good = runs.history(0)
    for key in ("epoch", "val/soft_nll", "val/js", SCRIPT):
        for kind, value in ANYTHING.items():
            yield f"{key[:8]} is {kind} once", _with(good, (1, key), value)
            yield f"{key[:8]} is {kind}", _json([{**epoch, key: value} for epoch in good])
    for epoch in (10**30, 2**63, 1e300, 10**9 - 1):
        yield f"epoch {epoch:g}", _json([*good, {**good[0], "epoch": epoch}])
    yield "no epochs", b"[]"
    yield "an epoch without scores", _json([{"epoch": 1}])
    yield (
        "very many epochs",
        _json([{"epoch": epoch, "val/soft_nll": 1.0} for epoch in range(100_000)]),
    )
    yield from DEEP.items()


def comparisons(folder: Path) -> Cases:
    good = runs.comparisons(folder)
    inside = ("nets", "comparison")
    paths = [(*inside, name) for name in good["nets"]["comparison"]]
    paths += [(*inside, "values", 0, name) for name in good["nets"]["comparison"]["values"][0]]
    paths += [(*inside, "lines", 0, name) for name in good["nets"]["comparison"]["lines"][0]]
    paths += [
        (*inside, "values", 0, "methods", 0),
        (*inside, "values", 0, "seeds", 0),
        (*inside, "methods", 0),
        (*inside, "notes"),
    ]
    paths += [
        (*inside, "lines", 0, "line", name) for name in ("alphas", "plain", "reestimated")
    ] + [(*inside, "lines", 0, "line", "plain", 1)]
    for path in [("nets",), inside, ("nets", "runs"), ("nets", "options"), *paths]:
        yield from (
            (f"{path[-1]} in {len(path)} is {kind}", _with(good, path, value))
            for kind, value in ANYTHING.items()
        )
    yield "nothing compared", _with(good, (*inside, "values"), [])
    yield from DEEP.items()


def values(rows: int) -> dict[str, pa.Array]:
    """In the place of a column of a table."""
    every = {
        kind: pa.array([value] * rows)
        for kind, value in (
            ("NaN", np.nan),
            ("infinity", np.inf),
            ("large", 1e308),
            ("below 0", -1.0),
        )
    }
    return every | {
        "null": pa.nulls(rows),
        "one null": pa.array([None, *range(1, rows)]),
        "zeros": pa.array([0] * rows),
        "beyond all items": pa.array(np.arange(rows) + 10**9),
        "a little beyond": pa.array(np.arange(rows) + 5000),
        "in no order": pa.array(np.arange(rows)[::-1]),
        "whole numbers as floats": pa.array(np.arange(rows) + 0.0),
        "large whole numbers": pa.array(np.full(rows, 2**64 - 1, np.uint64)),
        "half precision": pa.array(np.ones(rows, np.float16)),
        "decimals": pa.array([1] * rows).cast(pa.decimal128(30, 2)),
        "truth": pa.array([True] * rows),
        "a script": pa.array([SCRIPT] * rows),
        "a view": pa.array(["test"] * rows, pa.string_view()),
        "few words": pa.array(["test"] * rows).dictionary_encode(),
        "bytes": pa.array([b"\xff"] * rows),
        "lists": pa.array([[1.0]] * rows),
        "structs": pa.array([{"a": 1}] * rows),
        "times": pa.array([1] * rows, pa.timestamp("s")),
    }


def without_end(*columns: str) -> bytes:
    """A small file of more than a hundred million rows: of equal ones it holds one."""
    stream, part = io.BytesIO(), pa.table({name: pa.nulls(2**22, pa.int8()) for name in columns})
    with pq.ParquetWriter(stream, part.schema) as writer:
        for _ in range(25):
            writer.write_table(part)
    return stream.getvalue()


def predictions(folder: Path) -> Cases:
    whole = pq.read_table(folder / "predictions.parquet")

    def put(name: str, column: Any) -> pa.Table:
        there = name in whole.column_names
        return (
            whole.set_column(whole.column_names.index(name), name, column)
            if there
            else whole.append_column(name, column)
        )

    for name in ("index", "split", "model_0", "annotators_0", "predicted"):
        yield from (
            (f"{name} is {kind}", parquet(put(name, column)))
            for kind, column in values(len(whole)).items()
        )
        yield f"no {name}", parquet(whole.drop_columns([name]))
    for name in ("model_0", "annotators_9"):
        numbers = whole[name].to_numpy()
        yield (
            f"{name} is NaN once",
            parquet(put(name, pa.array(np.where(np.arange(len(numbers)) == 3, np.nan, numbers)))),
        )
        yield f"{name} is double", parquet(put(name, pa.array(2 * numbers)))
    yield "no rows", parquet(whole.slice(0, 0))
    yield "few rows", parquet(whole.slice(0, 100))
    yield "every row twice", parquet(pa.concat_tables([whole, whole]))
    yield (
        "two classes",
        parquet(
            whole.select(
                [
                    "index",
                    "split",
                    *(f"{who}_{k}" for who in ("model", "annotators") for k in range(2)),
                ]
            )
        ),
    )
    more = put("model_10", pa.array(np.zeros(len(whole))))
    yield (
        "a class more",
        parquet(more.append_column("annotators_10", pa.array(np.zeros(len(whole))))),
    )
    yield "a class of another script", parquet(put("model_²", whole["model_0"]))
    yield "all of test", parquet(put("split", pa.array(["test"] * len(whole))))
    yield "all of train", parquet(put("split", pa.array(["train"] * len(whole))))
    yield "two columns of one name", parquet(whole.append_column("model_0", whole["model_0"]))
    yield (
        "rows without end",
        without_end("index", "split", "model_0", "model_1", "annotators_0", "annotators_1"),
    )


def items(folder: Path) -> Cases:
    whole = pq.read_table(folder / "cartography_train.parquet")
    yield from (
        (kind, parquet(pa.table({"index": column}))) for kind, column in values(len(whole)).items()
    )
    yield "no rows", parquet(whole.slice(0, 0))
    yield "one row", parquet(whole.slice(0, 1))
    yield "two columns of one name", parquet(whole.append_column("index", whole["index"]))
    yield "another name", parquet(whole.rename_columns(["items"]))
    yield "rows without end", without_end("index")


def records(folder: Path) -> Cases:
    whole = np.fromfile(folder / "cartography_train.f32", "<f4").reshape(runs.EPOCHS, -1)
    for value in (np.nan, np.inf, -np.inf, -1, 2, 1e38, 0, 1):
        yield (
            f"all are {value}",
            np.concatenate([whole[:, :2], np.full_like(whole[:, 2:], value)], axis=1).tobytes(),
        )
        once = whole.copy()
        once[1, 10] = value
        yield f"one is {value}", once.tobytes()
    yield "one epoch", whole[:1].tobytes()
    yield "half an epoch", whole.tobytes()[:1000]
    yield "nothing", b""


def cases_of(folder: Path) -> dict[str, Callable[[], Cases]]:
    """By the file that they take the place of; `folder` has whole runs."""
    run = runs.runs_of_study()[0].folder(folder / "runs")
    return {
        "results.json": results,
        "history.json": history,
        "predictions.parquet": lambda: predictions(run),
        "cartography_train.parquet": lambda: items(run),
        "cartography_train.f32": lambda: records(run),
        FILE: lambda: comparisons(folder),
    }


def place_of(folder: Path, file: str) -> Path:
    return (
        folder / "out" / file
        if file == FILE
        else runs.runs_of_study()[0].folder(folder / "runs") / file
    )
