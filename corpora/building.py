"""A corpus of digits from its sources: duplicates out, difficulty found, items chosen evenly and
split. Killed and started again, it goes on where it was.
"""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from core.atomic_io import remove_partial_files
from core.errors import InputError
from core.folder_lock import folder_lock
from core.randomness import generator
from corpora.ambiguous_digits import interpolated_source, reserve
from corpora.annotation.crowd import class_evidence
from corpora.annotation.soft_digits_table import SPLITS
from corpora.corpus_report import Found, describe, finished_report, write_report
from corpora.difficulty import NONE, REGIONS, watched_map
from corpora.digit_corpus import DigitCorpus, write_corpus
from corpora.duplicates import Pairs, exact_pairs, first_of_each, near_pairs
from corpora.options import INTERPOLATED, CorpusOptions, Place
from corpora.selection import select
from corpora.short_training import reproducibly
from corpora.sources import PUBLISHED, Source, mnist_source, read_source, source_digests
from corpora.stages import Arrays, key_of, stage

VERSION = 1  # of what is computed: another number makes every stage anew
CORPUS, EVIDENCE, STAGES = "corpus.parquet", "evidence.safetensors", "stages"


def build_corpus(
    options: CorpusOptions, place: Place, say: Callable[[str], None] = lambda sentence: None
) -> dict[str, Any]:
    """Make the corpus in `place.out`, unless it is there already, and return its report.

    Of several processes one makes it and the others wait.
    """
    key = corpus_key(options, place.root)
    if report := finished_report(place.out, key):
        return report
    try:
        place.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{place.out} cannot be made ({error.strerror}); a corpus needs a folder that it may "
            "write to."
        ) from error
    with folder_lock(place.out, "builds the corpus"):
        remove_partial_files(place.out, place.out / STAGES)
        return finished_report(place.out, key) or _Build(options, place, say).run(key)


def corpus_key(options: CorpusOptions, root: str) -> str:
    """Equal for corpora that are made alike from the same files."""
    return key_of(VERSION, asdict(options), _digests(options, root))


def _digests(options: CorpusOptions, root: str) -> dict[str, list[str]]:
    return {
        name: source_digests(name, root)
        for name in PUBLISHED
        if name in options.sources or name == "mnist"
    }


class _Build:
    def __init__(self, options: CorpusOptions, place: Place, say: Callable[[str], None]):
        self.options, self.place, self.say = options, place, say
        self.digests = _digests(options, place.root)
        self.stages = place.out / STAGES

    def run(self, key: str) -> dict[str, Any]:
        self.say("reading the sources")
        self.mnist = mnist_source(self.place.root)
        sources, taken = self._sources()
        pairs, kept = self._without_duplicates(sources)
        result = [
            Found(source, kept_here, *self._mapped(source, kept_here))
            for source, kept_here in zip(sources, kept, strict=True)
        ]
        corpus = self._chosen(result, taken)
        self._evidence(corpus, taken, key)
        write_corpus(self.place.out / CORPUS, corpus)
        names = np.concatenate([item_names(source) for source in sources])
        report = describe(self.options, result, names, pairs, corpus)
        write_report(self.place.out, report, key, (CORPUS, EVIDENCE))
        return {"key": key, **report}

    def _sources(self) -> tuple[list[Source], np.ndarray]:
        """In the order of the options; and the rows of MNIST that made digits take up, which are
        not for anything else.
        """
        options, sources, taken = self.options, [], np.empty(0, int)
        for name in options.sources:
            if name == INTERPOLATED:
                self.say("making ambiguous digits by interpolation")
                key = key_of(
                    VERSION, self.digests["mnist"], asdict(options.interpolation), options.seed
                )
                sources.append(
                    interpolated_source(
                        self.mnist, options.interpolation, options.seed, self.stages, key
                    )[0]
                )
                taken = reserve(self.mnist.part, options.interpolation.digits, options.seed)
            else:
                sources.append(
                    self.mnist if name == "mnist" else read_source(name, self.place.root)
                )
        return sources, taken

    def _duplicates_key(self) -> str:
        made = (
            [asdict(self.options.interpolation), self.options.seed]
            if INTERPOLATED in self.options.sources
            else None
        )
        return key_of(
            VERSION,
            "duplicates",
            list(self.options.sources),
            self.digests,
            made,
            self.options.near_duplicate,
        )

    def _without_duplicates(
        self, sources: list[Source]
    ) -> tuple[dict[str, Pairs], list[np.ndarray]]:
        """Exact and near pairs over all sources one after the other, and of each source which items
        are kept.
        """
        images = np.concatenate([source.images for source in sources])

        def make() -> Arrays:
            self.say("looking for duplicates")
            exact = exact_pairs(images)
            rows = np.setdiff1d(np.arange(len(images)), exact.second)
            with reproducibly(self.options.seed):
                near = near_pairs(images[rows], self.options.near_duplicate)
            return {"exact": np.stack(exact), "near": rows[np.stack(near)]}

        result = stage(
            self.stages / "duplicates.safetensors",
            self._duplicates_key(),
            make,
            {"exact": (2, None), "near": (2, None)},
        )
        pairs = {name: Pairs(*rows) for name, rows in result.items()}
        kept = first_of_each(len(images), list(pairs.values()))
        return pairs, np.split(kept, np.cumsum([len(source) for source in sources])[:-1])

    def _mapped(
        self, source: Source, kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Confidence, variability and region of every item; NaN and none for those that were
        removed.
        """
        regions, rows = self.options.sources[source.name].regions, np.flatnonzero(kept)

        def make() -> Arrays:
            self.say(f"mapping {len(rows)} items of {source.name}")
            result = watched_map(
                source.images[rows], source.labels[rows], regions.epochs, self.options.seed
            )
            return {"confidence": result.confidence, "variability": result.variability}

        key = key_of(self._duplicates_key(), source.name, regions.epochs, self.options.seed)
        shapes = {"confidence": (len(rows),), "variability": (len(rows),)}
        result = stage(self.stages / f"map-{source.name}.safetensors", key, make, shapes)
        confidence, variability = np.full((2, len(source)), np.nan)
        confidence[rows], variability[rows] = result["confidence"], result["variability"]
        region = np.full(len(source), NONE, np.int8)
        region[rows] = regions.of(result["confidence"], result["variability"])
        return confidence, variability, region

    def _chosen(self, result: list[Found], taken: np.ndarray) -> DigitCorpus:
        parts = []
        for source, _, _, _, region in result:
            options = self.options.sources[source.name]
            if options.sizes is None:
                continue
            free = region.copy()
            if source.name == "mnist":
                free[taken] = NONE
            rows, part = select(
                source.digits,
                free,
                options.sizes,
                self.options.easy_per_digit,
                self.options.seed,
                source.name,
            )
            words = (
                np.array(SPLITS)[part],
                np.repeat(source.name, len(rows)),
                np.array(REGIONS)[region[rows]],
            )
            parts.append(
                DigitCorpus(
                    item_names(source)[rows], source.images[rows], source.labels[rows], *words, rows
                )
            )
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in DigitCorpus.__dataclass_fields__
        }
        return DigitCorpus(**columns)

    def _evidence(self, corpus: DigitCorpus, taken: np.ndarray, key: str) -> None:
        """How much each image looks like each digit, to someone who has seen MNIST digits that are
        in none of them.
        """
        used = np.union1d(taken, corpus.indices[corpus.source == "mnist"])
        rest, wanted = np.setdiff1d(np.arange(len(self.mnist)), used), self.options.known_digits
        if len(rest) < wanted:
            raise InputError(
                f"known_digits is {wanted}, but only {len(rest)} digits of MNIST are in no image "
                "of the corpus."
            )
        known = np.sort(generator(self.options.seed, "known-digits").permutation(rest)[:wanted])

        def make() -> Arrays:
            self.say("comparing the images with digits that a crowd knows")
            seen, examples = (_flat(images) for images in (corpus.images, self.mnist.images[known]))
            nothing = np.empty((len(seen), 0), int)
            return {
                "evidence": class_evidence(
                    seen, examples, self.mnist.digits[known], own=nothing, sharpness=1.0
                ),
                "known": known,
            }

        stage(
            self.place.out / EVIDENCE,
            key_of(key, "evidence"),
            make,
            {"evidence": (len(corpus), None), "known": (wanted,)},
        )


def item_names(source: Source) -> np.ndarray:
    """Source, its own part and the row in that: mnist-train-00012."""
    row = np.empty(len(source), int)
    for part in np.unique(source.part):
        mine = np.flatnonzero(source.part == part)
        row[mine] = np.arange(len(mine))
    return np.array(
        [
            f"{source.name}-{part}-{number:05d}"
            for part, number in zip(source.part, row, strict=True)
        ]
    )


def _flat(images: np.ndarray) -> np.ndarray:
    return images.reshape(len(images), -1).astype(np.float32) / 255


def evidence_of(out: Path, key: str) -> np.ndarray:
    """The evidence that was kept with a corpus whose report has this key."""

    def absent() -> Arrays:
        raise InputError(
            f"{out / EVIDENCE} was altered; delete {out / 'corpus.json'} to have the corpus built "
            "again."
        )

    return stage(
        out / EVIDENCE,
        key_of(key, "evidence"),
        absent,
        {"evidence": (None, None), "known": (None,)},
    )["evidence"]
