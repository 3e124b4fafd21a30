"""Datasets by name, and the deliveries that a config can choose from.

In this folder is what one subclasses: `VoteDataModule`, its loaders, its order and its
transformations. Imports core and corpora; votes and io know neither corpora nor the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datamodules.by_name import *  # noqa: F403
    from datamodules.by_name import __all__ as __all__


def __getattr__(name: str) -> Any:
    """Import the datasets when the first of them is asked for.

    So votes are read, and corpora built, without Lightning.
    """
    if not name[0].isupper() and name != "__all__":  # a module, or what Python looks for
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("datamodules.by_name"), name)
