"""What stands after `cli.py score`; it is checked before anything that takes long is imported."""

from dataclasses import dataclass
from pathlib import Path

from core.bounded_files import is_endless
from core.errors import InputError, OptionError
from core.terminal import CommandParser

FORMATS = (".csv", ".parquet", ".npy", ".jsonl")
SPLITS = ("test", "val", "train", "all", "given")
MARK = "<!doctype html>\n<!-- written by cli.py score -->\n"  # a page's first two lines


@dataclass(frozen=True)
class ScoreOptions:
    """Which predictions, of which items, told where."""

    files: tuple[Path, ...]
    split: str
    item: str | None  # the column of ids, where it has a name of its own
    report: Path
    data: tuple[str, ...]  # the options of the dataset, as `describe` takes them


def parse_score(words: list[str]) -> ScoreOptions:
    """Files first, then options; those that are not of `score` itself are the dataset's.

    >>> parse_score(["a.csv", "--data", "Digits"])
    Traceback (most recent call last):
    core.errors.InputError: there is no a.csv; predictions are .csv, .parquet, .npy or .jsonl files.
    """
    begin = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    files, rest = [Path(word) for word in words[:begin]], words[begin:]
    if not files:
        raise OptionError("cli.py score has no file of predictions; name it before all options.")
    parser = CommandParser("cli.py score")
    parser.add_argument("--split", choices=SPLITS, default="test")
    parser.add_argument("--item")
    parser.add_argument("--report", type=Path, default=Path("report.html"))
    own, data = parser.parse_known_args(rest)
    if not any(word.partition("=")[0] in ("--data", "--config") for word in data):
        raise OptionError(
            "cli.py score needs the dataset that predictions are judged by; name it by --data or "
            "--config."
        )
    for path in files:
        _check_file(path)
    if len(set(files)) < len(files):
        raise InputError(f"{files[0]} is named more than once; name every file once.")
    _check_report(own.report)
    return ScoreOptions(tuple(files), own.split, own.item, own.report, tuple(data))


def _check_file(path: Path) -> None:
    allowed = "predictions are .csv, .parquet, .npy or .jsonl files"
    if is_endless(path):
        raise InputError(f"{path} is a device or a pipe; {allowed}.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; {allowed}.")
    if not path.exists():
        raise InputError(f"there is no {path}; {allowed}.")
    if path.suffix not in FORMATS:
        raise InputError(f"{path} is of no known kind; {allowed}.")


def _check_report(path: Path) -> None:
    """A page of ours may be written again; whatever else has that name stays as it is."""
    if path.suffix != ".html":
        raise InputError(f"--report is {path}; it must end in .html.")
    if is_endless(path) or path.is_dir():
        raise InputError(f"--report is {path}, which is no file; name another.")
    if path.exists():
        with open(path, "rb") as stream:
            if stream.read(len(MARK)) != MARK.encode():
                raise InputError(
                    f"{path} is there already, and cli.py score did not write it; name another by "
                    "--report."
                )
