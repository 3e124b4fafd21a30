"""Two commands on one run at once, as from two terminals: one trains it, the other says who does,
waits, and finds it done.
"""

from pathlib import Path

from callbacks.results import read_training
from tests.experiment.test_finished import fork, options, wait_until


def test_two_fits_at_once_train_one_run_once(tmp_path: Path):
    words = ["fit", *options(tmp_path, "--trainer.max_epochs", "30")]
    first = fork(words)
    wait_until(first, lambda: any(tmp_path.glob("*/fingerprint.json")))
    second = fork(words)
    result, _ = second.communicate(timeout=600)
    message, _ = first.communicate(timeout=600)
    assert (first.returncode, second.returncode) == (0, 0), message + result
    assert "trained for 30 of 30 epochs" in message
    assert "this run is trained for 30 of 30 epochs (all epochs)" in result
    assert "Traceback" not in message + result
    (folder,) = tmp_path.iterdir()
    assert read_training(folder)
