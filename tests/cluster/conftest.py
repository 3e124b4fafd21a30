"""What tests against a real Slurm share; start_slurm.sh beside this file brings one up."""

import re
import shutil
import subprocess

import pytest

from tests.waiting import HANGS

START = "tests/cluster/start_slurm.sh starts one"


@pytest.fixture(scope="session")
def slurm() -> None:
    """The Slurm of start_slurm.sh; tests that need it skip where it is not up, and leave anybody
    else's cluster alone.
    """
    if shutil.which("sinfo") is None:
        pytest.skip(f"Slurm is not installed; {START}")
    try:
        subprocess.run(["sinfo"], check=True, capture_output=True, timeout=HANGS)
        config = subprocess.run(
            ["scontrol", "show", "config"],
            check=True,
            capture_output=True,
            text=True,
            timeout=HANGS,
        ).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip(f"Slurm does not answer; {START}")
    if not re.search(r"^ClusterName\s*= plurality$", config, re.MULTILINE):
        pytest.skip("the Slurm of this machine is not one to test on")
