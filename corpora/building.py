"""A corpus of digits from its sources: without duplicates, chosen evenly by difficulty, and split.

A build that was killed continues where it was.
"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from core.atomic_io import remove_partial_files
from core.errors import InputError
from core.folder_lock import folder_lock
from corpora.ambiguous_digits import interpolated_source, reserve
from corpora.annotation.soft_digits_table import SPLITS
from corpora.corpus_report import Found, describe, finished_report, write_report
from corpora.difficulty import NONE, REGIONS, watched_map
from corpora.digit_corpus import DigitCorpus, write_corpus
from corpora.duplicates import Pairs, exact_pairs, first_of_each, near_pairs
from corpora.evidence import EVIDENCE, make_evidence
from corpora.options import INTERPOLATED, CorpusOptions, Place
from corpora.selection import select
from corpora.short_training import reproducibly
from corpora.sources import PUBLISHED, Source, mnist_source, read_source, source_digests
from corpora.stages import Arrays, key_of, stage

VERSION = 1  # of what is computed: another number makes every stage anew
CORPUS, STAGES = "corpus.parquet", "stages"


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
    """One corpus in the making; every stage is kept, and read when it is made already."""

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
        out = self.place.out
        make_evidence(corpus, self.mnist, taken, self.options, out, key, self.say)
        write_corpus(self.place.out / CORPUS, corpus)
        names = np.concatenate([item_names(source) for source in sources])
        report = describe(self.options, result, names, pairs, corpus)
        write_report(self.place.out, report, key, (CORPUS, EVIDENCE))
        return {"key": key, **report}

    def _sources(self) -> tuple[list[Source], np.ndarray]:
        """In the order of the options; with the rows of MNIST that interpolated digits take up.

        Those rows are not for anything else.
        """
        seed, how = self.options.seed, self.options.interpolation
        sources, taken = [], np.empty(0, int)
        for name in self.options.sources:
            if name == INTERPOLATED:
                self.say("making ambiguous digits by interpolation")
                key = key_of(VERSION, self.digests["mnist"], asdict(how), seed)
                source, _ = interpolated_source(self.mnist, how, seed, self.stages, key)
                taken = reserve(self.mnist.part, how.digits, seed)
            else:
                source = self.mnist if name == "mnist" else read_source(name, self.place.root)
            sources.append(source)
        return sources, taken

    def _duplicates_key(self) -> str:
        options, made = self.options, None
        if INTERPOLATED in options.sources:
            made = [asdict(options.interpolation), options.seed]
        names, near = list(options.sources), options.near_duplicate
        return key_of(VERSION, "duplicates", names, self.digests, made, near)

    def _without_duplicates(
        self, sources: list[Source]
    ) -> tuple[dict[str, Pairs], list[np.ndarray]]:
        """Exact and near pairs, by rows of all sources one after the other; and what is kept.

        The latter as one mask for each source.
        """
        images = np.concatenate([source.images for source in sources])

        def make() -> Arrays:
            self.say("looking for duplicates")
            exact = exact_pairs(images)
            rows = np.setdiff1d(np.arange(len(images)), exact.second)
            with reproducibly(self.options.seed):
                near = near_pairs(images[rows], self.options.near_duplicate)
            return {"exact": np.stack(exact), "near": rows[np.stack(near)]}

        path, shapes = (
            self.stages / "duplicates.safetensors",
            {"exact": (2, None), "near": (2, None)},
        )
        result = stage(path, self._duplicates_key(), make, shapes)
        pairs = {name: Pairs(*rows) for name, rows in result.items()}
        kept = first_of_each(len(images), list(pairs.values()))
        return pairs, np.split(kept, np.cumsum([len(source) for source in sources])[:-1])

    def _mapped(
        self, source: Source, kept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Confidence, variability and region of every item; NaN and none for duplicates."""
        regions, rows = self.options.sources[source.name].regions, np.flatnonzero(kept)

        def make() -> Arrays:
            self.say(f"mapping {len(rows)} items of {source.name}")
            images, labels = source.images[rows], source.labels[rows]
            result = watched_map(images, labels, regions.epochs, self.options.seed)
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
            easy, seed = self.options.easy_per_digit, self.options.seed
            rows, part = select(source.digits, free, options.sizes, easy, seed, source.name)
            words = (
                np.array(SPLITS)[part],
                np.repeat(source.name, len(rows)),
                np.array(REGIONS)[region[rows]],
            )
            items = (item_names(source)[rows], source.images[rows], source.labels[rows])
            parts.append(DigitCorpus(*items, *words, rows))
        return DigitCorpus(
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in DigitCorpus.__dataclass_fields__
            }
        )


def item_names(source: Source) -> np.ndarray:
    """The name of each item: its source, the source's own part, and the row in that.

    As in mnist-train-00012.
    """
    row = np.empty(len(source), int)
    for part in np.unique(source.part):
        mine = np.flatnonzero(source.part == part)
        row[mine] = np.arange(len(mine))
    pairs = zip(source.part, row, strict=True)
    return np.array([f"{source.name}-{part}-{number:05d}" for part, number in pairs])
