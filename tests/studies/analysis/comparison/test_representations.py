"""Finished runs compared with each other: on which items, with which numbers, and refusals in one
sentence.
"""

import json
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from callbacks.grad_cam import grad_cam_maps, map_correlations
from core.errors import InputError
from core.randomness import generator
from datamodules import VoteDataModule
from experiment.build import build_classifier, build_data
from experiment.configuration import resolve
from experiment.identity import run_name
from experiment.run_checkpoints import best_checkpoint
from metrics import functional
from studies.analysis.comparison.cka import linear_cka
from studies.analysis.comparison.comparison import Comparison, PairValue
from studies.analysis.comparison.representations import compare_runs, statistics_rows
from studies.launch.pack_job import run_pack
from studies.plan.study import Run

ROOT = Path(__file__).parents[4]
DIGITS = ["--config", str(ROOT / "configs/digits.yaml")]
METHODS = ("SoftLabels", "Multipass")


def run(delivery: str, seed: int, *options: str) -> Run:
    config = resolve(["--seed_everything", str(seed), *options, "--data.delivery", delivery])
    return Run(
        run_name(config), config, {"main": {"data.delivery": delivery, "seed_everything": seed}}
    )


def keep(run: Run, runs: Path, state: dict[str, Tensor]) -> None:
    path = best_checkpoint(run.folder(runs))
    path.parent.mkdir(parents=True)
    saved = {f"network.{name}": value for name, value in state.items()}
    torch.save({"state_dict": saved, "pytorch-lightning_version": "2.6.0"}, path)


@cache
def digits_of(seed: int) -> VoteDataModule:
    """Which delivery it has does not matter here."""
    return build_data(run("SoftLabels", seed, *DIGITS).config)


def network_of(run: Run, runs: Path):
    """Its data and its network with the checkpoint's weights."""
    data = digits_of(run.config["seed_everything"])
    network = build_classifier(run.config, data).network.eval()
    saved = torch.load(best_checkpoint(run.folder(runs)), weights_only=True)["state_dict"]
    network.load_state_dict({name.removeprefix("network."): value for name, value in saved.items()})
    return data, network


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Run], Path]:
    """Two methods and two seeds of LeNet whose weights are those of initialisation, moved a little
    by chance.
    """
    folder = tmp_path_factory.mktemp("runs")
    runs = [
        run(delivery, seed, *DIGITS, "--model.network", "LeNet")
        for delivery in METHODS
        for seed in (0, 1)
    ]
    for number, one in enumerate(runs):
        state = build_classifier(
            one.config, digits_of(one.config["seed_everything"])
        ).network.state_dict()
        rng = generator(number, "noise")
        keep(
            one,
            folder,
            {
                name: value + torch.from_numpy(rng.normal(0, 0.1, value.shape)).float()
                for name, value in state.items()
            },
        )
    return runs, folder


@pytest.fixture(scope="module")
def compared(digits) -> Comparison:
    return compare_runs(*digits, points=5, device="cpu")


def value(
    comparison: Comparison, measure: str, methods: tuple[str, str], seeds: tuple[int, int]
) -> PairValue:
    (result,) = [
        v for v in comparison.values if (v.measure, v.methods, v.seeds) == (measure, methods, seeds)
    ]
    return result


def seen(runs: list[Run], folder: Path, a: int, b: int):
    """Both networks with the items that neither trained on, each as its own data prepares them."""
    (data_a, network_a), (data_b, network_b) = (
        network_of(runs[number], folder) for number in (a, b)
    )
    trained = set(data_a.corpus.splits["train"]) | set(data_b.corpus.splits["train"])
    rows = np.array([row for row in range(len(data_a.corpus.votes)) if row not in trained])
    inputs = [
        torch.cat([inputs for inputs, _ in data.loader(rows, training=False)])
        for data in (data_a, data_b)
    ]
    return rows, data_a, [(network_a, inputs[0]), (network_b, inputs[1])]


@pytest.mark.parametrize(("a", "b"), [(0, 1), (0, 2), (0, 3), (1, 2)])
def test_cka_is_of_penultimate_features_of_items_that_neither_run_trained_on(
    digits, compared, a: int, b: int
):
    rows, _, sides = seen(*digits, a, b)
    with torch.no_grad():
        expected = linear_cka(*(network.features(inputs) for network, inputs in sides))
    runs = digits[0]
    methods, seeds = (
        tuple(runs[n].factors["main"][f] for n in (a, b))
        for f in ("data.delivery", "seed_everything")
    )
    result = value(compared, "cka", methods, seeds)
    assert result.items == len(rows)
    assert (result.items > 1000) == (seeds[0] == seeds[1])
    assert result.value == pytest.approx(expected, abs=1e-6)


def test_grad_cam_stability_is_the_mean_correlation_overall_and_where_annotators_disagree(
    digits, compared
):
    rows, data, sides = seen(*digits, 0, 1)
    classes = torch.from_numpy(data.corpus.votes.majority[rows])
    maps = [grad_cam_maps(network, network.spatial, inputs, classes) for network, inputs in sides]
    correlations = map_correlations(*maps)
    entropy = data.corpus.votes.entropy
    disputed = torch.from_numpy(entropy[rows] >= np.quantile(entropy, 0.9))
    for measure, chosen in (("grad_cam", correlations), ("grad_cam_high", correlations[disputed])):
        result = value(compared, measure, ("SoftLabels", "SoftLabels"), (0, 1))
        assert result.value == pytest.approx(chosen.nanmean().item(), abs=1e-6)
        assert (result.items, result.left_out) == (
            int((~chosen.isnan()).sum()),
            int(chosen.isnan().sum()),
        )
    assert 0 < disputed.sum() < len(rows) / 4
    assert {v.methods for v in compared.values if v.measure.startswith("grad_cam")} == {
        (method, method) for method in METHODS
    }


def test_barriers_are_between_methods_of_one_seed(digits, compared):
    assert [(line.methods, line.seed) for line in compared.lines] == [(METHODS, 0), (METHODS, 1)]
    line = compared.lines[1]
    rows, data, sides = seen(*digits, 1, 3)
    annotator_probs = torch.from_numpy(data.corpus.votes.probs[rows])
    for (network, inputs), loss in zip(
        sides, (line.line.plain[0], line.line.plain[-1]), strict=True
    ):
        with torch.no_grad():
            assert loss == pytest.approx(
                functional.soft_nll(network(inputs).double().softmax(-1), annotator_probs).item(),
                abs=1e-6,
            )
    assert (line.items, line.line.alphas) == (len(rows), [0, 0.25, 0.5, 0.75, 1])
    (network, inputs), (other, _) = sides
    network.load_state_dict(
        {
            name: (weights + other.state_dict()[name]) / 2
            for name, weights in network.state_dict().items()
        }
    )
    with torch.no_grad():
        middle = functional.soft_nll(network(inputs).double().softmax(-1), annotator_probs).item()
    assert line.line.plain[2] == pytest.approx(middle, abs=1e-6)
    assert value(compared, "barrier", METHODS, (1, 1)).value == line.line.barrier
    assert line.line.reestimated is None
    assert compared.notes[1:] == [
        "LeNet has no BatchNorm, so there is no barrier with its statistics re-estimated."
    ]


def test_rows_say_how_many_pairs_and_items_are_behind_each_mean(compared):
    rows = {(row.measure, row.methods, row.seeds): row for row in compared.rows}
    assert list(rows) == [
        ("cka", ("SoftLabels", "SoftLabels"), "different"),
        ("cka", ("Multipass", "Multipass"), "different"),
        ("cka", METHODS, "same"),
        ("cka", METHODS, "different"),
        ("cka", METHODS, "all"),
        ("barrier", METHODS, "same"),
        *(
            (measure, (method, method), "different")
            for measure in ("grad_cam", "grad_cam_high")
            for method in METHODS
        ),
    ]
    assert [row.pairs for row in compared.rows] == [1, 1, 2, 2, 4, 2, 1, 1, 1, 1]
    both = [value(compared, "cka", METHODS, seeds) for seeds in ((0, 0), (1, 1))]
    row = rows["cka", METHODS, "same"]
    assert (row.mean, row.sd) == (
        pytest.approx(np.mean([v.value for v in both])),
        pytest.approx(np.std([v.value for v in both], ddof=1)),
    )
    assert rows["cka", METHODS, "all"].items == (
        rows["cka", METHODS, "different"].items[0],
        row.items[1],
    )
    assert compared.probe_set == (
        "Two runs are compared on the items that neither of them trained on: "
        f"{rows['cka', METHODS, 'different'].items[0]} for runs of different seeds and 1,076 for "
        "runs of one seed, of 3,592."
    )


def test_the_file_holds_everything_and_is_the_same_each_time(digits, compared, tmp_path: Path):
    first = compared.write(tmp_path / "a")
    content = json.loads(
        first.read_text(), parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON")
    )
    assert first.name == "representations.json"
    assert content["probe_set"] == compared.probe_set
    assert (content["dataset"], content["simulated_annotators"], content["network"]) == (
        "Digits",
        True,
        "LeNet",
    )
    assert (content["factor"], content["methods"], content["layer"]) == (
        "data.delivery",
        list(METHODS),
        "LeNet.convolutions.4",
    )
    assert len(content["rows"]) == 10
    assert content["rows"][0]["sd"] is None, "a single pair has no SD"
    assert content["lines"][0]["line"]["plain"] == compared.lines[0].line.plain
    torch.manual_seed(5)
    again = compare_runs(*digits, points=5, device="cpu").write(tmp_path / "b")
    assert again.read_bytes() == first.read_bytes()


def test_the_order_of_runs_changes_no_number(digits, compared):
    runs, folder = digits
    swapped = compare_runs(runs[::-1], folder, points=5, device="cpu")
    assert swapped.methods == list(METHODS[::-1])
    assert sorted(v.value for v in swapped.values) == pytest.approx(
        sorted(v.value for v in compared.values), abs=1e-9
    )


RESNET = [
    "--data",
    "CIFAR10H",
    "--data.eval_fraction",
    "0.4",
    "--data.batch_size",
    "16",
    "--model.network",
    "ResNet18",
    "--model.network.width",
    "4",
]


def test_equal_weights_are_alike_in_every_way_and_batch_norm_is_measured_anew(
    small_cifar: Path, tmp_path: Path
):
    runs = [
        run(delivery, seed, *RESNET, "--data.root", str(small_cifar))
        for delivery in METHODS
        for seed in (0, 1)
    ]
    data = build_data(runs[0].config)
    network = build_classifier(runs[0].config, data).network.train()
    network(next(iter(data.loader(np.arange(60), training=False)))[0])
    for one in runs:
        keep(one, tmp_path, network.state_dict())
    result = compare_runs(runs, tmp_path, points=3, device="cpu")
    assert {v.measure for v in result.values} == {
        "cka",
        "barrier",
        "barrier_reestimated",
        "grad_cam",
        "grad_cam_high",
    }
    for v in result.values:
        if not math.isnan(v.value):  # few items: a slice may be empty
            assert v.value == pytest.approx(0 if v.measure.startswith("barrier") else 1, abs=1e-9)
    assert len(result.notes) == 1
    assert "compare only rows with about as many" in result.notes[0]
    line = result.lines[0].line
    assert abs(line.plain[0] - line.reestimated[0]) > 1e-3
    rows = statistics_rows(data)
    assert len(rows) == 32
    assert set(rows) <= set(data.corpus.splits["train"])


def test_a_packed_study_is_compared_as_it_was_left_with_what_its_network_allows(tmp_path: Path):
    runs = [
        run(delivery, seed, *DIGITS, "--trainer.max_epochs", "2")
        for delivery in METHODS
        for seed in (0, 1)
    ]
    assert run_pack(runs, tmp_path, tmp_path / "state.pt", False, lambda share: None) == {}
    result = compare_runs(runs, tmp_path, points=3, device="cpu")
    assert {v.measure for v in result.values} == {"cka", "barrier"}
    assert (
        result.notes[1]
        == "SimpleFFN has no layer that gives maps, so there is no Grad-CAM stability."
    )
    trained = json.loads((runs[0].folder(tmp_path) / "results.json").read_text())["metrics"][
        "soft_nll"
    ]
    # on test and validation items here, on test items alone there
    assert result.lines[0].line.plain[0] == pytest.approx(trained, abs=0.1)


def mistakes():
    lenet = [*DIGITS, "--model.network", "LeNet"]
    return [
        (
            "another network",
            lambda runs: [*runs, run("SoftLabels", 2, *DIGITS)],
            {},
            "are of different networks",
        ),
        (
            "other data",
            lambda runs: [*runs, run("SoftLabels", 2, *lenet, "--data.crowd_seed", "5")],
            {},
            "are of different data",
        ),
        (
            "no checkpoint",
            lambda runs: [*runs, run("SoftLabels", 2, *lenet)],
            {},
            "has no checkpoint .*; finish that run first",
        ),
        ("one seed", lambda runs: runs[:3], {}, "data.delivery = Multipass has one seed only"),
        ("no runs", lambda runs: [], {}, "there are no runs to compare"),
        (
            "twice the same",
            lambda runs: [*runs, runs[0]],
            {},
            "have the same data.delivery and seed",
        ),
        (
            "unknown factor",
            lambda runs: runs,
            {"factor": "model.width"},
            "has no level of model.width; its factors are data.delivery, seed_everything",
        ),
        (
            "unknown layer",
            lambda runs: runs,
            {"layer": "conv9"},
            "layer is conv9, which LeNet does not have",
        ),
        ("two points", lambda runs: runs, {"points": 2}, "points is 2"),
        ("quantile", lambda runs: runs, {"quantile": 1.5}, "quantile is 1.5"),
    ]


@pytest.mark.parametrize(
    ("change", "options", "message"), [pytest.param(*m[1:], id=m[0]) for m in mistakes()]
)
def test_what_cannot_be_compared_is_told_in_one_sentence(
    digits, change, options: dict, message: str
):
    runs, folder = digits
    with pytest.raises(InputError, match=message) as error:
        compare_runs(change(runs), folder, device="cpu", **options)
    assert "\n" not in str(error.value)


def save(path: Path, bias: Tensor) -> None:
    """The same checkpoint with another bias."""
    saved = torch.load(path, weights_only=True)
    torch.save({**saved, "state_dict": {**saved["state_dict"], "network.head.bias": bias}}, path)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.write_bytes(b"no checkpoint"), "is not a checkpoint that can be read"),
        (
            lambda path: save(path, torch.zeros(3)),
            "does not hold the weights of its config's LeNet",
        ),
        (
            lambda path: save(path, torch.full((10,), math.nan)),
            "head.bias holds values that are not finite",
        ),
    ],
)
def test_a_spoilt_checkpoint_is_named(digits, tmp_path: Path, spoil, message: str):
    runs, folder = digits
    for one in runs:
        best_checkpoint(one.folder(tmp_path)).parent.mkdir(parents=True)
        best_checkpoint(one.folder(tmp_path)).write_bytes(
            best_checkpoint(one.folder(folder)).read_bytes()
        )
    spoil(best_checkpoint(runs[1].folder(tmp_path)))
    with pytest.raises(InputError, match=f"{runs[1].name}.*{message}"):
        compare_runs(runs, tmp_path, points=3, device="cpu")


def test_seeds_without_a_common_held_out_item_are_refused(small_cifar: Path, tmp_path: Path):
    few = ["--data.eval_fraction", "0.04", "--data.root", str(small_cifar)]
    runs = [run("SoftLabels", seed, *RESNET, *few) for seed in range(2)]
    for one in runs:
        keep(
            one, tmp_path, build_classifier(one.config, build_data(one.config)).network.state_dict()
        )
    with pytest.raises(
        InputError,
        match="there is no item that the runs of both seed 0 and seed 1 did not train on",
    ):
        compare_runs(runs, tmp_path, device="cpu")
