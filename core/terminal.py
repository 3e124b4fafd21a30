"""What is printed for people."""

from rich.console import Console


def plain_console() -> Console:
    """A console that prints paths, names and labels as they are.

    Neither brackets nor colons mean anything in them.

    >>> plain_console().print("/tmp/[red]x[/red]/:fire:")
    /tmp/[red]x[/red]/:fire:
    """
    return Console(markup=False, emoji=False)
