"""What building a corpus found: duplicates, leakage between parts, difficulty, splits; for people
as a few lines, for programs as JSON.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from core.atomic_io import write_atomically
from corpora.annotation.soft_digits_table import SPLITS
from corpora.difficulty import REGIONS
from corpora.digit_corpus import DigitCorpus
from corpora.duplicates import Pairs, exact_pairs, leaks, near_pairs
from corpora.options import INTERPOLATED, CorpusOptions
from corpora.short_training import reproducibly
from corpora.sources import Source
from corpora.stages import key_of
from datamodules.io.files import sha256

REPORT = "corpus.json"


class Found(NamedTuple):
    """A source and what became of each of its items."""

    source: Source
    kept: np.ndarray
    confidence: np.ndarray
    variability: np.ndarray
    region: np.ndarray


def describe(
    options: CorpusOptions,
    result: list[Found],
    names: np.ndarray,
    pairs: dict[str, Pairs],
    corpus: DigitCorpus,
) -> dict[str, Any]:
    """Everything as plain data; `names` are those of all items of all sources, one source after the
    other, as in `pairs`.
    """
    parts = np.concatenate([np.char.add(f"{one.source.name} ", one.source.part) for one in result])
    removed = {kind: np.isin(np.arange(len(parts)), both.second) for kind, both in pairs.items()}
    ends, sources = np.cumsum([len(one.source) for one in result]), {}
    for one, end in zip(result, ends, strict=True):
        mine = slice(end - len(one.source), end)
        exact = removed["exact"][mine] & ~one.kept
        sizes = np.bincount(one.region[one.kept], minlength=4).tolist()
        regions = dict(zip((*REGIONS, "none"), sizes, strict=True))
        counts = {
            "images": len(one.source),
            "exact_duplicates": int(exact.sum()),
            "near_duplicates": int((~one.kept & ~exact).sum()),
        }
        sources[one.source.name] = {**counts, "kept": int(one.kept.sum()), "regions": regions}
    return {
        "options": asdict(options),
        "sources": sources,
        "leakage": _leakage(parts, names, pairs),
        "corpus": {
            name: _splits(corpus, corpus.source == name)
            for name in dict.fromkeys(corpus.source.tolist())
        },
        "corpus_leakage": _corpus_leakage(corpus, options),
    }


def _leakage(parts: np.ndarray, names: np.ndarray, pairs: dict[str, Pairs]) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "between": [leak.one, leak.other], "pairs": names[leak.pairs].tolist()}
        for kind, both in pairs.items()
        for leak in leaks(parts, both)
    ]


def _corpus_leakage(corpus: DigitCorpus, options: CorpusOptions) -> list[dict[str, Any]]:
    """Looked for anew among the chosen images themselves, whatever their sources."""
    with reproducibly(options.seed):
        pairs = {
            "exact": exact_pairs(corpus.images),
            "near": near_pairs(corpus.images, options.near_duplicate),
        }
    return _leakage(corpus.split, corpus.image, pairs)


def _splits(corpus: DigitCorpus, mine: np.ndarray) -> dict[str, dict[str, int]]:
    return {
        split: {
            region: int((mine & (corpus.split == split) & (corpus.difficulty == region)).sum())
            for region in REGIONS
        }
        for split in SPLITS
    }


def summary(report: dict[str, Any]) -> list[str]:
    """The report in a few lines."""
    lines = []
    for name, counts in report["sources"].items():
        regions = ", ".join(
            f"{number:,} {region}"
            for region, number in counts["regions"].items()
            if region != "none"
        )
        lines.append(
            f"{name}: {counts['images']:,} images, {counts['exact_duplicates']:,} exact and "
            f"{counts['near_duplicates']:,} near-duplicates "
            f"removed, {counts['kept']:,} kept: {regions}, {counts['regions']['none']:,} in no "
            "region"
        )
        if name == INTERPOLATED:
            lines[-1] += " (made here by interpolation; not Ambiguous-MNIST)"
    lines += [_leak_line("sources", leak) for leak in report["leakage"]] or [
        "leakage between parts of the sources: none"
    ]
    for name, splits in report["corpus"].items():
        parts = "; ".join(
            f"{split} {sum(regions.values()):,} "
            f"({' + '.join(f'{number:,} {region}' for region, number in regions.items())})"
            for split, regions in splits.items()
        )
        lines.append(f"chosen of {name}: {parts}")
    return lines + (
        [_leak_line("corpus", leak) for leak in report["corpus_leakage"]]
        or ["leakage between splits of the corpus: none"]
    )


def _leak_line(what: str, leak: dict[str, Any]) -> str:
    one, other = leak["pairs"][0]
    return (
        f"leakage in the {what}: {len(leak['pairs']):,} {leak['kind']} pairs between "
        f"{' and '.join(leak['between'])} (first: {one}, {other})"
    )


def write_report(out: Path, report: dict[str, Any], key: str, files: Iterable[str]) -> None:
    """The last files to be written: where the report is there and its digests are right, the corpus
    is whole.
    """
    write_atomically(out / "corpus.md", "".join(f"- {line}\n" for line in summary(report)))
    content = {"key": key, "files": {name: sha256(out / name) for name in files}, **report}
    write_atomically(
        out / REPORT, json.dumps({**content, "digest": _digest(content)}, indent=1) + "\n"
    )


def finished_report(out: Path, key: str) -> dict[str, Any] | None:
    """The report of a corpus that is whole and was made under this key."""
    try:
        report = json.loads((out / REPORT).read_text())
        if (
            not isinstance(report, dict)
            or report.pop("digest", None) != _digest(report)
            or report["key"] != key
        ):
            return None
        return (
            report
            if all(sha256(out / name) == digest for name, digest in report["files"].items())
            else None
        )
    except (OSError, ValueError, RecursionError):  # absent, or no JSON
        return None


def _digest(content: dict[str, Any]) -> str:
    """The same before a report is written and after it is read."""
    return key_of(json.loads(json.dumps(content)))
