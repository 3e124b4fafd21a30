"""One file for each kind of figure, which is called as its file is."""

import pkgutil
from functools import cache
from importlib import import_module

from studies.figures.figure_spec import FigureSpec


@cache
def figure_kinds() -> dict[str, type[FigureSpec]]:
    """Every kind by its name, as the files of this folder have them.

    >>> list(figure_kinds())[:3]
    ['curves', 'data_map', 'entropy_histogram']
    """
    kinds = {}
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        module = import_module(f"{__name__}.{name}")
        (kind,) = (
            value
            for value in vars(module).values()
            if isinstance(value, type)
            and issubclass(value, FigureSpec)
            and value.__module__ == module.__name__
        )
        kinds[name] = kind
    return kinds
