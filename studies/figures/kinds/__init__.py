"""One file for each kind of figure, which is called as its file is.

Imports all that figures may; nothing imports a kind by its name.
"""

import pkgutil
from functools import cache
from importlib import import_module
from types import ModuleType

from studies.figures.figure_spec import FigureSpec


@cache
def figure_kinds() -> dict[str, type[FigureSpec]]:
    """Every kind by its name, as the files of this folder have them.

    >>> {"curves", "lines", "points"} <= figure_kinds().keys()
    True
    """
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: kind_in(import_module(f"{__name__}.{name}")) for name in names}


def kind_in(module: ModuleType) -> type[FigureSpec]:
    """The one kind of figure that a module has."""
    (kind,) = (
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, FigureSpec)
        and value.__module__ == module.__name__
    )
    return kind


def imported_kind(class_path: str) -> type[FigureSpec] | None:
    """Somebody's own kind, such as `box.Box`; None where there is no such class."""
    if not all(part.isidentifier() for part in class_path.split(".")):
        return None
    module, _, name = class_path.rpartition(".")
    try:
        kind = getattr(import_module(module), name, None)
    except ImportError:
        return None
    return kind if isinstance(kind, type) and issubclass(kind, FigureSpec) else None
