"""Tables from files: no network, nothing left behind, and what a user set in the datasets library
stays as it was.
"""

import os
import subprocess
import sys
from pathlib import Path

import datasets
import pytest
from datasets.utils import are_progress_bars_disabled

from core.errors import InputError
from datamodules.io.tables import read_table

READ = """
import socket, sys
from pathlib import Path
def refuse(*args): raise SystemExit("a connection was tried")
socket.socket.connect = socket.getaddrinfo = refuse
from datamodules.io.tables import read_table
print([read_table(Path(path), ["a", "b"]) for path in sys.argv[1:]])
"""


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "rows.jsonl", tmp_path / "rows.csv"]
    paths[0].write_text('{"a": 1, "b": {"x": "y"}, "c": 0}\n{"a": 2, "b": {"x": null}, "c": 0}\n')
    paths[1].write_text('b,c,a\n"x, y",0,1\nnull,0,\n')
    return paths


def test_reads_columns_in_any_order_and_csv_as_text(tables: list[Path]):
    assert read_table(tables[0], ["a", "b"]) == {"a": [1, 2], "b": [{"x": "y"}, {"x": None}]}
    assert read_table(tables[1], ["a", "b"]) == {"a": ["1", ""], "b": ["x, y", "null"]}


def test_needs_no_network_and_leaves_no_cache(tables: list[Path], tmp_path: Path):
    home, scratch = tmp_path / "home", tmp_path / "scratch"
    home.mkdir()
    scratch.mkdir()
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_"))
    }
    command = [sys.executable, "-c", READ, *map(str, tables)]
    root = Path(__file__).parents[3]
    done = subprocess.run(
        command,
        env={**kept, "HOME": str(home), "TMPDIR": str(scratch)},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "x, y" in done.stdout
    assert not list(home.rglob("*huggingface*"))
    assert not [
        *home.rglob("*.arrow"),
        *scratch.rglob("*.arrow"),
        *home.rglob("*.lock"),
        *scratch.rglob("*.lock"),
    ]


def test_a_changed_file_is_read_anew(tables: list[Path]):
    read_table(tables[1], ["a"])
    tables[1].write_text("a\n7\n")
    assert read_table(tables[1], ["a"]) == {"a": ["7"]}


def test_what_the_user_set_in_the_library_stays(tables: list[Path]):
    before = datasets.logging.get_verbosity(), are_progress_bars_disabled()
    read_table(tables[0], ["a"])
    with pytest.raises(InputError, match=r"rows.csv has no column z; it must have a, z"):
        read_table(tables[1], ["a", "z"])
    assert (datasets.logging.get_verbosity(), are_progress_bars_disabled()) == before


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.csv", ""), ("x.csv", "a,b\n"), ("x.jsonl", ""), ("x.jsonl", '{"a": 1}\n{"a":')],
)
def test_a_file_without_rows_or_cut_short(tmp_path: Path, name: str, content: str):
    (tmp_path / name).write_text(content)
    with pytest.raises(
        InputError, match=rf"{name} cannot be read as .*; it was cut short or altered"
    ):
        read_table(tmp_path / name, ["a"])
