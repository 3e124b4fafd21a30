"""StratumScores: every test score on unanimous and other items, against the metrics computed on
those items alone.
"""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import torch

from callbacks import StratumScores
from callbacks.results import read_results
from cli import main
from datamodules import Digits
from datamodules.vote_datamodule import Corpus
from datamodules.votes.table import VoteTable
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from metrics import every_metric
from tests.quiet import QUIET

ROOT = Path(__file__).parents[2]


def test_results_hold_every_score_by_stratum(tmp_path: Path):
    options = [
        "--config",
        str(ROOT / "configs/digits.yaml"),
        *QUIET,
        "--trainer.max_epochs",
        "1",
        "--trainer.default_root_dir",
        str(tmp_path),
    ]
    options += ["--trainer.callbacks+=StratumScores"]
    run_dir = main(["fit", *options]).run_dir
    for command in ("test", "predict"):
        main([command, *options])
    results = read_results(run_dir)
    assert results
    table = pq.read_table(run_dir / "predictions.parquet", filters=[("split", "=", "test")])
    probs, annotator_probs = (
        torch.stack([torch.tensor(table[f"{who}_{k}"].to_numpy()) for k in range(10)], 1)
        for who in ("model", "annotators")
    )
    unanimous = annotator_probs.max(1).values == 1
    undefined = {"entropy_spearman_nohlv", "entropy_pearson_nohlv"}
    undefined |= {"disagreement_auroc_nohlv", "disagreement_auroc_hlv"}
    for stratum, mask in (("nohlv", unanimous), ("hlv", ~unanimous)):
        metrics = every_metric("")
        metrics.update(probs[mask], annotator_probs[mask])
        expected = {f"{name}_{stratum}": float(value) for name, value in metrics.compute().items()}
        expected = {name: value for name, value in expected.items() if name not in undefined}
        assert {name: results["metrics"][name] for name in expected} == pytest.approx(
            expected, rel=1e-5, abs=1e-6
        )
        assert results["metrics"][f"items_{stratum}"] == mask.sum()
    assert not undefined & results["metrics"].keys()
    assert results["notes"] == [
        "StratumScores: not defined on these items and left out: entropy_spearman_nohlv, "
        "entropy_pearson_nohlv, disagreement_auroc_nohlv, disagreement_auroc_hlv."
    ]


@pytest.mark.parametrize("empty", ["nohlv", "hlv"])
def test_a_stratum_without_items_is_told(empty: str):
    data: Any = Digits()
    whole: Corpus = data.load()
    counts = [[1, *[0] * 9]] if empty == "hlv" else [[1, 1, *[0] * 8]]
    data.use(Corpus(whole.inputs, VoteTable(counts * len(whole.votes)), whole.splits))
    result = StratumScores().run(AnnotatorClassifier((1, 8, 8), 10, network=SimpleFFN), data)
    assert (
        f"StratumScores: no test item is of the stratum {empty}, so it has no scores."
        in result.notes
    )
    assert result.metrics[f"items_{empty}"] == 0
    assert f"accuracy_{empty}" not in result.metrics
