"""How sharp the basin is that training ended in: the Hessian's extreme eigenvalues, trace and
density, by Hessian-vector products alone.
"""

from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from callbacks.hessian.hessian_product import HessianProduct
from callbacks.hessian.spectral_density import draw_density, quadrature
from callbacks.hessian.spectrum import Eigenvalues, Spectrum, Traces, measure_spectrum
from callbacks.probe import Probe, ProbeResult
from core.errors import InputError
from core.randomness import some_of
from datamodules import VoteDataModule
from lightning_modules import AnnotatorClassifier


class HessianSpectrum(Probe):
    """The Hessian of the soft cross-entropy against annotators on the test items, and on those of
    high disagreement (`_high`).

    Metrics: `hessian_max` and `hessian_min` (largest and smallest eigenvalue by sign),
    `hessian_abs_max` (largest magnitude), each end's `_residual`, `hessian_trace` with
    `hessian_trace_se`, `hessian_products` (Hessian-vector products spent) and `hessian_converged`
    (1, or 0 where a tolerance was not reached, which a note then explains).
    """

    def __init__(
        self,
        tolerance: float = 0.01,
        trace_tolerance: float = 0.02,
        eigenvalues: Eigenvalues = "lanczos",
        trace: Traces = "hutch++",
        least_steps: int = 20,
        most_products: int = 200,
        density_starts: int = 1,
        high_quantile: float = 0.9,
        micro_batch: int = 512,
        most_items: int | None = None,
        seed: int = 0,
    ):
        """
        Args:
            tolerance: Relative error at which the eigenvalues are accepted. The paper states no
                tolerance, for these or the trace.
            trace_tolerance: Relative standard error at which the trace is accepted.
            eigenvalues: lanczos, or power for the papers' power iteration.
            trace: hutch++ (with Lanczos' own space as its sketch), xtrace, or hutchinson as in the
                papers.
            least_steps: Lanczos steps in any case; more than the number of classes, so that they
                hold the eigenvalues that stand apart.
            most_products: Hessian-vector products for the eigenvalues, and again for the trace,
                after which a tolerance is given up.
            density_starts: Random start vectors that the density is averaged over.
            high_quantile: Items whose entropy reaches this quantile are of high disagreement. The
                paper does not state its cut.
            micro_batch: Items that are differentiated at once, on each device: it bounds the
                memory.
            most_items: Measure on a sample of at most so many items, of all and of those of high
                disagreement; null for all of them, as in the paper.
            seed: Of the random vectors and the sample.
        """
        for name, value in {"tolerance": tolerance, "trace_tolerance": trace_tolerance}.items():
            if not 0 < value < 1:
                raise InputError(
                    f"HessianSpectrum's {name} is {value}; it must lie between 0 and 1."
                )
        counts = {
            "least_steps": least_steps,
            "most_products": most_products,
            "micro_batch": micro_batch,
            "most_items": most_items,
        }
        for name, value in counts.items():
            if value is not None and value < 1:
                raise InputError(f"HessianSpectrum's {name} is {value}; it must be at least 1.")
        self.options: dict[str, Any] = dict(
            seed=seed,
            tolerance=tolerance,
            trace_tolerance=trace_tolerance,
            eigenvalues=eigenvalues,
            trace=trace,
            least_steps=least_steps,
            most_products=most_products,
            density_starts=density_starts,
        )
        self.high_quantile, self.seed = high_quantile, seed
        self.micro_batch, self.most_items = micro_batch, most_items

    def measure(self, classifier: AnnotatorClassifier, data: VoteDataModule) -> ProbeResult:
        """The spectrum on all test items, and on those of high disagreement."""
        result = ProbeResult()
        every = data.rows("test")
        disagreed = data.high_disagreement_rows("test", self.high_quantile)
        slices = {
            suffix: some_of(rows, self.most_items, self.seed)
            for suffix, rows in {"": every, "_high": disagreed}.items()
        }
        spectra = {}
        for suffix, rows in slices.items():
            if len(rows) == 0:
                result.notes.append(
                    "no test item is of high disagreement, so the Hessian's numbers on that slice "
                    "are absent."
                )
                continue
            spectra[suffix] = self._spectrum(classifier, data, rows)
            self._report(result, suffix, spectra[suffix], len(rows))
        drawn = {suffix: spectrum for suffix, spectrum in spectra.items() if spectrum.spaces}
        if drawn:
            sizes = {suffix: len(rows) for suffix, rows in slices.items()}
            result.figures["hessian_density"] = partial(_picture, drawn, sizes)
        return result

    def _spectrum(
        self, classifier: AnnotatorClassifier, data: VoteDataModule, rows: np.ndarray
    ) -> Spectrum:
        ranks = data.trainer.world_size if data.trainer else 1

        def batches():
            for batch in data.evaluation_batches(rows, classifier.device, self.micro_batch * ranks):
                yield batch.inputs, batch.targets

        return measure_spectrum(HessianProduct(classifier, batches), **self.options)

    def _report(self, result: ProbeResult, suffix: str, spectrum: Spectrum, items: int) -> None:
        ends, trace = spectrum.ends, spectrum.trace
        values = {
            "max": ends.largest,
            "max_residual": ends.largest_residual,
            "min": ends.smallest,
            "min_residual": ends.smallest_residual,
            "abs_max": ends.abs_max,
            "trace": trace.value,
            "trace_se": trace.standard_error,
            "products": spectrum.products,
            "converged": float(ends.converged and trace.converged),
        }
        result.metrics |= {
            f"hessian_{name}{suffix}": float(value) for name, value in values.items()
        }
        where = "the items of high disagreement" if suffix else "the test items"
        if not ends.converged:
            result.notes.append(
                f"the Hessian's extreme eigenvalues on {where} did not reach the tolerance of "
                f"{self.options['tolerance']:g}: the largest is {ends.largest:.4g} with a "
                f"residual of {ends.largest_residual:.2g}; raise most_products."
            )
        if not trace.converged:
            result.notes.append(
                f"the Hessian's trace on {where} did not reach the tolerance of "
                f"{self.options['trace_tolerance']:g}: it is {trace.value:.4g} with a "
                f"standard error of {trace.standard_error:.2g}; raise most_products."
            )
        if spectrum.spaces:
            nodes, weights = quadrature(spectrum.spaces)
            result.tables[f"hessian_density{suffix}"] = {
                "items": items,
                "nodes": nodes.tolist(),
                "weights": weights.tolist(),
            }


def _picture(spectra: dict[str, Spectrum], items: dict[str, int]) -> Figure:
    figure = Figure(figsize=(4.8 * len(spectra), 3.6), layout="constrained", dpi=150)
    for number, (suffix, spectrum) in enumerate(spectra.items()):
        axes = figure.add_subplot(1, len(spectra), number + 1)
        name = "high disagreement" if suffix else "all test items"
        label = f"{name} ({items[suffix]:,}), trace {spectrum.trace.value:.4g}"
        draw_density(axes, *quadrature(spectrum.spaces), label)
    return figure
