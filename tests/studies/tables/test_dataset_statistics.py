"""What reports say of datasets themselves, against numpy; and the histogram of the same
entropies.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.patches import StepPatch
from scipy import stats

from core.errors import InputError
from datamodules.vote_datamodule import Corpus, VoteDataModule
from datamodules.votes.table import VoteTable
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.figures.kinds.entropy_histogram import EntropyHistogram, draw_entropy_histogram
from studies.plan.published_numbers import published
from studies.report.section import DatasetsSpec, Section
from studies.tables.dataset_statistics import dataset_listing
from studies.tables.listing import listing_csv, listing_markdown
from studies.tables.table_formats import NOTHING
from tests.studies.report.item_datasets import Pictures, Texts

LEVELS = {"dataset": ["POPQUORN", "CIFAR10HHard", "ChaosNLI"]}
SPEC = DatasetsSpec(
    "t1",
    "Datasets",
    rows="dataset",
    published_entry=published("tables")["epistemic.table1"],
    levels=LEVELS,
)
HISTOGRAM = EntropyHistogram("h", panels="dataset", bins=10, levels=LEVELS)
SECTION = Section([], [], labels={"CIFAR10HHard": "CIFAR-10H-Hard"})


def record(level: str, kind: str, seed: int = 0) -> Record:
    config = {
        "data": {
            "class_path": f"tests.studies.report.item_datasets.{kind}",
            "init_args": {"seed": seed},
        }
    }
    return Record("r", Path("r"), {"dataset": level, "seed": seed}, {}, {}, config)


RECORDS = [
    record("POPQUORN", "Texts"),
    record("CIFAR10HHard", "Pictures"),
    record("POPQUORN", "Texts", seed=1),
]


@pytest.fixture(scope="module")
def data() -> DataOfRuns:
    return DataOfRuns()


def entropies(kind: type[VoteDataModule]) -> np.ndarray:
    probs = kind().load().votes.probs
    return stats.entropy(probs, axis=1) / np.log(probs.shape[1])


def test_numbers_are_those_of_the_vote_table(data):
    listing = dataset_listing(SPEC, RECORDS, SECTION, data)
    texts, pictures, absent = listing.rows
    counts = Texts().load().votes.counts
    assert counts is not None
    assert (
        texts["kind"],
        texts["classes"],
        texts["items"],
        texts["fewest_votes"],
        texts["most_votes"],
    ) == ("texts", 3, 3592, 3, 12)
    assert texts["votes_per_item"] == pytest.approx(counts.sum() / 3592)
    assert (pictures["kind"], pictures["classes"]) == ("images", 10)
    for row, kind in ((texts, Texts), (pictures, Pictures)):
        wanted = entropies(kind)
        assert row["normalized_entropy"] == pytest.approx(wanted.mean())
        assert row["normalized_entropy_sd"] == pytest.approx(wanted.std(ddof=1))
    assert np.isnan(absent["items"])
    assert "ChaosNLI: none of its runs is finished." in listing.caption


def test_published_values_stand_below_ours(data):
    listing = dataset_listing(SPEC, RECORDS, SECTION, data)
    text = listing_markdown(listing)
    (line,) = [line for line in text.splitlines() if line.startswith("| POPQUORN")]
    assert (
        "| texts | 3<br>published 5 | 3,592<br>published 3,700 | 7.5 (3 to 12)<br>published 6.7 |"
        in line
    )
    assert line.endswith("published 0.62 ± 0.18 |")
    assert "3,718 items" in text
    header = listing_csv(listing).splitlines()[0].split(",")
    assert {
        "items",
        "published_items",
        "normalized_entropy_sd",
        "published_normalized_entropy_sd",
    } < set(header)
    assert not any(name.endswith("_shown") for name in header)


def test_data_that_is_not_here_is_said_and_the_others_are_shown(data):
    class Away(DataOfRuns):
        def of(self, config: dict[str, Any]) -> VoteDataModule:
            if config["data"]["class_path"].endswith("Pictures"):
                raise InputError("data/cifar is not there; see the README.")
            return data.of(config)

    listing = dataset_listing(SPEC, RECORDS, SECTION, Away())
    assert listing.rows[0]["items"] == 3592
    assert "CIFAR-10H-Hard: data/cifar is not there; see the README." in listing.caption
    figure, message = draw_entropy_histogram(HISTOGRAM, RECORDS, SECTION, Away())
    assert figure is not None
    assert len(figure.axes) == 1
    assert "Not drawn for CIFAR-10H-Hard: data/cifar is not there; see the README." in message
    figure, message = draw_entropy_histogram(HISTOGRAM, RECORDS[1:2], SECTION, Away())
    assert figure is None


def test_probabilities_have_no_number_of_votes():
    class OnlyProbabilities(Texts):
        def load(self) -> Corpus:
            corpus = super().load()
            corpus.votes = VoteTable.from_probs(corpus.votes.probs)
            return corpus

    class Given(DataOfRuns):
        def of(self, config: dict[str, Any]) -> VoteDataModule:
            result = OnlyProbabilities()
            result.setup()
            return result

    row = dataset_listing(SPEC, RECORDS, SECTION, Given()).rows[0]
    assert row["votes_per_item_shown"] == f"{NOTHING}\npublished 6.7"
    assert row["items"] == 3592


def test_the_histogram_counts_every_item_once(data):
    figure, message = draw_entropy_histogram(HISTOGRAM, RECORDS, SECTION, data)
    assert figure is not None
    assert "Nothing to draw yet for ChaosNLI." in message
    for axes, kind in zip(figure.axes, (Texts, Pictures), strict=True):
        wanted = entropies(kind)
        counts = np.histogram(wanted.clip(0, 1), bins=10, range=(0, 1))[0]
        (drawn,) = [patch for patch in axes.patches if isinstance(patch, StepPatch)]
        # an entropy at the edge of a bin may be rounded
        assert drawn.get_data()[0] == pytest.approx(counts / len(wanted), abs=2e-3)
        assert sum(drawn.get_data()[0]) == pytest.approx(1)
        assert np.asarray(axes.get_lines()[0].get_xdata())[0] == pytest.approx(wanted.mean())
        assert axes.get_xlabel() == "normalised entropy"
    assert figure.axes[0].get_ylim() == figure.axes[1].get_ylim()


def test_a_dataset_is_loaded_once(monkeypatch: pytest.MonkeyPatch):
    loaded = []
    load = Texts.load
    monkeypatch.setattr(Texts, "load", lambda self: loaded.append(self.seed) or load(self))
    data = DataOfRuns()
    for seed, batch_size in ((0, 8), (0, 16), (1, 8)):
        config = record("POPQUORN", "Texts", seed).config
        config["data"]["init_args"]["batch_size"] = batch_size
        data.of(config)
    assert loaded == [0, 1]
