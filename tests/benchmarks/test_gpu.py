"""The benchmark for GPUs, where there is none: it says so, and its parts run on the CPU."""

import math

import pytest
import torch

from benchmarks import gpu
from benchmarks.packed_peer import Case
from lightning_modules.networks import LeNet, MLPHead


def test_without_a_gpu_all_rows_are_blank(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    rows = list(gpu.rows())
    assert "there is no GPU here" in capsys.readouterr().out
    assert len(rows) == 5
    assert all(math.isnan(row.ours) and math.isnan(row.theirs) for row in rows)


def test_every_side_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gpu, "EPOCHS", 1)
    cpu = torch.device("cpu")
    heads = Case("heads", MLPHead, (6,), 3, 32, (1e-3,), items=64)
    assert all(side > 0 for side in gpu.of_pack(gpu.Pack(heads, 2), cpu))
    images = Case("images", LeNet, (1, 8, 8), 3, 8, (1e-3,), items=16)
    assert all(side > 0 for side in gpu.of_hessian(images, cpu))
