"""What a user does with a corpus of digits: build it, and put people's judgements of it into the
published columns.
"""

import sys
from pathlib import Path

from core.terminal import CommandParser, check_command, wants_help

COMMANDS = {
    "build": "build what is not there yet of a corpus",
    "annotate": "raw yes, no and unsure to soft labels in the columns of soft-digits",
}
PROG = "cli.py corpus"
EXAMPLES = {
    "build": "configs/corpora/soft_digits.yaml",
    "annotate": "judgements.csv corpus.parquet soft-digits.parquet",
}


def corpus_command(arguments: list[str]) -> None:
    """Do what is asked for, and say what came of it; help and mistakes wait for no imports."""
    command = arguments[0] if arguments else ""
    if command not in COMMANDS and wants_help(arguments):
        print(help_text())
        sys.exit(0 if arguments else 2)
    check_command(command, list(COMMANDS), PROG)
    if wants_help(arguments[1:]):
        print(_parser(command).format_help(), end="")
        sys.exit(0 if arguments[1:] else 2)
    given = _parser(command).parse_args(arguments[1:])
    if command == "annotate":
        _annotate(given.raw, given.items, given.out, given.models)
    else:
        _build(Path(given.corpus))


def help_text() -> str:
    """The commands of a corpus."""
    rows = [f"  {command:10}{what}" for command, what in COMMANDS.items()]
    typed = [f"  python {PROG} {command} {words}" for command, words in EXAMPLES.items()]
    usage = [f"usage: {PROG} COMMAND [options]", "", "Which images to ask people about, and what"]
    usage[-1] += " they said of them."
    return "\n".join([*usage, "", *rows, "", *typed, "", f"{PROG} COMMAND --help explains one."])


def _parser(command: str) -> CommandParser:
    prog = f"{PROG} {command}"
    what = COMMANDS[command]
    about = f"{what[0].upper()}{what[1:]}.\n\n  python {prog} {EXAMPLES[command]}"
    parser = CommandParser(prog, about)
    if command == "build":
        parser.add_argument("corpus", help="a YAML of configs/corpora")
        return parser
    parser.add_argument(
        "raw",
        help=".csv, .parquet or .jsonl with a row for each annotator, image and digit "
        "(corpora/annotation/judgements.py says more)",
    )
    parser.add_argument("items", help="a parquet file with the images, such as corpus.parquet")
    parser.add_argument(
        "out", help="the parquet file to write, which SoftDigits takes as data.published"
    )
    parser.add_argument(
        "--models", nargs="+", default=[], help="further labels, by crowd-kit: dawid_skene, mace"
    )
    return parser


def _annotate(raw: str, items: str, out: str, models: list[str]) -> None:
    from corpora.annotation.annotated_corpus import annotate

    print("\n".join(annotate(Path(raw), Path(items), Path(out), models)))


def _build(corpus: Path) -> None:
    from corpora.building import CORPUS, build_corpus
    from corpora.corpus_report import summary
    from corpora.options import read_options

    options, place = read_options(corpus)
    report = build_corpus(options, place, lambda sentence: print(sentence, flush=True))
    print("\n".join(summary(report)))
    print(f"corpus: {place.out / CORPUS}")
