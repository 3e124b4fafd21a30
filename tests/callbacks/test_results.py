"""results.json: complete, self-explaining and never half-written."""

import json
import os
from pathlib import Path

import pytest

from callbacks.results import describe_value
from datamodules import Mixup, StochasticLabelSampling
from kept_files import write_atomically


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "results.json"
    write_atomically(path, "old")

    def full_disk(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["results.json"]


def test_a_delivery_is_described_with_all_its_options():
    described = describe_value(Mixup(base=StochasticLabelSampling(resample_every=5), alpha=0.3))
    assert described == {"name": "Mixup", "base": {"name": "StochasticLabelSampling", "resample_every": 5}, "alpha": 0.3}
    json.dumps(described)
