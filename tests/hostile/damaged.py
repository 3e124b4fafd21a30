"""Damaged copies of every format through its reader: the cases that tests run, and by `python -m
tests.hostile.damaged` a table of how they ended.
"""

import sys
import warnings
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.hostile.mutations import mutated
from tests.hostile.outcomes import Hang, Outcome, outcome
from tests.hostile.readers import READERS, Reader

# cases of a reader in the default suite; `long` tests and the table take ten times as many
FAST, SLOW = (
    100,
    30,
)
TIMES = 10


def cases_of(reader: Reader, times: int = 1) -> int:
    return (SLOW if reader.slow else FAST) * times


def try_damaged(reader: Reader, folder: Path, seed: int, cases: int) -> Counter[Outcome]:
    """How the reader ended on so many damaged files; raises for the first case that ended in any
    other way, with what brings it back.
    """
    path, content = folder / reader.file, reader.content()
    path.parent.mkdir(parents=True, exist_ok=True)
    names = (path.name,) if reader.names_file else ()
    ends: Counter[Outcome] = Counter()
    path.write_bytes(content)
    assert outcome(lambda: reader.read(path), *names) == "result", (
        f"{reader.format}: the whole file was refused"
    )
    for number in range(cases):
        damage, damaged = mutated(content, seed, number)
        path.write_bytes(damaged)
        try:
            ends[outcome(lambda: reader.read(path), *names)] += 1
        except (Exception, Hang) as error:
            raise AssertionError(
                f"{reader.format}, mutated(content, seed={seed}, {number=}), which is {damage}: "
                f"{error!r}"
            ) from error
    return ends


def main(times: int) -> None:
    warnings.simplefilter("ignore")
    print("| format | damaged files | a sentence | a result |\n|---|---|---|---|")
    total: Counter[Outcome] = Counter()
    with TemporaryDirectory() as folder:
        for place, reader in enumerate(READERS):
            ends = try_damaged(
                reader, Path(folder) / str(place), seed=1, cases=cases_of(reader, times)
            )
            print(
                f"| {reader.format} | {ends.total():,} | {ends['sentence']:,} | "
                f"{ends['result']:,} |",
                flush=True,
            )
            total += ends
    print(f"| all | {total.total():,} | {total['sentence']:,} | {total['result']:,} |")


if __name__ == "__main__":
    # Lightning looks at what is left of the command line
    times, sys.argv = (
        int(sys.argv[1]) if len(sys.argv) > 1 else TIMES,
        sys.argv[:1],
    )
    main(times)
