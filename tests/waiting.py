"""How long a test waits: so long that a busy machine changes no outcome, and what hangs is still
seen.
"""

import time
from collections.abc import Callable

# seconds by the clock; what takes some of them on an idle machine takes minutes on one with ten
# times as much to do
HANGS = 600.0


def until(condition: Callable[[], object], pause: float = 0.05) -> None:
    """Wait for something to become true."""
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < HANGS, "it hangs"
        time.sleep(pause)
