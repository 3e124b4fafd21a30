"""A forked process ends as Python would end it."""

import os
import subprocess
import sys

import pytest

ENDS = {
    "all is well": ("pass", 0),
    "a code": ("return 7", 7),
    "an exit": ("sys.exit(5)", 5),
    "an exit without a code": ("sys.exit()", 0),
    "an exit with a sentence": ("sys.exit('a sentence')", 1),
    "a mistake": ("raise ValueError('a mistake')", 1),
    "an interruption": ("raise KeyboardInterrupt('stopped')", 1),
}


@pytest.mark.parametrize(("body", "code"), ENDS.values(), ids=ENDS)
def test_it_tells_how_it_ended(body: str, code: int):
    result = run(body)
    assert result.returncode == code
    words = ("a sentence", "ValueError: a mistake", "KeyboardInterrupt: stopped")
    heard = [word for word in words if word in result.stderr]
    assert heard == [word for word in words if word.split(": ")[-1] in body]
    assert result.stdout == "unfinished line, registered\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a device that is full")
def test_words_that_cannot_be_written_are_a_failure():
    with open("/dev/full", "w") as full:
        assert run("pass", stdout=full).returncode == 120


def run(body: str, stdout=subprocess.PIPE) -> subprocess.CompletedProcess:
    script = (
        "import atexit, sys\n"
        "from studies.launch.forked_process import end_after\n"
        "atexit.register(print, 'registered')\n"
        "def work():\n"
        "    print('unfinished line', end=', ')\n"
        f"    {body}\n"
        "end_after(work)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": ""},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
