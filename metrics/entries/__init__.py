"""Scores, each an entry of `metrics.registry`.

Any module in this folder is found: one that registers a score needs to be named nowhere else. The
standard ones come first and the others follow in the order of their names, on every machine alike.
Imports core and metrics.
"""

from importlib import import_module
from pkgutil import iter_modules

from metrics.entries import standard

__all__ = ["standard"]

for _found in sorted(module.name for module in iter_modules(__path__)):
    import_module(f"{__name__}.{_found}")
