"""configs/own_votes.yaml in a study: heads on embeddings that stay in their file train in a pack
and alone with the same results.
"""

from pathlib import Path

import numpy as np
import pytest
import yaml

from callbacks.results import read_results
from cli import main
from studies.launch.pack_job import run_pack
from studies.plan.packing import jobs_of
from studies.plan.study import Study
from tests.conftest import write_own_votes

ROOT = Path(__file__).parents[2]


def test_a_study_of_ones_own_votes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
):
    monkeypatch.chdir(ROOT)
    write_own_votes(tmp_path)
    np.save(tmp_path / "own" / "embeddings.npy", np.random.default_rng(0).normal(2.0, 3.0, (40, 6)))
    chosen = {"data.embedder": None, "data.text": None, "data.embeddings": "own/embeddings.npy"}
    study = {
        "name": "own",
        "configs": ["configs/own_votes.yaml"],
        "options": {
            "data.root": str(tmp_path),
            "data.cache": str(tmp_path),
            "trainer.max_epochs": 2,
            "trainer.accelerator": "cpu",
            **chosen,
        },
        "grids": {"main": {"data.delivery": ["SoftLabels", "Multipass"], "seed_everything": [0]}},
        "paired": ["seed_everything"],
        "report": {
            "tables": [
                {
                    "name": "scores",
                    "grid": "main",
                    "rows": "data.delivery",
                    "columns": ["soft_nll", "accuracy"],
                }
            ]
        },
    }
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(study))
    runs = Study.load(tmp_path / "own.yaml").runs()
    assert [job.packed for job in jobs_of(runs, 1)] == [True]
    assert (
        run_pack(runs, tmp_path / "packed", tmp_path / "state.pt", True, lambda share: None) == {}
    )
    options = [
        "--config",
        str(tmp_path / "packed" / runs[1].name / "config.yaml"),
        "--trainer.default_root_dir",
        str(tmp_path / "alone"),
    ]
    options += ["--trainer.enable_progress_bar", "false", "--trainer.enable_model_summary", "false"]
    main(["fit", *options])
    main(["test", *options])
    packed, alone = (
        read_results(tmp_path / folder / runs[1].name) for folder in ("packed", "alone")
    )
    assert packed
    assert alone
    assert packed["metrics"] == pytest.approx(alone["metrics"], abs=1e-5, nan_ok=True)
    assert packed["embedder"] == "ready embeddings of own/embeddings.npy"
    assert packed["dataset"] == "OwnVotes"
    main(["study", "plan", str(tmp_path / "own.yaml"), "--runs", str(tmp_path / "packed")])
    assert "0 runs are left to do" in capsys.readouterr().out
    main(["study", "report", str(tmp_path / "own.yaml"), "--runs", str(tmp_path / "packed")])
    page = (tmp_path / "packed/own-report/report.html").read_text()
    assert f"{packed['metrics']['soft_nll']:.4f}" in page
    assert "ready embeddings of own/embeddings.npy" in page
