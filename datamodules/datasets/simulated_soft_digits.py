"""A stand-in for soft-digits: MNIST and interpolated digits, judged by a SIMULATED crowd.

The corpus is built as the paper describes (`corpora`), and the result has the published columns;
but nobody has looked at these images.
"""

from pathlib import Path

import numpy as np

from core.atomic_io import remove_partial_files
from core.folder_lock import folder_lock
from corpora.annotation.aggregation import CLASS_NAMES, aggregate
from corpora.annotation.crowd import YesNoUnsureCrowd
from corpora.annotation.judgements import Judgements
from corpora.annotation.soft_digits_table import SoftDigitsTable, label_table, write_soft_digits
from corpora.building import CORPUS, build_corpus, corpus_key
from corpora.corpus_report import finished_report
from corpora.digit_corpus import DigitCorpus, read_corpus
from corpora.evidence import evidence_of
from corpora.options import CorpusOptions, Place
from corpora.stages import key_of

OPTIONS = CorpusOptions()
FOLDER = "soft-digits-simulated"  # below the root
# Tuned to the published shares, and so no reproduction of them: with 6 annotators the crowd is of
# one mind on 59 % of MNIST and 24 % of interpolated digits, and its mean uncertainty is 0.033 and
# 0.077 (people: 60 % and 19 %, 0.025 and 0.076, on MNIST and Ambiguous-MNIST).
SHARPNESS, NOISE, YES_ABOVE, UNSURE_ABOVE = 22.0, 1.6, 0.6, 0.1
POOL = 160  # annotators, as many as were published; each image is judged by a few of them


def stand_in(root: str, annotators: int, seed: int) -> Path:
    """The stand-in's parquet file below `root`, in the published columns.

    Corpus and judgements are made first where they are absent.
    """
    out, key = Path(root) / FOLDER, corpus_key(OPTIONS, root)
    crowd = key_of(key, annotators, seed, SHARPNESS, NOISE, YES_ABOVE, UNSURE_ABOVE, POOL)
    # appears whole or not at all
    path = out / f"judged-by-{annotators}-seed-{seed}-{crowd[:8]}.parquet"
    if path.exists():
        return path
    if finished_report(out, key) is None:
        print(
            f"building the SIMULATED stand-in of soft-digits in {out}: about two minutes of one "
            "core, once",
            flush=True,
        )
    with folder_lock(out, "builds the corpus"):
        build_corpus(OPTIONS, Place(root, out))
        remove_partial_files(out)
        if not path.exists():  # another process may have made it meanwhile
            judged = judgements(root, annotators, seed)
            write_soft_digits(path, judged_table(read_corpus(out / CORPUS), judged))
    return path


def judgements(root: str, annotators: int, seed: int) -> Judgements:
    """What the simulated crowd says about each image of the built corpus, in its order."""
    out = Path(root) / FOLDER
    build_corpus(OPTIONS, Place(root, out))  # does nothing where all of it is whole
    evidence = evidence_of(out, corpus_key(OPTIONS, root))
    crowd = YesNoUnsureCrowd(annotators, NOISE, YES_ABOVE, UNSURE_ABOVE)
    answers = crowd.answers(SHARPNESS * evidence, seed)
    image = np.repeat(np.arange(len(evidence)), annotators)
    annotator = np.arange(len(image)) % max(POOL, annotators)
    rest = (answers.reshape(len(image), -1), np.full(len(image), np.nan), np.full(len(image), -1))
    return Judgements(np.arange(len(evidence)), np.unique(annotator), image, annotator, *rest)


def judged_table(corpus: DigitCorpus, judged: Judgements) -> SoftDigitsTable:
    """The corpus with all labels and uncertainties that follow from the judgements."""
    result = aggregate(judged)
    made = {
        "majority": np.eye(len(CLASS_NAMES))[result.majority],
        "equal": result.equal,
        "uncertainty": result.uncertainty,
    }
    labels = {
        name: label_table(probs, f"the simulated crowd's {name} labels")
        for name, probs in ({"original": corpus.labels} | made).items()
    }
    known = (result.mean_uncertainty, result.unsure_proportion, corpus.split, corpus.source)
    return SoftDigitsTable(corpus.images, labels, *known, simulated=True)
