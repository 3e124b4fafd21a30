"""Judging anybody's predictions of 10,000 items by `cli.py score`, wanted in under 10 s from the
command to its end: CPU seconds of the whole process, one thread, imports and figures included.

    python -m benchmarks scoring        about a minute
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.row import Row, main
from benchmarks.startup import cpu_seconds

ITEMS, CLASSES, ROUNDS = 10_000, 10, 3
FILES = (1, 3)  # judged at once


def rows() -> Iterator[Row]:
    """Own votes of 10,000 items with 50 votes each, all of which are judged."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = written(folder)
        for number in FILES:
            files = [str(folder / f"{place}.csv") for place in range(number)]
            command = ["cli.py", "score", *files, *words, "--report", str(folder / "report.html")]
            least = min(cpu_seconds(command) for _ in range(ROUNDS))
            what = f"cli.py score, {number} file{'s' * (number > 1)} of {ITEMS:,} items"
            limit = 1.0 if number == 1 else None
            yield Row(what, "at most 10 s", least, 10.0, limit, f"CPU seconds, least of {ROUNDS}")


def written(folder: Path) -> list[str]:
    """The options of a dataset and files of predictions, all in this folder."""
    rng = np.random.default_rng(0)
    truth = rng.dirichlet(np.full(CLASSES, 0.2), ITEMS)
    names = [f"class{label}" for label in range(CLASSES)]
    header = ",".join(["item", *names])
    ids = np.arange(ITEMS)[:, None]
    votes = np.hstack([ids, rng.multinomial(50, truth)])
    np.savetxt(folder / "votes.csv", votes, "%d", ",", header=header, comments="")
    for place in range(max(FILES)):
        noise = rng.dirichlet(np.ones(CLASSES), ITEMS)
        probs = (0.7 - 0.1 * place) * truth + (0.3 + 0.1 * place) * noise
        form = ["%d", *["%.6f"] * CLASSES]
        table = np.hstack([ids, probs])
        np.savetxt(folder / f"{place}.csv", table, form, ",", header=header, comments="")
    np.save(folder / "ready.npy", np.ones((ITEMS, 2), np.float32))
    options = {
        "votes": "votes.csv",
        "item": "item",
        "counts": f"[{','.join(names)}]",
        "embeddings": "ready.npy",
        "root": str(folder),
    }
    words = ["--data", "OwnVotes", "--split", "all"]
    return words + [word for name, value in options.items() for word in (f"--data.{name}", value)]


if __name__ == "__main__":
    main(rows)
