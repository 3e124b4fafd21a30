"""Every reader of files from outside, each with a small valid file of its format: a new reader is
one more line in `READERS`.
"""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from PIL import Image
from safetensors.torch import save
from scipy.io import savemat

from callbacks.cartography.records import read_epochs, read_run, write_epoch
from callbacks.history import read_history
from callbacks.prediction_table import prediction_table, read_predictions
from callbacks.records.known_data import read_fingerprint
from callbacks.results import has_ended, read_results, read_training
from core.errors import InputError
from corpora.annotation.judgements import read_judgements
from corpora.annotation.soft_digits_table import (
    SoftDigitsTable,
    read_soft_digits,
    write_soft_digits,
)
from corpora.corpus_report import finished_report, summary, write_report
from corpora.digit_corpus import DigitCorpus, read_corpus, write_corpus
from corpora.options import read_options
from corpora.sources import AMBIGUOUS, ARDIS, Source, ambiguous_source, ardis_source
from corpora.stages import stage
from datamodules import OwnVotes, VoteTable
from datamodules.custom.own_items import read_images
from datamodules.datasets.chaosnli import NLI, read_subset
from datamodules.datasets.cifar10h import RECORD, read_cifar_binary
from datamodules.datasets.cifar10n import VOTES, read_human_labels
from datamodules.datasets.fashion_mnist_h import read_counts
from datamodules.datasets.popquorn import read_ratings
from datamodules.embedders.embeddings import Shard
from datamodules.io.archives import take_from_tar, take_from_zip
from datamodules.io.files import read_array
from datamodules.io.idx import read_idx
from datamodules.io.ood_sets import read_cifar, read_image, read_svhn
from datamodules.io.tiny_imagenet import read_tiny_imagenet
from experiment.configuration import resolve
from lightning_modules.networks import SimpleFFN
from studies.analysis.comparison.comparison import Comparison, PairLine, PairValue
from studies.analysis.comparison.kept_comparisons import read_kept
from studies.analysis.comparison.loss_barrier import LossLine
from studies.plan.comparable_runs import read_weights
from studies.plan.study import Study
from studies.report.owned_files import LIST, Owner, owned_files
from studies.scoring.prediction_file import read_prediction_file
from tests.conftest import write_human_labels
from tests.datamodules.io.test_idx import idx_bytes
from tests.finished import FINISHED
from tests.studies.scoring.files import by_class, some_probs, write_table

ROOT = Path(__file__).parents[2]
RNG = np.random.default_rng(11)
IMAGES = RNG.integers(256, size=(4, 28, 28), dtype=np.uint8)
ORIGIN = {"embedder": "{}", "inputs": "0"}


class Reader(NamedTuple):
    """How a format is read, and a file of it to damage."""

    format: str
    file: str
    content: Callable[[], bytes]
    read: Callable[[Path], Any]
    slow: bool = False  # tens of milliseconds a file: fewer cases
    names_file: bool = True  # False where a mistake is told by the option that it is in


def in_memory(write: Callable[[io.BytesIO], Any]) -> bytes:
    stream = io.BytesIO()
    write(stream)
    return stream.getvalue()


def on_disk(name: str, write: Callable[[Path], Any]) -> bytes:
    with TemporaryDirectory() as folder:
        write(Path(folder) / name)
        return (Path(folder) / name).read_bytes()


def counts() -> np.ndarray:
    return np.random.default_rng(3).multinomial(50, [0.1] * 10, size=6)


def npy() -> bytes:
    return in_memory(lambda stream: np.save(stream, counts()))


def mat(compressed: bool) -> bytes:
    images = RNG.integers(256, size=(8, 8, 3, 4), dtype=np.uint8)
    return in_memory(
        lambda stream: savemat(stream, {"X": images, "y": np.arange(4)}, do_compression=compressed)
    )


def picture(kind: str) -> bytes:
    colours = np.repeat(IMAGES[0][..., None], 3, 2)
    return in_memory(lambda stream: Image.fromarray(colours).save(stream, kind))


def judgement_rows() -> dict[str, list[Any]]:
    rows = [
        (f"ann{a}", f"img{i}", label, ("yes", "no", "unsure")[(a + i + label) % 3])
        for a in range(2)
        for i in range(2)
        for label in range(10)
    ]
    columns = dict(
        zip(
            ("annotator", "image", "label", "answer"),
            map(list, zip(*rows, strict=True)),
            strict=True,
        )
    )
    return {**columns, "milliseconds": [900.5] * len(rows), "check": [""] * len(rows)}


def judgements_csv() -> bytes:
    table = judgement_rows()
    lines = [
        ",".join(table),
        *(",".join(map(str, row)) for row in zip(*table.values(), strict=True)),
    ]
    return ("\n".join(lines) + "\n").encode()


def judgements_jsonl() -> bytes:
    table = judgement_rows()
    return "".join(
        json.dumps(dict(zip(table, row, strict=True))) + "\n"
        for row in zip(*table.values(), strict=True)
    ).encode()


def parquet(table: pa.Table) -> bytes:
    return in_memory(lambda stream: pq.write_table(table, stream))


def ratings_csv() -> bytes:
    rows = [
        f'{item},{rater},"Dear {item},\nthanks, ""all"".",{1 + (item + rater) % 5}.0'
        for item in range(3)
        for rater in range(4)
    ]
    return ("instance_id,user_id,text,politeness\n" + "\n".join(rows) + "\n").encode()


def chaosnli() -> bytes:
    example = {"premise": "A man sleeps.", "hypothesis": "A man rests.", "source": "snli"}
    rows = [
        {"uid": f"u{n}", "label_counter": {"e": 60 + n, "n": 40 - n}, "example": example}
        for n in range(4)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def soft_digits_table() -> SoftDigitsTable:
    labels = {
        name: VoteTable.from_probs(np.eye(11)[[3, 1, 4, 1]])
        for name in ("original", "majority", "equal", "uncertainty")
    }
    known = (
        np.full(4, 0.25),
        np.full(4, 0.5),
        np.array(["train", "train", "val", "test"]),
        np.array(["mnist"] * 4),
    )
    return SoftDigitsTable(IMAGES, labels, *known, simulated=True)


def shard() -> bytes:
    import hashlib

    values = torch.arange(12.0).reshape(3, 4)
    digest = hashlib.sha256(values.numpy().data).hexdigest()
    return save({"embeddings": values}, metadata={**ORIGIN, "rows": "0:3", "values": digest})


def read_shard(path: Path) -> bool:
    return Shard(path.parent, slice(0, 3), ORIGIN).read_into(torch.empty(3, 4))


def predictions() -> bytes:
    probs = torch.full((6, 3), 1 / 3, dtype=torch.float64)
    return parquet(
        prediction_table(
            probs, probs, torch.arange(6), {"train": np.arange(3), "test": np.arange(3, 6)}
        )
    )


def cartography() -> bytes:
    def write(path: Path) -> None:
        for epoch in range(3):
            write_epoch(path, epoch, np.full((3, 4), 0.5))

    return on_disk("cartography_train.f32", write)


def results() -> bytes:
    about = {
        **FINISHED,
        "run": "digits",
        "delivery": {"name": "SoftLabels"},
        "seed": 0,
        "val_is_test": False,
    }
    return json.dumps(
        {**about, "metrics": {"soft_nll": 0.41, "accuracy": 0.9, "val_loss": 0.4}, "notes": []},
        indent=2,
    ).encode()


def history() -> bytes:
    return json.dumps(
        [{"epoch": epoch, "lr": 0.1, "val/soft_nll": 1.0 / (1 + epoch)} for epoch in range(3)],
        indent=1,
    ).encode()


TRAINING = {"ended": "epochs", "epochs": 3, "planned_epochs": 3, "steps": 9}


def fingerprint_json() -> bytes:
    items = {
        "digest": "cd" * 16,
        "size": 300,
        "time": "2026-01-02T03:04:05Z",
        "source": "ready.npy",
    }
    return json.dumps(
        {
            "options": {"seed": 0},
            "data": {"votes": {"digest": "ab" * 16, "source": "votes.csv"}, "items": items},
        }
    ).encode()


def read_earlier(path: Path) -> Any:
    (path.parent / "history.json").write_bytes(history())
    return read_training(path.parent)


def list_of_files() -> bytes:
    files = {"tables/main.md": ["ab" * 32], "README.md": ["cd" * 32, "ef" * 32]}
    return json.dumps(
        {"about": "Files", "kind": "copy", "study": "digits", "files": files}, indent=1
    ).encode()


def comparisons() -> bytes:
    values = [PairValue("cka", ("a", "b"), (0, 1), 0.5, 10)]
    lines = [PairLine(("a", "b"), 0, 10, LossLine([0.0, 0.5, 1.0], [1.0, 2.0, 1.0], None))]
    result = Comparison(
        "Digits", True, "SimpleFFN", None, "delivery", ["a", "b"], 60, 0.9, values, lines, []
    )
    return json.dumps(
        {"similar": {"runs": {"r": "0"}, "options": {"points": 5}, "comparison": asdict(result)}}
    ).encode()


def study() -> bytes:
    return f"""name: small
title: &title A small study
configs: [{ROOT / "configs/digits.yaml"}]
options: {{trainer.max_epochs: 2, data.batch_size: 64}}
grids:
  main:
    data.delivery: [SoftLabels, {{class_path: StochasticLabelSampling, init_args: {{resample_every: 5}}}}]
    seed_everything: [0, 1, 2]
  named:
    length: {{short: {{trainer.max_epochs: 1}}, long: {{trainer.max_epochs: 3}}}}
selections:
  best: {{from: main, for_each: [data.delivery], then: {{seed_everything: [3, 4]}}}}
paired: [seed_everything]
report: {{comment: *title}}
""".encode()  # noqa: E501


def read_study(path: Path) -> Any:
    return Study.load(path).runs()


def config() -> bytes:
    return b"""seed_everything: 3
data:
  class_path: Digits
  init_args: {batch_size: 64, delivery: {class_path: LabelSmoothing, init_args: {epsilon: 0.1}}}
model:
  network: {class_path: SimpleFFN}
  optimizer: {class_path: Adam, init_args: {lr: 1e-3}}
trainer: {max_epochs: 2}
"""


def human_labels() -> bytes:
    content = {name: np.arange(12) % 10 for name in ("clean_label", *VOTES)}
    return on_disk("labels.pt", lambda path: write_human_labels(path, content))


def npz() -> bytes:
    images = np.repeat(IMAGES[:, None], 3, 1)
    arrays = {"images": images, "no_cifar10_class": np.arange(4) > 1}
    return in_memory(lambda stream: np.savez_compressed(stream, **arrays))


@cache
def network() -> SimpleFFN:
    return SimpleFFN((4,), 3)


def checkpoint() -> bytes:
    state = {f"network.{name}": value for name, value in network().state_dict().items()}
    return in_memory(
        partial(
            torch.save,
            {
                "state_dict": state,
                "epoch": 1,
                "val_loss": 0.5,
                "pytorch-lightning_version": "2.6.0",
            },
        )
    )


def tar() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        entry = tarfile.TarInfo("deep/votes.bin")
        entry.size = 300
        archive.addfile(entry, io.BytesIO(bytes(300)))
    return stream.getvalue()


def zipped() -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("v1/votes.jsonl", judgements_jsonl())
    return stream.getvalue()


OWN = {
    "item": [f"i{n}" for n in range(12) for _ in range(3)],
    "who": [f"w{n}" for n in range(3)] * 12,
    "label": ["yes", "no", "no"] * 12,
}


def own_votes(votes: str, **options) -> OwnVotes:
    """A dataset of twelve items, set up, of which one file may be damaged; the others are whole."""
    folder = Path(options["root"])
    others = {
        "ready.npy": in_memory(lambda stream: np.save(stream, np.ones((12, 3), np.float32))),
        "items.csv": own_items(),
    }
    for name, content in others.items():
        if not (folder / name).exists():
            (folder / name).write_bytes(content)
    data = OwnVotes(votes, "item", fractions=(0.5, 0.25, 0.25), **options)
    data.setup()
    return data


def own_items() -> bytes:
    return "\n".join(
        ["item,split", *(f"i{n},{('train', 'val', 'test')[n % 3]}" for n in range(12))]
    ).encode()


def own_csv() -> bytes:
    return "\n".join(
        [",".join(OWN), *(",".join(row) for row in zip(*OWN.values(), strict=True))]
    ).encode()


def own_single(path: Path) -> OwnVotes:
    options = {
        "label": "label",
        "annotator": "who",
        "inputs": "items.csv",
        "embeddings": "ready.npy",
        "root": str(path.parent),
    }
    return own_votes(path.name, **options)


def own_counts(path: Path) -> OwnVotes:
    return own_votes(
        path.name, counts=("votes",), classes=("a", "b"), embedding="vector", root=str(path.parent)
    )


def own_ready(path: Path) -> OwnVotes:
    (path.parent / "votes.csv").write_bytes(own_csv())
    return own_votes(
        "votes.csv", label="label", inputs="items.csv", embeddings=path.name, root=str(path.parent)
    )


def own_table() -> pa.Table:
    return pa.table(
        {
            "item": [f"i{n}" for n in range(12)],
            "votes": [[n, 3] for n in range(12)],
            "vector": [[0.5 * n, 1.0] for n in range(12)],
        }
    )


def ready_tensors() -> bytes:
    return save({"embeddings": torch.ones(12, 3)})


def corpus_yaml() -> bytes:
    return (Path(__file__).parents[2] / "configs/corpora/soft_digits.yaml").read_bytes()


def own_picture(path: Path) -> torch.Tensor:
    return read_images([path.name], path.parent, 16)


def samples() -> bytes:
    return in_memory(partial(torch.save, torch.from_numpy(IMAGES[:, None]).float() / 255))


def read_ambiguous(path: Path) -> Source:
    labels = path.parent / Path(AMBIGUOUS[1].path).name
    torch.save(torch.arange(40).view(4, 10) % 10, labels)
    return ambiguous_source(str(path.parents[1]))


def ardis_pixels() -> bytes:
    return in_memory(lambda stream: np.savetxt(stream, IMAGES.reshape(4, -1), fmt="%d"))


def read_ardis(path: Path) -> Source:
    """All files are whole but the images of the first part."""
    for part, (pixels, digits) in ARDIS.items():
        np.savetxt(path.parents[1] / digits, np.eye(10)[:4], fmt="%.1f")
        if part == "test":
            (path.parents[1] / pixels).write_bytes(ardis_pixels())
    return ardis_source(str(path.parents[1]))


def corpus_report() -> bytes:
    return on_disk("corpus.json", lambda path: write_report(path.parent, CORPUS_REPORT, "k", ()))


def read_report(path: Path) -> object:
    report = finished_report(path.parent, "k")
    return report and summary(report)


def digit_corpus() -> bytes:
    words = (
        np.array(["train", "train", "val", "test"]),
        np.array(["mnist"] * 4),
        np.array(["easy"] * 4),
    )
    corpus = DigitCorpus(
        np.array(list("abcd")), IMAGES, np.eye(10)[[3, 1, 4, 1]], *words, np.arange(4)
    )
    return on_disk("corpus.parquet", lambda path: write_corpus(path, corpus))


def stage_bytes() -> bytes:
    return on_disk(
        "stage.safetensors",
        lambda path: stage(path, "k", lambda: {"confidence": np.arange(5.0)}, {"confidence": (5,)}),
    )


def no_stage() -> dict[str, np.ndarray]:
    raise InputError("stage.safetensors is not whole.")


def scored(path: Path) -> Any:
    return read_prediction_file(path, ("no", "yes", "unsure"), ("item", "index"), 12)


def scored_table(name: str) -> bytes:
    table = {"item": list(range(12)), **by_class(some_probs(12, 3), ("no", "yes", "unsure"))}
    return on_disk(name, lambda path: write_table(path, table))


REGIONS = {"easy": 1, "ambiguous": 1, "hard": 1}
CORPUS_REPORT = {
    "options": {"seed": 0},
    "sources": {
        "mnist": {
            "images": 4,
            "exact_duplicates": 0,
            "near_duplicates": 1,
            "kept": 3,
            "regions": {**REGIONS, "none": 0},
        }
    },
    "leakage": [{"kind": "near", "between": ["mnist train", "mnist test"], "pairs": [["a", "b"]]}],
    "corpus": {"mnist": {"train": REGIONS, "val": REGIONS, "test": REGIONS}},
    "corpus_leakage": [],
}
READERS = [
    *(
        Reader(
            f"{kind} (anybody's predictions)",
            f"mine.{ending}",
            partial(scored_table, f"mine.{ending}"),
            scored,
            slow=True,
        )
        for kind, ending in (("CSV", "csv"), ("parquet", "parquet"), ("JSON lines", "jsonl"))
    ),
    Reader(
        "npy (anybody's predictions)",
        "mine.npy",
        lambda: in_memory(lambda stream: np.save(stream, some_probs(12, 3))),
        scored,
    ),
    Reader("parquet (predictions to score)", "run.parquet", predictions, scored, slow=True),
    Reader("CSV (own votes)", "own.csv", own_csv, own_single, slow=True),
    Reader(
        "parquet (own counts)", "own.parquet", lambda: parquet(own_table()), own_counts, slow=True
    ),
    Reader(
        "npy (own embeddings)",
        "mine.npy",
        lambda: in_memory(lambda s: np.save(s, np.ones((12, 3), np.float32))),
        own_ready,
        slow=True,
    ),
    Reader("safetensors (own embeddings)", "mine.safetensors", ready_tensors, own_ready, slow=True),
    Reader("PNG image (own items)", "mine.png", partial(picture, "PNG"), own_picture),
    Reader("tensors .pt (Ambiguous-MNIST)", AMBIGUOUS[0].path, samples, read_ambiguous, slow=True),
    Reader("numbers (ARDIS)", ARDIS["train"][0], ardis_pixels, read_ardis, slow=True),
    Reader("corpus.json", "corpus.json", corpus_report, read_report),
    Reader(
        "safetensors (stage)",
        "stage.safetensors",
        stage_bytes,
        lambda path: stage(path, "k", no_stage, {"confidence": (5,)}),
    ),
    Reader("parquet (corpus)", "corpus.parquet", digit_corpus, read_corpus, slow=True),
    Reader("YAML (corpus)", "corpus.yaml", corpus_yaml, read_options, slow=True),
    Reader("npy (votes)", "counts.npy", npy, lambda path: VoteTable(read_array(path), str(path))),
    Reader(
        "CIFAR-10 .bin",
        "test_batch.bin",
        lambda: (bytes([3]) + bytes(RECORD - 1)) * 2,
        read_cifar_binary,
    ),
    Reader(
        "CIFAR-10 or -100 .bin", "test.bin", lambda: (bytes([3, 7]) + bytes(3072)) * 2, read_cifar
    ),
    Reader(
        "arrays .pt (CIFAR-10N)",
        "labels.pt",
        human_labels,
        lambda path: read_human_labels(path, 10),
        slow=True,
    ),
    Reader(
        "CSV (counts)",
        "fmh_counts.csv",
        lambda: in_memory(lambda s: np.savetxt(s, counts(), "%d", ",")),
        read_counts,
    ),
    Reader("npz (Tiny ImageNet)", "small.npz", npz, read_tiny_imagenet),
    Reader("idx", "images.idx", lambda: idx_bytes(IMAGES), read_idx),
    Reader(
        "idx, compressed",
        "images-idx3-ubyte.gz",
        lambda: gzip.compress(idx_bytes(IMAGES), mtime=0),
        read_idx,
    ),
    Reader("Matlab .mat", "plain.mat", lambda: mat(False), read_svhn),
    Reader("Matlab .mat, compressed", "small.mat", lambda: mat(True), read_svhn),
    *(
        Reader(f"{kind} image", f"some.{kind.lower()}", partial(picture, kind), read_image)
        for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "PPM", "WEBP")
    ),
    Reader("CSV (judgements)", "raw.csv", judgements_csv, read_judgements, slow=True),
    Reader("CSV (ratings)", "ratings.csv", ratings_csv, read_ratings, slow=True),
    Reader("JSON lines (judgements)", "raw.jsonl", judgements_jsonl, read_judgements, slow=True),
    Reader(
        "JSON lines (ChaosNLI)",
        "snli.jsonl",
        chaosnli,
        lambda path: read_subset(path, NLI, NLI.template),
        slow=True,
    ),
    Reader(
        "parquet (judgements)",
        "raw.parquet",
        lambda: parquet(pa.table(judgement_rows())),
        read_judgements,
        slow=True,
    ),
    Reader(
        "parquet with PNG (soft-digits)",
        "soft.parquet",
        lambda: on_disk("soft.parquet", lambda path: write_soft_digits(path, soft_digits_table())),
        lambda path: read_soft_digits(str(path)),
        slow=True,
    ),
    Reader(
        "parquet (predictions)",
        "predictions.parquet",
        predictions,
        lambda path: read_predictions(path.parent, "test"),
    ),
    Reader(
        "cartography .f32", "cartography_train.f32", cartography, lambda path: read_epochs(path, 4)
    ),
    Reader(
        "parquet (cartography)",
        "cartography_train.parquet",
        lambda: parquet(pa.table({"index": np.arange(4)})),
        lambda path: read_run(path.parent),
    ),
    Reader("safetensors (cache)", "000000000-000000003.safetensors", shard, read_shard),
    Reader("results.json", "results.json", results, lambda path: read_results(path.parent)),
    Reader(
        "failed.json",
        "failed.json",
        lambda: b'{"reason": "diverged in epoch 3"}\n',
        lambda path: has_ended(path.parent),
    ),
    Reader(
        "training.json",
        "training.json",
        lambda: json.dumps(TRAINING).encode(),
        lambda path: read_training(path.parent),
    ),
    Reader(
        "fingerprint.json",
        "fingerprint.json",
        fingerprint_json,
        lambda path: read_fingerprint(path.parent),
    ),
    Reader("config.yaml (earlier run)", "config.yaml", config, read_earlier),
    Reader(
        "list of files",
        LIST,
        list_of_files,
        lambda path: owned_files(path.parent, Owner("copy", "digits", "name another folder")),
    ),
    Reader("history.json", "history.json", history, lambda path: read_history(path.parent)),
    Reader("representations.json", "representations.json", comparisons, read_kept),
    Reader("YAML (study)", "study.yaml", study, read_study, slow=True),
    Reader(
        "YAML (config)",
        "config.yaml",
        config,
        lambda path: resolve(["--config", str(path)]),
        slow=True,
        names_file=False,
    ),
    Reader("checkpoint", "best.ckpt", checkpoint, lambda path: read_weights(path, network())),
    Reader(
        "tar archive",
        "all.tar.gz",
        tar,
        lambda path: take_from_tar(path, "deep/votes.bin", path.parent / "out"),
    ),
    Reader(
        "zip archive",
        "all.zip",
        zipped,
        lambda path: take_from_zip(path, "v1/votes.jsonl", path.parent / "out"),
    ),
]
