"""Forked processes are as alone as started ones: their own pid, session, folder, environment,
output, code and signals.
"""

import os
import signal
from pathlib import Path

import pytest

from tests import processes
from tests.waiting import until

SCRIPT = """
import os, sys, time
print(os.getpid(), os.getsid(0), os.getcwd(), os.environ.get("GIVEN"), *sys.argv[1:], sys.stdin.read())
print("an error", file=sys.stderr)
if sys.argv[1] == "raise":
    raise KeyError("of mine")
if sys.argv[1] == "wait":
    open("there", "w").close()
    time.sleep(3600)
sys.exit(int(sys.argv[1]))
"""  # noqa: E501


@pytest.fixture
def script(tmp_path: Path) -> str:
    (tmp_path / "script.py").write_text(SCRIPT)
    return str(tmp_path / "script.py")


def test_each_has_what_it_was_given_and_its_own_end(script: str, tmp_path: Path):
    both = [
        processes.Process([code, "word"], script, tmp_path, {"GIVEN": f"to {code}"})
        for code in (0, 7)
    ]
    for process, code in zip(both, (0, 7), strict=True):
        assert process.communicate() == (
            f"{process.pid} {process.pid} {tmp_path} to {code} {code} word \n",
            "an error\n",
        )
        assert process.returncode == code
    assert len({both[0].pid, both[1].pid, os.getpid()}) == 3


def test_an_exception_is_told_with_code_1(script: str, tmp_path: Path):
    done = processes.run(["raise"], script=script, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith("KeyError: 'of mine'\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(script: str, tmp_path: Path, number: int):
    process = processes.Process(["wait"], script, tmp_path)
    until((tmp_path / "there").exists)
    assert process.poll() is None
    process.send_signal(number)
    process.communicate()
    assert process.returncode == -number


def test_python_s_own_answer_to_ctrl_c_is_there_again(script: str, tmp_path: Path):
    process = processes.Process(["wait"], script, tmp_path)
    until((tmp_path / "there").exists)
    process.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in process.communicate()[1]
