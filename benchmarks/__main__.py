"""`python -m benchmarks [script …]`: run them, print one table and write docs/benchmarks.md."""

import argparse
import ast
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from time import perf_counter

from benchmarks.record import Run, add, read, write
from benchmarks.row import from_json
from benchmarks.table import comparisons, page

PACKAGE = Path(__file__).parent
# the same for all sides; idle threads that spin would take a core from the others
SETTINGS = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
NAMED = ("torch", "torchvision", "lightning", "numpy")


class Failed(Exception):
    """A script that ended with an error."""


def scripts(package: Path) -> dict[str, str]:
    """The modules that offer `rows`, by the last part of their names."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        offers = any(isinstance(part, ast.FunctionDef) and part.name == "rows" for part in body)
        if offers:
            parts = path.relative_to(package.parent).with_suffix("").parts
            found[path.stem] = ".".join(parts)
    return found


def measure(module: str, root: Path) -> Run:
    """Run one script in a process of its own; what it prints is shown as it comes."""
    paths = [str(root), str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    settings = os.environ | SETTINGS | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    load, busy, start = os.getloadavg()[0], busy_seconds(), perf_counter()
    date = f"{datetime.now():%Y-%m-%d %H:%M}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        command = [sys.executable, "-m", module, "--json", str(path)]
        done = subprocess.run(command, env=settings, cwd=root)
        if done.returncode:
            raise Failed(f"{module} ended with exit code {done.returncode}: it gives no rows.")
        rows = tuple(map(from_json, json.loads(path.read_text())))
    seconds = perf_counter() - start
    others = max(0.0, busy_seconds() - busy) / seconds
    versions = ", ".join(f"{name} {version(name)}" for name in NAMED)
    return Run(date, machine(), versions, round(load, 2), round(others, 2), round(seconds, 1), rows)


def busy_seconds() -> float:
    """CPU seconds that all programs but this one and its children have used, where Linux tells."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _waiting, *interrupts = map(int, fields)
    own = sum(os.times()[:4])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK") - own


def machine() -> str:
    """The processor's name and the number of cores that this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{model}, {cores} cores"


def main(arguments: list[str], package: Path = PACKAGE, docs: Path | None = None) -> int:
    """Run the scripts that are named, or all; returns the exit code."""
    found = scripts(package)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("scripts", nargs="*", metavar="script", help=", ".join(found))
    names = parser.parse_args(arguments).scripts or list(found)
    unknown = [name for name in names if name not in found]
    if unknown:
        print(f"There is no benchmark {unknown[0]}; there are {', '.join(found)}.", file=sys.stderr)
        return 2
    docs = docs or package.parent / "docs"
    record, failures = read(docs / "benchmarks.json"), []
    for name in names:
        print(f"== {found[name]}", flush=True)
        try:
            record = add(record, name, measure(found[name], package.parent))
        except Failed as error:
            failures.append(error)
            continue
        write(docs / "benchmarks.json", record)
    # those that still exist, in the order in which they are read again
    record = {name: record[name] for name in sorted(found) if name in record}
    write(docs / "benchmarks.json", record)
    (docs / "benchmarks.md").write_text(page(record, "make bench"), encoding="utf-8")
    print("\n" + comparisons({name: record[name] for name in names if name in record}))
    for error in failures:
        print(error, file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
