"""The harness of the benchmarks: what it runs, prints, keeps on record and writes."""

import json
import math
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import PACKAGE, main, scripts
from benchmarks.measure import alternate
from benchmarks.record import Run, add, ratios, read, write
from benchmarks.row import Row, from_json, to_json
from benchmarks.table import comparisons, page

SCRIPT = """
import os
from benchmarks.row import Row, main

def rows():
    threads, policy = (os.environ[name] for name in ("OMP_NUM_THREADS", "OMP_WAIT_POLICY"))
    yield Row("labels", "a loop", {ours}, 0.5, limit=4, note=f"{{threads}} thread, {{policy}}")
    yield Row("labels", "a GPU", float("nan"), float("nan"), limit=2)

if __name__ == "__main__":
    main(rows)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with two scripts, one of them in a folder, and a helper that is none."""
    folder = tmp_path / "fakes"
    (folder / "data").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (folder / "fast.py").write_text(SCRIPT.format(ours=0.1))
    (folder / "data" / "slow.py").write_text(SCRIPT.format(ours=0.25))
    (folder / "helper.py").write_text("import nothing_that_exists\n")
    return folder


def run(date: str, *found: Row) -> Run:
    return Run(date, "a machine", "torch 2", 0.1, 0.2, 3.0, found)


def labels(ratio: float) -> Row:
    return Row("labels", "a loop", 1.0, ratio, limit=2.0)


def test_a_script_is_a_module_that_offers_rows(package: Path):
    assert scripts(package) == {"fast": "fakes.fast", "slow": "fakes.data.slow"}


def test_all_scripts_run_with_one_thread_and_their_rows_make_one_table(
    package: Path, capfd: pytest.CaptureFixture[str]
):
    assert main([], package) == 0
    printed = capfd.readouterr().out
    written = (package.parent / "docs" / "benchmarks.md").read_text()
    assert "5.00x | 5.00x to 5.00x (1) | 4.00x reached" in written
    assert "2.00x | 2.00x to 2.00x (1) | 4.00x NOT reached" in written
    assert "1 thread, PASSIVE" in written
    lines = [line for line in written.splitlines() if line.startswith("| labels")]
    assert len(lines) == 4
    assert all(line in printed for line in lines)
    kept = read(package.parent / "docs" / "benchmarks.json")
    assert [(name, len(runs[0].rows)) for name, runs in kept.items()] == [("fast", 2), ("slow", 2)]


def test_a_script_that_is_named_runs_alone_and_the_others_stay_on_record(package: Path):
    main([], package)
    assert main(["slow"], package) == 0
    kept = read(package.parent / "docs" / "benchmarks.json")
    assert {name: len(runs) for name, runs in kept.items()} == {"fast": 1, "slow": 2}
    assert (package.parent / "docs" / "benchmarks.md").read_text().count("| labels") == 4


def test_a_script_that_fails_is_named_and_the_others_are_still_measured(
    package: Path, capfd: pytest.CaptureFixture[str]
):
    (package / "broken.py").write_text("def rows():\n    pass\n\nraise SystemExit(3)\n")
    assert main([], package) == 1
    assert "fakes.broken ended with exit code 3: it gives no rows." in capfd.readouterr().err
    assert set(read(package.parent / "docs" / "benchmarks.json")) == {"fast", "slow"}


def test_a_name_that_is_no_script_is_answered_with_those_that_are(
    package: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["quick"], package) == 2
    said = "There is no benchmark quick; there are slow, fast.\n"
    assert capsys.readouterr().err == said
    assert not (package.parent / "docs" / "benchmarks.json").exists()


def test_a_script_that_is_gone_leaves_the_record(package: Path):
    main([], package)
    (package / "fast.py").unlink()
    main([], package)
    assert set(read(package.parent / "docs" / "benchmarks.json")) == {"slow"}


def test_runs_of_the_last_two_days_stay_on_record(tmp_path: Path):
    record = {"fast": [run("2026-11-16 10:00", labels(2)), run("2026-11-17 09:00", labels(3))]}
    record = add(record, "fast", run("2026-11-18 10:00", labels(4)))
    record = add(record, "fast", run("2026-11-18 11:00", labels(5)))
    dates = ["2026-11-17 09:00", "2026-11-18 10:00", "2026-11-18 11:00"]
    assert [each.date for each in record["fast"]] == dates
    write(tmp_path / "record.json", record)
    assert read(tmp_path / "record.json") == record


def test_the_range_is_over_all_runs_on_record_that_measured_the_same():
    other = Row("labels", "another loop", 1.0, 9.0, limit=None)
    runs = [
        run("2026-11-17 09:00", labels(3)),
        run("2026-11-18 09:00", labels(6), other),
        run("2026-11-18 10:00", labels(4), other),
    ]
    assert ratios(runs, labels(1)) == [3, 6, 4]
    table = comparisons({"fast": runs})
    assert "4.00x | 3.00x to 6.00x (2) | 2.00x reached" in table
    assert "9.00x | 9.00x to 9.00x (1) |   " in table


def test_what_was_not_measured_stays_blank_and_is_null_in_json():
    blank = Row("labels", "a GPU", math.nan, math.nan, limit=2.0)
    assert json.loads(json.dumps(to_json(blank), allow_nan=False))["ours"] is None
    assert math.isnan(from_json(to_json(blank)).theirs)
    cells = comparisons({"gpu": [run("2026-11-18 10:00", blank)]}).splitlines()[-1].split("|")
    assert [cell.strip() for cell in cells[1:8]] == ["labels", "", "a GPU", "", "", "", "2.00x"]


def test_the_page_says_when_where_with_what_and_beside_what_it_was_measured():
    written = page({"fast": [run("2026-11-18 10:00", labels(4))]}, "make bench")
    cells = [cell.strip() for cell in written.splitlines()[-1].split("|")[1:-1]]
    assert cells == ["fast", "2026-11-18 10:00", "3 s", "0.1", "0.2", "a machine", "torch 2"]
    assert "`make bench` wrote this page" in written


def test_sides_take_turns_and_the_first_round_does_not_count():
    turns: list[str] = []
    sides = {name: lambda name=name: turns.append(name) for name in ("ours", "theirs")}
    seconds = alternate(2, sides, calls=2)
    assert turns == ["ours", "ours", "theirs", "theirs"] * 3
    assert all(0 <= value < math.inf for value in seconds.values())


def test_a_script_by_itself_prints_its_rows(package: Path, capsys: pytest.CaptureFixture[str]):
    from benchmarks.row import main as script

    sys.argv, before = ["fast.py"], sys.argv
    try:
        script(lambda: [labels(3)])
    finally:
        sys.argv = before
    assert capsys.readouterr().out == "labels: 1 s; a loop: 3 s; 3.00x; 2.00x reached\n"


def test_every_script_offers_rows():
    offering = set(scripts(PACKAGE).values())
    silent = []
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        if "\nif __name__ ==" in path.read_text() and path.name != "__main__.py":
            silent += [module] if module not in offering else []
    assert not silent, f"{', '.join(silent)} can be run, but gives no rows to `make bench`"


def test_no_two_scripts_have_one_name():
    offering = [path.stem for path in PACKAGE.rglob("*.py") if "\ndef rows(" in path.read_text()]
    assert len(offering) == len(set(offering)) == len(scripts(PACKAGE))


def test_the_page_in_the_docs_is_that_of_the_record():
    docs = PACKAGE.parent / "docs"
    assert (docs / "benchmarks.md").read_text() == page(
        read(docs / "benchmarks.json"), "make bench"
    )
