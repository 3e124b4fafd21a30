"""SoftDigits as a datamodule: what it trains on and is judged by, its splits, its stand-in, and its
place in packs.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from callbacks import StratumScores
from callbacks.cartography.records import read_epochs, record_path
from callbacks.results import read_results
from cli import main
from core.errors import InputError
from corpora.annotation.crowd_models import crowd_labels
from corpora.annotation.soft_digits_table import write_soft_digits
from corpora.digit_corpus import read_corpus
from datamodules import Multipass, SoftDigits, SoftLabels
from datamodules.datasets.simulated_soft_digits import judgements
from experiment.build import build_classifier
from experiment.configuration import resolve
from experiment.identity import run_name
from experiment.run_checkpoints import best_checkpoint
from lightning_modules import AnnotatorClassifier
from lightning_modules.networks import SimpleFFN
from metrics import every_score
from metrics.cartography import CORRECT, TARGET
from studies.launch.pack_job import run_pack
from studies.launch.pack_members import build_members
from studies.plan.comparable_runs import load_weights
from studies.plan.packing import jobs_of
from studies.plan.study import Run
from tests.corpora.annotation.test_soft_digits_table import small_table
from tests.quiet import QUIET

CONFIG = str(Path(__file__).parents[3] / "configs/soft_digits.yaml")
REGIMES = ("original", "majority", "equal", "uncertainty")


def published(tmp_path: Path, **options) -> SoftDigits:
    path = tmp_path / "soft.parquet"
    if not path.exists():
        write_soft_digits(path, small_table(200, simulated=False))
    data = SoftDigits(published=str(path), **options)
    data.setup()
    return data


@pytest.mark.parametrize("regime", REGIMES)
def test_targets_and_evaluation_are_chosen_apart(regime: str, tmp_path: Path):
    data = published(tmp_path, targets=regime)
    assert data.corpus
    table = small_table(200)
    train = np.flatnonzero(table.split == "train")
    np.testing.assert_allclose(data.bound.targets(0), table.labels[regime].probs[train], atol=1e-6)
    np.testing.assert_allclose(data.annotator_probs, table.labels["uncertainty"].probs, atol=1e-6)
    judged = published(tmp_path, evaluate_against=regime)
    np.testing.assert_allclose(judged.annotator_probs, table.labels[regime].probs, atol=1e-6)
    np.testing.assert_allclose(
        judged.bound.targets(0), table.labels["uncertainty"].probs[train], atol=1e-6
    )
    assert not data.simulated


def test_split_normalisation_and_pictures(tmp_path: Path):
    data, table = published(tmp_path, source="mnist", batch_size=512), small_table(200)
    mine = np.flatnonzero(table.source == "mnist")
    for name in ("train", "val", "test"):
        np.testing.assert_array_equal(
            mine[data.rows(name)], np.flatnonzero((table.split == name) & (table.source == "mnist"))
        )
    ((inputs, index),) = data.loader(data.rows("train"), training=False)
    assert inputs.shape == (len(index), 1, 28, 28)
    assert inputs.mean().item() == pytest.approx(0, abs=1e-5)
    assert inputs.std().item() == pytest.approx(1, abs=1e-5)
    pictures = SoftDigits(published=data.published, source="mnist").original([2, 0])
    assert pictures.dtype == torch.uint8
    np.testing.assert_array_equal(pictures[:, 1], table.images[mine[[2, 0]]])
    np.testing.assert_array_equal(data.table.human_uncert_mean, table.human_uncert_mean[mine])
    assert len(data.class_names) == data.num_classes == 11


def test_a_split_by_seed(tmp_path: Path):
    first, again, other = (
        published(tmp_path, fractions=(0.6, 0.2, 0.2), seed=seed) for seed in (1, 1, 2)
    )
    assert [len(first.rows(name)) for name in ("train", "val", "test")] == [120, 40, 40]
    assert np.array_equal(first.rows("test"), again.rows("test"))
    assert not np.array_equal(first.rows("test"), other.rows("test"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"targets": "human"},
            "data.targets is human; it must be one of original, majority, equal, uncertainty, "
            "dawid_skene, mace.",
        ),
        (
            {"evaluate_against": "x"},
            "data.evaluate_against is x; it must be one of original, majority",
        ),
        ({"source": "ardis"}, "data.source is ardis; this data has mnist, mukhoti."),
        ({"fractions": (0.5, 0.5)}, r"data.fractions is \[0.5, 0.5\]; it must be three shares"),
        (
            {"targets": "mace"},
            "soft.parquet has no column soft_label_mace, which mace labels need; it has original, ",
        ),
        (
            {"delivery": Multipass()},
            "has only probabilities, so there are no votes to cycle through",
        ),
    ],
)
def test_bad_options(options: dict, message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        published(tmp_path, **options)


def test_a_file_made_from_a_simulated_crowd_says_so(tmp_path: Path):
    write_soft_digits(tmp_path / "soft.parquet", small_table(200, simulated=True))
    assert published(tmp_path).simulated


def test_the_stand_in_is_simulated_and_of_the_crowds_seed_alone(small_mnist: Path):
    first, second = (SoftDigits(root=str(small_mnist), seed=seed) for seed in (0, 1))
    first.setup()
    second.setup()
    assert first.simulated
    assert first.corpus
    assert len(first.corpus.votes) == 340
    assert torch.equal(first.annotator_probs, second.annotator_probs)
    assert np.array_equal(first.rows("test"), second.rows("test"))
    other = SoftDigits(root=str(small_mnist), crowd_seed=1)
    other.setup()
    assert not torch.equal(first.annotator_probs, other.annotator_probs)
    original, made = first.table.labels["original"], first.table.source == "interpolated"
    assert original.unanimous[~made].all()
    assert not original.unanimous[made].any()
    assert made.sum() == 140
    assert [len(first.rows(name)) for name in ("train", "val", "test")] == [238, 51, 51]


def run(root: Path, *options: str) -> Run:
    config = resolve(
        ["--config", CONFIG, "--data.root", str(root), "--trainer.max_epochs", "2", *options]
    )
    return Run(run_name(config), config, {})


def test_runs_that_differ_in_their_targets_share_data_in_a_pack(small_mnist: Path, tmp_path: Path):
    runs = [
        run(small_mnist, "--data.targets", regime, "--seed_everything", str(seed))
        for seed in (0, 1)
        for regime in REGIMES
    ]
    (job,) = jobs_of(runs, processes=1)
    assert job.packed
    members, owners = build_members(job.runs, tmp_path)
    assert len({id(member.data) for member in members}) == 2
    for member, (owner,) in zip(members, owners, strict=True):
        alone = SoftDigits(
            root=str(small_mnist),
            targets=owner.config["data"]["init_args"]["targets"],
            seed=owner.config["seed_everything"],
        )
        alone.setup()
        assert torch.equal(member.bound.targets(0), alone.bind(SoftLabels(), None).targets(0))
    assert isinstance(members[0].classifier.network, SimpleFFN)
    folder = tmp_path / "runs"
    assert (
        run_pack(
            runs[:4], folder, tmp_path / "state.pt", predict=False, progress=lambda share: None
        )
        == {}
    )
    results = [read_results(r.folder(folder)) for r in runs[:4]]
    assert [result["targets"] for result in results if result] == list(REGIMES)
    assert all(
        result and result["simulated_annotators"] and result["evaluate_against"] == "uncertainty"
        for result in results
    )


def test_maps_are_of_the_class_that_a_run_is_trained_on(small_mnist: Path, tmp_path: Path):
    """Packed runs share their data, but each must be followed on its own labels, as it is alone."""
    runs = [
        run(small_mnist, "--data.targets", regime, "--trainer.callbacks+=DataCartography")
        for regime in ("original", "majority")
    ]
    assert (
        run_pack(runs, tmp_path, tmp_path / "state.pt", predict=False, progress=lambda share: None)
        == {}
    )
    data = SoftDigits(root=str(small_mnist))
    data.setup()
    rows = np.sort(data.rows("train"))
    differ = data.labels("original").majority[rows] != data.labels("majority").majority[rows]
    assert differ.any()
    records = {}
    for regime, packed in zip(("original", "majority"), runs, strict=True):
        records[regime] = read_epochs(record_path(packed.folder(tmp_path), "train"), len(rows))
        network = build_classifier(packed.config, data).network
        load_weights(packed, tmp_path, network)
        epoch = torch.load(best_checkpoint(packed.folder(tmp_path)), weights_only=True)["epoch"]
        with torch.no_grad():
            probs = torch.cat(
                [
                    network.eval()(batch.inputs).softmax(-1)
                    for batch in data.evaluation_batches(rows)
                ]
            )
        target = data.labels(regime).majority[rows]
        np.testing.assert_allclose(
            records[regime][epoch, TARGET],
            probs[torch.arange(len(rows)), torch.from_numpy(target)],
            atol=1e-5,
        )
        np.testing.assert_array_equal(
            records[regime][epoch, CORRECT], probs.argmax(1).numpy() == target
        )
    alone = main(
        [
            "fit",
            "--config",
            CONFIG,
            "--data.root",
            str(small_mnist),
            "--data.targets",
            "original",
            "--trainer.max_epochs",
            "2",
            "--trainer.callbacks+=DataCartography",
            "--trainer.default_root_dir",
            str(tmp_path / "alone"),
            *QUIET,
        ]
    ).run_dir
    np.testing.assert_allclose(
        read_epochs(record_path(alone, "train"), len(rows)), records["original"], atol=1e-4
    )


def test_the_original_labels_judge_a_model_beside_people(small_mnist: Path):
    data = SoftDigits(root=str(small_mnist))
    data.setup()
    classifier = AnnotatorClassifier(data.input_shape, data.num_classes, network=SimpleFFN)
    result = StratumScores().run(classifier, data)
    judged = SoftDigits(root=str(small_mnist), evaluate_against="original")
    judged.setup()
    with torch.no_grad():
        predictions = [
            classifier.predict(batch) for batch in judged.evaluation_batches(judged.rows("test"))
        ]
    probs, labels, index = (torch.cat(parts) for parts in zip(*predictions, strict=True))
    disputed = torch.from_numpy(~data.labels("uncertainty").unanimous)[index]
    for suffix, mask in (("", torch.ones_like(disputed)), ("_hlv", disputed)):
        expected = {
            f"{name}_original{suffix}": value
            for name, value in every_score(probs[mask], labels[mask]).items()
        }
        expected = {name: value for name, value in expected.items() if not np.isnan(value)}
        assert {name: result.metrics[name] for name in expected} == pytest.approx(
            expected, abs=1e-6
        )
    # judged by other labels, but in people's strata
    other = StratumScores().run(classifier, judged).metrics
    assert "accuracy_uncertainty" in other
    assert other["items_hlv"] == result.metrics["items_hlv"] == disputed.sum()


def test_a_model_of_annotators_gives_targets(small_mnist: Path):
    data = SoftDigits(root=str(small_mnist), targets="dawid_skene", source="interpolated")
    data.setup()
    expected = crowd_labels(judgements(str(small_mnist), 6, 0), "dawid_skene", 0)[
        -len(data.table.images) :
    ]
    np.testing.assert_allclose(data.training_votes().probs, expected, atol=1e-9)
    delivered = data.bound.targets(0)
    np.testing.assert_allclose(delivered.numpy(), expected[data.rows("train")], atol=1e-6)
    assert not np.allclose(expected, data.annotator_votes.probs)


@pytest.mark.long
def test_the_stand_in_of_real_digits(real_data: Path, tmp_path: Path):
    (tmp_path / "mnist").symlink_to(real_data / "mnist")  # what is built goes beside it
    data = SoftDigits(root=str(tmp_path))
    data.prepare_data()
    data.setup()
    table = data.table
    for name, sizes in (("mnist", [2131, 457, 457]), ("interpolated", [1738, 373, 373])):
        assert [
            int(((table.source == name) & (table.split == split)).sum())
            for split in ("train", "val", "test")
        ] == sizes
    human, original, single = (
        table.labels["uncertainty"],
        table.labels["original"],
        table.source == "mnist",
    )
    agrees = human.majority == original.majority
    # the crowd reads most digits, and it is tuned to be of one mind as often as people are
    assert agrees[single].mean() > 0.8
    assert abs(human.unanimous[single].mean() - 0.60) < 0.04
    assert abs(human.unanimous[~single].mean() - 0.19) < 0.08
    assert abs(table.human_uncert_mean[single].mean() - 0.025) < 0.01
    assert abs(table.human_uncert_mean[~single].mean() - 0.076) < 0.01
    report = json.loads((tmp_path / "soft-digits-simulated" / "corpus.json").read_text())
    assert report["sources"]["mnist"]["exact_duplicates"] == 0  # as the paper found
    assert report["sources"]["mnist"]["near_duplicates"] == 3
    assert report["corpus_leakage"] == []
    corpus = read_corpus(tmp_path / "soft-digits-simulated" / "corpus.parquet")
    for name in ("mnist", "interpolated"):
        chosen = (corpus.source == name) & (corpus.split == "train") & (corpus.difficulty == "easy")
        assert np.bincount(corpus.labels.argmax(1)[chosen], minlength=10).min() >= 150
