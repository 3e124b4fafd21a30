"""The metric of the documentation, as somebody's own file."""

import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metrics import registry

ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs/adding.md"


def documented_metric() -> str:
    """The file that the documentation shows, which is all that a metric takes."""
    shown = re.search(r'```python title="unchosen\.py"\n(.*?)```', GUIDE.read_text(), re.DOTALL)
    assert shown
    return shown[1]


@contextmanager
def own_score(folder: Path, code: str, module: str = "unchosen") -> Iterator[None]:
    """A module of one's own that registers scores, until this ends."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{module}.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        before = registry.registered()
        importlib.import_module(module)
        try:
            yield
        finally:
            del sys.modules[module]
            for name in registry.registered().keys() - before.keys():
                del registry._scores[name]
