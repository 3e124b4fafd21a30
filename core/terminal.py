"""What people type, and what is printed for them."""

import argparse
import re
from typing import TYPE_CHECKING, NoReturn

from core.compat import known_options
from core.errors import OptionError, hint

if TYPE_CHECKING:
    from rich.console import Console


class CommandParser(argparse.ArgumentParser):
    """Reports a mistake as one sentence with the nearest name, and takes no name that is cut short.

    >>> parser = CommandParser(prog="cli.py study")
    >>> _ = parser.add_argument("--runs")
    >>> parser.parse_args(["--rns", "elsewhere"])
    Traceback (most recent call last):
    core.errors.OptionError: --rns is not an option of cli.py study (did you mean --runs?).
    """

    def __init__(self, prog: str, description: str = "", epilog: str = ""):
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        """Raise the sentence, where argparse would print its usage and leave."""
        unknown = re.match(r"unrecognized arguments: (--?[\w-]+)", message)
        if unknown:
            near = hint(unknown[1], known_options(self))
            message = f"{unknown[1]} is not an option of {self.prog}{near}"
        else:
            message = f"{self.prog}: {message}; {self.prog} --help says more"
        raise OptionError(f"{message}.")


def wants_help(words: list[str]) -> bool:
    """Whether somebody asks what there is: by --help, or by saying nothing.

    >>> wants_help([]), wants_help(["plan", "-h"]), wants_help(["plan", "study.yaml"])
    (True, True, False)
    """
    return not words or not {"-h", "--help"}.isdisjoint(words)


def check_command(word: str, commands: list[str], of: str) -> None:
    """Refuse what is no command, and say which there are.

    >>> check_command("pln", ["plan", "run"], "cli.py study")
    Traceback (most recent call last):
    core.errors.OptionError: pln is no command of cli.py study, which has plan, run (did you mean
    plan?).
    """
    if word not in commands:
        listed = ", ".join(commands)
        raise OptionError(
            f"{word} is no command of {of}, which has {listed}{hint(word, commands)}."
        )


def plain_console() -> "Console":
    """A console that prints paths, names and labels as they are.

    Neither brackets nor colons mean anything in them.

    >>> plain_console().print("/tmp/[red]x[/red]/:fire:")
    /tmp/[red]x[/red]/:fire:
    """
    from rich.console import Console

    return Console(markup=False, emoji=False)
