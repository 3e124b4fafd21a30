"""HessianSpectrum as a user sees it, and its numbers against a dense Hessian."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from callbacks import HessianSpectrum
from callbacks.hessian.hessian_product import HessianProduct
from callbacks.hessian_spectrum import measure_spectrum
from callbacks.results import read_results
from cli import main
from core.errors import InputError
from core.randomness import some_of
from datamodules import Digits
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from tests.callbacks.hessian.test_hessian_product import cut, dense_hessian, small_problem

ROOT = Path(__file__).parents[2]
OPTIONS = [
    "--config", str(ROOT / "configs/digits.yaml"),
    "--trainer.max_epochs", "2",
    "--trainer.accelerator", "cpu",
    "--trainer.enable_progress_bar", "false",
    "--trainer.enable_model_summary", "false",
]  # fmt: skip
NAMES = (
    "max",
    "max_residual",
    "min",
    "min_residual",
    "abs_max",
    "trace",
    "trace_se",
    "products",
    "converged",
)


@pytest.fixture(scope="module")
def data() -> Digits:
    data = Digits()
    data.setup()
    return data


@pytest.fixture
def classifier() -> AnnotatorClassifier:
    return AnnotatorClassifier((1, 8, 8), 10, SimpleFFN)


@pytest.mark.parametrize("eigenvalues", ["lanczos", "power"])
@pytest.mark.parametrize("trace", ["hutch++", "xtrace", "hutchinson"])
def test_every_method_meets_its_tolerance_on_a_dense_hessian(eigenvalues, trace):
    network, inputs, annotator_probs = small_problem()
    dense = dense_hessian(network, inputs, annotator_probs)
    true = torch.linalg.eigvalsh(dense)
    product = HessianProduct(network, cut(inputs, annotator_probs, 3))
    options = {
        "tolerance": 1e-5,
        "trace_tolerance": 0.2,
        "most_products": 3000,
        "eigenvalues": eigenvalues,
        "trace": trace,
    }
    spectrum = measure_spectrum(product, seed=1, **options)
    assert spectrum.ends.converged
    assert spectrum.ends.largest == pytest.approx(float(true[-1]), rel=1e-2)
    assert spectrum.ends.abs_max == pytest.approx(float(true.abs().max()), rel=1e-2)
    assert spectrum.trace.converged
    assert spectrum.trace.value == pytest.approx(
        float(dense.trace()), abs=4 * spectrum.trace.standard_error + 1e-9
    )
    assert spectrum.products == product.spent


def test_a_test_leaves_numbers_density_and_picture(tmp_path: Path):
    config = tmp_path / "probe.yaml"
    config.write_text(
        yaml.safe_dump({"trainer": {"callbacks": [{"class_path": "HessianSpectrum"}]}})
    )
    options = [*OPTIONS, "--config", str(config), "--trainer.default_root_dir", str(tmp_path)]
    run = main(["fit", *options]).run_dir
    main(["test", *options])
    results = read_results(run)
    assert results is not None
    assert {f"hessian_{name}{suffix}" for name in NAMES for suffix in ("", "_high")} <= results[
        "metrics"
    ].keys()
    assert results["metrics"]["hessian_converged"] == 1
    assert (
        results["metrics"]["hessian_abs_max"]
        >= results["metrics"]["hessian_max"]
        > 0
        > results["metrics"]["hessian_min"]
    )
    assert results["notes"] == []
    for suffix, items in (("", 540), ("_high", None)):
        table = json.loads((run / f"hessian_density{suffix}.json").read_text())
        assert items in (None, table["items"])
        assert sum(table["weights"]) == pytest.approx(1)
        assert max(table["nodes"]) == pytest.approx(
            results["metrics"][f"hessian_max{suffix}"], rel=1e-5
        )
    assert (run / "figures" / "hessian_density.png").stat().st_size > 10_000


def test_micro_batches_and_repetition_change_nothing(data: Digits, classifier: AnnotatorClassifier):
    one, two, three = (
        HessianSpectrum(micro_batch=size).run(classifier, data).metrics for size in (1000, 1000, 77)
    )
    assert one == two
    assert three == pytest.approx(one, rel=1e-3, abs=1e-4)


def test_the_slice_is_that_of_high_disagreement(data: Digits, classifier: AnnotatorClassifier):
    assert data.corpus is not None
    test = data.rows("test")
    entropy = data.corpus.votes.entropy
    rows = data.high_disagreement_rows("test", 0.8)
    assert set(rows) == {row for row in test if entropy[row] >= np.quantile(entropy, 0.8)}
    result = HessianSpectrum(high_quantile=0.8).run(classifier, data)
    assert result.tables["hessian_density_high"]["items"] == len(rows)
    assert result.metrics["hessian_max_high"] != result.metrics["hessian_max"]


def test_a_sample_is_measured_as_if_it_were_all(
    data: Digits, classifier: AnnotatorClassifier, monkeypatch: pytest.MonkeyPatch
):
    result = HessianSpectrum(most_items=50, seed=3).run(classifier, data)
    assert (
        result.tables["hessian_density"]["items"]
        == result.tables["hessian_density_high"]["items"]
        == 50
    )
    chosen = some_of(data.rows("test"), 50, 3)
    assert set(chosen) < set(data.rows("test"))
    assert (np.diff(chosen) > 0).all()
    monkeypatch.setattr(data, "rows", lambda split: chosen)
    assert (
        HessianSpectrum(seed=3).run(classifier, data).metrics["hessian_max"]
        == result.metrics["hessian_max"]
    )
    assert (
        HessianSpectrum(most_items=50, seed=4)
        .run(classifier, data)
        .tables["hessian_density"]["items"]
        == 50
    )


def test_a_tolerance_that_is_not_reached_is_reported_with_its_residual(
    data: Digits, classifier: AnnotatorClassifier
):
    result = HessianSpectrum(
        tolerance=1e-7, trace_tolerance=1e-7, least_steps=2, most_products=4
    ).run(classifier, data)
    assert result.metrics["hessian_converged"] == 0
    assert result.metrics["hessian_max_residual"] > 0
    assert len(result.notes) == 4
    assert "did not reach the tolerance of 1e-07" in result.notes[0]
    assert "residual" in result.notes[0]
    assert "standard error" in result.notes[1]


def test_weights_that_are_not_numbers(data: Digits, classifier: AnnotatorClassifier):
    with torch.no_grad():
        classifier.network.head.weight[3, 5] = torch.nan  # pyright: ignore[reportIndexIssue]
    with pytest.raises(
        InputError, match=r"HessianSpectrum: network\.head\.weight holds values that are not finite"
    ):
        HessianSpectrum().run(classifier, data)


@pytest.mark.parametrize(
    "options",
    [
        {"tolerance": 0.0},
        {"trace_tolerance": 1.5},
        {"least_steps": 0},
        {"most_products": 0},
        {"micro_batch": -1},
        {"most_items": 0},
    ],
)
def test_options_out_of_range(options: dict):
    with pytest.raises(InputError, match=re.escape(f"HessianSpectrum's {next(iter(options))} is")):
        HessianSpectrum(**options)
