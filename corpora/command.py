"""What a user does with a corpus of digits: build it, and put people's judgements of it into the
published columns.

python cli.py corpus build configs/corpora/soft_digits.yaml
python cli.py corpus annotate judgements.csv corpus.parquet soft-digits.parquet
"""

import argparse
from pathlib import Path

from corpora.annotation.annotated_corpus import annotate
from corpora.annotation.crowd_models import MODELS
from corpora.building import CORPUS, build_corpus
from corpora.corpus_report import summary
from corpora.options import read_options


def corpus_command(arguments: list[str]) -> None:
    """Do what is asked for, and say what came of it."""
    parser = argparse.ArgumentParser(
        prog="cli.py corpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build what is not there yet of a corpus")
    build.add_argument("corpus", help="a YAML of configs/corpora")
    labels = commands.add_parser(
        "annotate", help="raw yes, no and unsure to soft labels in the columns of soft-digits"
    )
    labels.add_argument(
        "raw",
        help=".csv, .parquet or .jsonl with a row for each annotator, image and digit "
        "(corpora/annotation/judgements.py says more)",
    )
    labels.add_argument("items", help="a parquet file with the images, such as corpus.parquet")
    labels.add_argument(
        "out", help="the parquet file to write, which SoftDigits takes as data.published"
    )
    labels.add_argument(
        "--models", nargs="+", choices=list(MODELS), default=[], help="further labels, by crowd-kit"
    )
    given = parser.parse_args(arguments)
    if given.command == "annotate":
        print(
            "\n".join(annotate(Path(given.raw), Path(given.items), Path(given.out), given.models))
        )
        return
    options, place = read_options(Path(given.corpus))
    report = build_corpus(options, place, lambda sentence: print(sentence, flush=True))
    print("\n".join(summary(report)))
    print(f"corpus: {place.out / CORPUS}")
