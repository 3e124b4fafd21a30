"""A corpus from its sources: what is planted is found, a killed build goes on to the same bytes,
and one process at a time builds.
"""

import json
import os
import shutil
import signal
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.numpy import save

from cli import main
from core.atomic_io import SUFFIX
from core.errors import InputError
from corpora import building, sources, stages
from corpora.annotation.annotated_corpus import COLUMNS
from corpora.annotation.soft_digits_table import read_soft_digits
from corpora.building import CORPUS, build_corpus
from corpora.corpus_report import summary
from corpora.difficulty import Regions
from corpora.digit_corpus import read_corpus
from corpora.evidence import EVIDENCE
from corpora.options import CorpusOptions, Place, SourceOptions, read_options
from corpora.sources import mnist_source
from datamodules.datasets import simulated_soft_digits
from datamodules.io.tables import read_table
from tests.conftest import SMALL_CORPUS
from tests.corpora.test_sources import write_ambiguous, write_ardis

# Python 3.12 warns; a fresh process would import for seconds
FORK = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
EVERYTHING = Regions(2, 0.5, 0.05, 0.01)  # is easy


@pytest.fixture
def planted(small_mnist: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """MNIST, an Ambiguous-MNIST and an ARDIS of 40 images each: with copies of MNIST's and of each
    other's images, exact and almost.
    """
    monkeypatch.setattr(sources, "AMBIGUOUS_TRAIN", 30)
    mnist, rng = mnist_source(str(small_mnist)), np.random.default_rng(0)
    ambiguous = rng.integers(0, 256, size=(40, 28, 28))
    ambiguous[3] = mnist.images[950]  # of MNIST's test part
    ambiguous[31] = ambiguous[7]  # from its own training part to its test part
    ardis = rng.integers(0, 256, size=(40, 28, 28))
    # almost one of MNIST's training part
    ardis[39] = np.minimum(mnist.images[8].astype(int) + 1, 255)
    ardis[20] = ardis[2]
    labels = torch.from_numpy(rng.integers(0, 10, size=(40, 10)))
    write_ambiguous(small_mnist, torch.from_numpy(ambiguous / 255)[:, None], labels)
    return write_ardis(small_mnist, ardis, np.arange(40) % 10)


def test_planted_duplicates_are_removed_and_leaks_reported_pair_by_pair(
    planted: Path, tmp_path: Path
):
    sources = {
        "mnist": SourceOptions(EVERYTHING, (140, 30, 30)),
        "mukhoti": SourceOptions(EVERYTHING),
        "ardis": SourceOptions(EVERYTHING),
    }
    options = CorpusOptions(sources, easy_per_digit=14, known_digits=100, near_duplicate=0.995)
    report = build_corpus(options, Place(str(planted), tmp_path / "out"))
    counts = {
        name: (result["exact_duplicates"], result["near_duplicates"], result["kept"])
        for name, result in report["sources"].items()
    }
    assert counts == {"mnist": (0, 0, 1000), "mukhoti": (2, 0, 38), "ardis": (1, 1, 38)}
    assert [(leak["kind"], *leak["between"], leak["pairs"]) for leak in report["leakage"]] == [
        ("exact", "mnist test", "mukhoti train", [["mnist-test-00050", "mukhoti-train-00003"]]),
        ("exact", "mukhoti test", "mukhoti train", [["mukhoti-test-00001", "mukhoti-train-00007"]]),
        ("near", "ardis test", "mnist train", [["ardis-test-00001", "mnist-train-00008"]]),
    ]
    assert report["corpus_leakage"] == []
    corpus = read_corpus(tmp_path / "out" / CORPUS)
    assert set(corpus.source) == {"mnist"}
    mnist = mnist_source(str(planted))
    np.testing.assert_array_equal(corpus.images, mnist.images[corpus.indices])
    np.testing.assert_array_equal(corpus.labels, mnist.labels[corpus.indices])
    assert (
        corpus.image[-1] == f"mnist-{mnist.part[corpus.indices[-1]]}-{corpus.indices[-1] % 900:05d}"
    )
    train = corpus.labels.argmax(1)[corpus.split == "train"]
    assert np.bincount(train).min() >= 14
    assert (
        "leakage in the sources: 1 exact pairs between mukhoti test and mukhoti train (first: "
        "mukhoti-test-00001," in "\n".join(summary(report))
    )


def test_the_stand_ins_corpus(small_mnist: Path):
    out = small_mnist / "soft-digits-simulated"
    corpus, mnist = read_corpus(out / CORPUS), mnist_source(str(small_mnist))
    made = corpus.source == "interpolated"
    reserved = building.reserve(mnist.part, SMALL_CORPUS.interpolation.digits, SMALL_CORPUS.seed)
    ends = stages.safe_open(
        out / "stages" / "interpolated.safetensors", framework="numpy"
    ).get_tensor("ends")
    known = stages.safe_open(out / EVIDENCE, framework="numpy").get_tensor("known")
    assert set(ends.ravel().tolist()) <= set(reserved.tolist())
    # no digit is in an image and in an interpolation
    assert not set(corpus.indices[~made].tolist()) & set(reserved.tolist())
    assert not set(known.tolist()) & {*reserved.tolist(), *corpus.indices[~made].tolist()}
    assert len(known) == 100
    judged = read_soft_digits(str(simulated_soft_digits.stand_in(str(small_mnist), 6, 0)))
    np.testing.assert_array_equal(judged.images, corpus.images)
    np.testing.assert_array_equal(judged.split, corpus.split)
    assert judged.simulated
    # ready for people's judgements
    assert len(read_table(out / CORPUS, COLUMNS)["image"]) == len(set(corpus.image)) == 340


def files_of(out: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != ".lock"
    }


@FORK
def test_killed_at_every_stage_it_goes_on_to_the_same_bytes(small_mnist: Path, tmp_path: Path):
    whole, place = small_mnist / "soft-digits-simulated", Place(str(small_mnist), tmp_path / "out")
    made: list[str] = []
    for expected in (
        [],
        ["autoencoder"],
        ["classifier"],
        ["interpolated"],
        ["duplicates"],
        ["map-mnist"],
        ["map-interpolated"],
    ):
        process = get_context("fork").Process(
            target=_build_and_die, args=(place, 1 + len(expected))
        )
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        made += expected
        assert sorted(path.stem for path in place.out.glob("stages/*.safetensors")) == sorted(made)
    messages = []
    build_corpus(SMALL_CORPUS, place, messages.append)
    assert messages == [
        "reading the sources",
        "making ambiguous digits by interpolation",
        "comparing the images with digits that a crowd knows",
    ]
    expected = {
        name: content for name, content in files_of(whole).items() if not name.startswith("judged")
    }
    assert files_of(place.out) == expected


def _build_and_die(place: Place, at: int) -> None:
    """Be killed in the middle of the first stage, or of the second, that is not done yet."""
    write, written = stages.write_atomically, []

    def die_or_write(path: Path, content: bytes) -> None:
        written.append(path)
        if len(written) == at:
            path.parent.mkdir(exist_ok=True)
            path.with_name(f".{path.name}.0a1b2c3d{SUFFIX}").write_bytes(
                content[: len(content) // 2]
            )
            os.kill(os.getpid(), signal.SIGKILL)
        write(path, content)

    stages.write_atomically = die_or_write
    build_corpus(SMALL_CORPUS, place)


def test_a_finished_corpus_is_taken_as_it_is_and_an_altered_one_made_again(
    small_mnist: Path, monkeypatch: pytest.MonkeyPatch
):
    out, messages = small_mnist / "soft-digits-simulated", []
    before = files_of(out)
    report = build_corpus(SMALL_CORPUS, Place(str(small_mnist), out), messages.append)
    assert messages == []
    assert report["corpus"]["interpolated"]["train"]["easy"] == 98
    (out / CORPUS).write_bytes(before[CORPUS][:-9])
    (out / "stages" / "classifier.safetensors").write_bytes(b"nothing")
    build_corpus(SMALL_CORPUS, Place(str(small_mnist), out), messages.append)
    assert files_of(out) == before
    with monkeypatch.context() as patch:
        patch.setattr(building, "mnist_source", lambda root: pytest.fail("MNIST was read"))
        simulated_soft_digits.stand_in(str(small_mnist), 6, 0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("map-mnist", lambda kept: {**kept, "confidence": kept["confidence"][:-1]}),
        (
            "map-mnist",
            lambda kept: {**kept, "confidence": np.full_like(kept["confidence"], np.nan)},
        ),
        ("classifier", lambda kept: {name: array.ravel() for name, array in kept.items()}),
        ("interpolated", lambda kept: {"images": kept["images"]}),
    ],
    ids=["another shape", "not finite", "weights of another shape", "arrays that are absent"],
)
def test_a_stage_of_somebody_elses_cache_that_cannot_be_is_made_again(
    small_mnist: Path, tmp_path: Path, name: str, change
):
    """Although its key and its digest are right."""
    whole, place = small_mnist / "soft-digits-simulated", Place(str(small_mnist), tmp_path / "out")
    shutil.copytree(whole / "stages", place.out / "stages")
    path = place.out / "stages" / f"{name}.safetensors"
    with safe_open(path, framework="numpy") as file:
        key, kept = (
            json.loads(file.metadata()["about"])["key"],
            {name: file.get_tensor(name) for name in file.keys()},  # noqa: SIM118
        )
    altered = change(kept)
    path.write_bytes(
        save(
            altered, metadata={"about": json.dumps({"key": key, "values": stages._digest(altered)})}
        )
    )
    build_corpus(SMALL_CORPUS, place)
    assert files_of(place.out) == {
        name: content for name, content in files_of(whole).items() if not name.startswith("judged")
    }


@FORK
def test_of_two_processes_at_once_one_builds_and_both_have_it(
    small_mnist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(simulated_soft_digits, "FOLDER", "another")
    log = tmp_path / "log"
    both = [
        get_context("fork").Process(target=_stand_in, args=(str(small_mnist), log))
        for _ in range(2)
    ]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    assert log.read_text().count("mapping") == 1
    fresh = files_of(small_mnist / "another")
    assert fresh == files_of(small_mnist / "soft-digits-simulated")


def _stand_in(root: str, log: Path) -> None:
    watched = building.watched_map

    def logged(images: np.ndarray, *rest):
        if len(images) == 200:
            with open(log, "a") as stream:
                stream.write("mapping\n")
        return watched(images, *rest)

    building.watched_map = logged
    simulated_soft_digits.stand_in(root, 6, 0)


def test_the_command(small_mnist: Path, tmp_path: Path, capsys: pytest.CaptureFixture):
    sources = {
        "mnist": {
            "epochs": 2,
            "ambiguous_variability": 0.5,
            "easy_confidence": 0.05,
            "hard_confidence": 0.01,
            "sizes": [70, 15, 15],
        }
    }
    given = {
        "root": str(small_mnist),
        "out": str(tmp_path / "out"),
        "sources": sources,
        "easy_per_digit": 5,
        "known_digits": 50,
    }
    path = tmp_path / "corpus.yaml"
    path.write_text(yaml.safe_dump(given))
    main(["corpus", "build", str(path)])
    message = capsys.readouterr().out
    assert (
        "mnist: 1,000 images, 0 exact and 0 near-duplicates removed, 1,000 kept: 1,000 easy, 0 "
        "ambiguous, 0 hard, 0 in no region" in message
    )
    assert "chosen of mnist: train 70 (70 easy + 0 ambiguous + 0 hard); val 15" in message
    assert f"corpus: {tmp_path / 'out' / CORPUS}" in message
    assert (
        json.loads((tmp_path / "out" / "corpus.json").read_text())["sources"]["mnist"]["kept"]
        == 1000
    )
    assert (
        "leakage between splits of the corpus: none" in (tmp_path / "out" / "corpus.md").read_text()
    )
    path.write_text(yaml.safe_dump({**given, "easy_per_digit": 90}))
    with pytest.raises(SystemExit, match="2"):
        main(["corpus", "build", str(path)])
    message = capsys.readouterr().err
    assert (
        message
        == "error: mnist has 100 easy items of digit 0, but 90 of each in training take 129; "
        "lower easy_per_digit or easy_confidence.\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "near: 1",
            "the file has the entry near; allowed are easy_per_digit, interpolation, "
            "known_digits, near_duplicate, out, root, seed, sources.",
        ),
        ("- 1", r"the file is \[1\]; it must have entries"),
        (
            "sources: {weiss: {}}",
            "sources has the entry weiss; allowed are ardis, interpolated, mnist, mukhoti.",
        ),
        (
            "sources: {mnist: {}}",
            "no source has sizes; sources are of mnist, mukhoti, ardis, interpolated, and one at "
            "least needs sizes.",
        ),
        (
            "sources: {mnist: {sizes: [1, 2]}}",
            r"sizes is \[1, 2\]; it must be three numbers above 0",
        ),
        ("sources: {mnist: {sizes: 5}}", "sizes of mnist is 5; it must be three numbers above 0"),
        ("sources: {mnist: {epochs: many}}", "epochs of mnist is many; it must be a whole number."),
        ("interpolation: {epochs: 0}", "interpolation.epochs is 0; it must be 1 or more."),
        (
            "near_duplicate: 2",
            "near_duplicate is 2; it must be a correlation above 0 and at most 1.",
        ),
        ("known_digits: -1", "known_digits is -1; it must be 0 or more."),
        ("a: [", "cannot be read as YAML"),
    ],
)
def test_a_file_of_options_that_makes_no_sense(tmp_path: Path, content: str, message: str):
    path = tmp_path / "corpus.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as mistake:
        read_options(path)
    assert str(mistake.value).startswith(str(path))


def test_more_known_digits_than_are_left(small_mnist: Path, tmp_path: Path):
    sources = {"mnist": SourceOptions(EVERYTHING, (140, 30, 30))}
    options = replace(CorpusOptions(sources, easy_per_digit=0), known_digits=801)
    with pytest.raises(
        InputError,
        match="known_digits is 801, but only 800 digits of MNIST are in no image of the corpus",
    ):
        build_corpus(options, Place(str(small_mnist), tmp_path))


def test_a_folder_that_cannot_be_made(small_mnist: Path, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(
        InputError,
        match=r"file/out cannot be made \(Not a directory\); a corpus needs a folder that it may "
        r"write to",
    ):
        build_corpus(
            replace(SMALL_CORPUS, seed=1), Place(str(small_mnist), tmp_path / "file" / "out")
        )
