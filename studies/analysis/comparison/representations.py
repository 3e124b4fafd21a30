"""What sets methods apart that score alike: representations, loss barriers and Grad-CAM maps,
compared between finished runs.

Two runs are always compared on the items that neither of them trained on (validation items, by
which checkpoints are chosen, are among them). Runs of one seed share their split; runs of two seeds
share what both splits happen to hold out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from callbacks.grad_cam import grad_cam_maps, map_correlations, name_of, spatial_layer
from core.errors import InputError
from core.randomness import generator
from datamodules import VoteDataModule
from experiment.build import build_classifier, build_data, class_of
from lightning_modules.networks import Network
from studies.analysis.comparison.cka import linear_cka
from studies.analysis.comparison.comparison import Comparison, PairLine, PairValue
from studies.analysis.comparison.loss_barrier import loss_line
from studies.plan.comparable_runs import by_method, load_weights
from studies.plan.study import Run


@dataclass(frozen=True)
class View:
    """A run as the items that it did not train on show it."""

    run: str
    method: Any
    seed: int
    rows: np.ndarray  # those items, in ascending order
    features: Tensor  # [len(rows), D]
    maps: Tensor | None  # [len(rows), h, w]; None where the network has no layer that gives maps


@dataclass(frozen=True)
class SeedFindings:
    """What the runs of one seed have to say, without their networks and data."""

    views: list[View]
    lines: list[PairLine]
    disputed: np.ndarray  # whether each item of the dataset is in the high-entropy slice
    layer: str | None


def compare_runs(
    study_runs: list[Run],
    runs: Path,
    factor: str = "data.delivery",
    points: int = 11,
    quantile: float = 0.9,
    layer: str | None = None,
    device: str | None = None,
) -> Comparison:
    """Compare finished runs of one network on one dataset, across seeds within each method and
    across methods.

    Every run is loaded and looked at once, seed after seed: in memory are one seed's data and
    weights, and of every run its features and maps.

    Args:
        study_runs: The runs, each with its checkpoint in its folder below `runs`.
        runs: The folder of all runs.
        factor: Its levels are the methods; runs of one seed are paired across them.
        points: Of the line between two networks, ends included. The paper does not state it.
        quantile: Of annotators' entropy; items that reach it are the high-entropy slice. The paper
            does not state it.
        layer: Whose maps Grad-CAM looks at, by dotted name; None for the network's own choice.
        device: Where networks run; None for a GPU where there is one. The barriers of a full
            ResNet-18 take hours on a CPU.
    """
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    methods = by_method(study_runs, runs, factor)
    result: list[SeedFindings] = []
    simulated = False
    for seed in sorted({seed for seeds in methods.values() for seed in seeds}):
        members = {method: seeds[seed] for method, seeds in methods.items() if seed in seeds}
        data = build_data(next(iter(members.values())).config)
        simulated |= data.simulated
        _check_probe_sets(data, [earlier.views[0] for earlier in result])
        result.append(_look_at_seed(members, data, runs, points, quantile, layer, device))
    views = [view for part in result for view in part.views]
    lines = [line for part in result for line in part.lines]
    config = study_runs[0].config
    network = class_of(config["model"]["network"]).__name__
    named = config["data"].get("init_args", {}).get("name")
    return Comparison(
        dataset=named or class_of(config["data"]).__name__,
        simulated_annotators=simulated,
        network=network,
        layer=result[0].layer,
        factor=factor,
        methods=list(methods),
        table_items=len(result[0].disputed),
        quantile=quantile,
        values=[*_similarities(views, list(methods), result[0].disputed), *_barriers(lines)],
        lines=lines,
        notes=list(_remarks(network, views, lines)),
    )


def held_out(data: VoteDataModule) -> np.ndarray:
    """The items that runs on this data do not train on."""
    assert data.corpus is not None
    return np.setdiff1d(np.arange(len(data.corpus.votes)), data.corpus.splits["train"])


def statistics_rows(data: VoteDataModule) -> np.ndarray:
    """The training items that BatchNorm statistics are measured on: shuffled, so that batches are
    alike, and cut to whole batches, which count alike.
    """
    assert data.corpus is not None
    rows = generator(data.seed, "batch-norm-items").permutation(data.corpus.splits["train"])
    return rows[: max(len(rows) // data.batch_size, 1) * data.batch_size]


def look(
    network: Network, layer: nn.Module | None, data: VoteDataModule, rows: np.ndarray
) -> tuple[Tensor, Tensor | None]:
    """Penultimate features of some items, and the Grad-CAM maps of their majority class: the same
    question for every run.
    """
    features, maps = [], []
    device = next(network.parameters()).device
    for inputs, annotator_probs, _ in data.evaluation_batches(rows, device):
        with torch.no_grad():
            features.append(network.features(inputs).cpu())
        if layer is not None:
            maps.append(grad_cam_maps(network, layer, inputs, annotator_probs.argmax(-1)).cpu())
    return torch.cat(features), torch.cat(maps) if maps else None


def _look_at_seed(
    members: dict[Any, Run],
    data: VoteDataModule,
    runs: Path,
    points: int,
    quantile: float,
    layer: str | None,
    device: str,
) -> SeedFindings:
    assert data.corpus is not None
    disputed = data.high_disagreement(quantile)
    network = build_classifier(next(iter(members.values())).config, data).network.to(device).eval()
    spatial = None if layer is None and network.spatial is None else spatial_layer(network, layer)
    rows, states, views = held_out(data), {}, []
    for method, run in members.items():
        states[method] = load_weights(run, runs, network)
        views.append(View(run.name, method, data.seed, rows, *look(network, spatial, data, rows)))
    items, training = (
        partial(data.evaluation_batches, chosen, device) for chosen in (rows, statistics_rows(data))
    )
    lines = []
    for a, b in combinations(members, 2):
        line = loss_line(network, states[a], states[b], items, training, points)
        lines.append(PairLine((a, b), data.seed, len(rows), line))
    name = None if spatial is None else name_of(network, spatial)
    return SeedFindings(views, lines, disputed, name)


def _check_probe_sets(data: VoteDataModule, others: list[View]) -> None:
    """Before anything is computed: every two runs need items that neither trained on."""
    rows = held_out(data)
    if len(rows) == 0:
        raise InputError(
            f"the runs of seed {data.seed} trained on all items; runs are compared on items that "
            "neither trained on."
        )
    for other in others:
        if len(np.intersect1d(rows, other.rows)) == 0:
            raise InputError(
                f"there is no item that the runs of both seed {other.seed} and seed {data.seed} "
                "did not train on; runs are compared on such items, so hold out more."
            )


def _similarities(
    views: list[View], methods: list[Any], disputed: np.ndarray
) -> Iterator[PairValue]:
    """CKA of every two runs, and Grad-CAM stability of every two of one method, on the items that
    neither trained on.
    """
    for a, b in combinations(sorted(views, key=lambda view: methods.index(view.method)), 2):
        rows = np.intersect1d(a.rows, b.rows, assume_unique=True)
        of_a, of_b = (torch.from_numpy(np.searchsorted(view.rows, rows)) for view in (a, b))
        pair = (a.method, b.method), (a.seed, b.seed)
        yield PairValue("cka", *pair, linear_cka(a.features[of_a], b.features[of_b]), len(rows))
        if a.method == b.method and a.maps is not None and b.maps is not None:
            alike = map_correlations(a.maps[of_a], b.maps[of_b]).numpy()
            for measure, chosen in (("grad_cam", alike), ("grad_cam_high", alike[disputed[rows]])):
                defined = chosen[~np.isnan(chosen)]
                value = float(defined.mean()) if len(defined) else float("nan")
                yield PairValue(measure, *pair, value, len(defined), len(chosen) - len(defined))


def _barriers(lines: list[PairLine]) -> Iterator[PairValue]:
    for result in lines:
        pair = result.methods, (result.seed, result.seed)
        yield PairValue("barrier", *pair, result.line.barrier, result.items)
        reestimated = result.line.reestimated_barrier
        if reestimated is not None:
            yield PairValue("barrier_reestimated", *pair, reestimated, result.items)


def _remarks(network: str, views: list[View], lines: list[PairLine]) -> Iterator[str]:
    """What a reader must know about the numbers, and what may be looked for in vain."""
    yield "CKA is the higher the fewer the items, so compare only rows with about as many."
    if views[0].maps is None:
        yield f"{network} has no layer that gives maps, so there is no Grad-CAM stability."
    if not lines:
        yield "No seed has runs of two methods, so there is no loss barrier."
    elif lines[0].line.reestimated is None:
        yield (
            f"{network} has no BatchNorm, so there is no barrier with its statistics re-estimated."
        )
