"""On a system without fcntl and resource, commands end in a sentence and the rest works."""

import subprocess
import sys

import pytest

from tests.processes import ROOT

ABSENT = "import sys\nsys.modules['fcntl'] = sys.modules['resource'] = None\n"
COMMAND = (
    "sys.argv = ['cli.py', 'fit']\nimport runpy\nrunpy.run_path('cli.py', run_name='__main__')\n"
)
MAPPED = """
import numpy as np, torch
from datamodules.memmap_inputs import MemmapInputs
inputs = MemmapInputs(np.array([[1.0], [2.0]], np.float32), rows=np.array([1, 0]))
print(inputs(torch.tensor([0])).item())
"""
LOCKED = """
from pathlib import Path
from core.errors import InputError
from core.folder_lock import folder_lock
try:
    with folder_lock(Path('x'), 'tests'):
        pass
except InputError as error:
    print(error)
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", ABSENT + code]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_command_says_which_systems_it_runs_on():
    done = python(COMMAND)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: Plurality's commands run on Linux and macOS; Python on ")
    assert "has no fcntl and no resource" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        (MAPPED, "2.0"),
        (
            LOCKED,
            "x cannot be held against other processes: "
            "this system has no flock; use Linux or macOS.",
        ),
    ],
    ids=["mapped inputs", "locks"],
)
def test_what_needs_them_works_without_or_says_so(code: str, printed: str):
    done = python(code)
    assert done.stdout == f"{printed}\n", done.stderr


def test_a_benchmark_of_memory_says_that_it_needs_linux():
    run = "import benchmarks.data.load as script\n"
    done = python(run + "sys.platform = 'darwin'\nassert not list(script.rows())\n")
    assert done.returncode == 0, done.stderr
    assert "run it on Linux" in done.stdout
