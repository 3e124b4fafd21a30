"""The end of a process that was forked from one in which everything is imported.

Python's own end would take all modules apart, whose memory the process would have to copy first:
2.2 s of CPU time after torch and Lightning, where 0.03 s is enough.
"""

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

from core.compat import run_exit_functions

UNWRITTEN = 120  # Python's exit code where its last words could not be written


def end_after(work: Callable[[], int | None]) -> NoReturn:
    """Do this and end as Python does, with the same exit code and last words: threads come to
    their end, and so does what was registered by `atexit`.
    """
    code: Any = 1
    try:
        try:
            code = work()
        except SystemExit as end:
            code = end.code
        except BaseException:
            traceback.print_exc()
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
        run_exit_functions()
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # a full disk, a closed pipe: only the code can tell
        code = UNWRITTEN
    os._exit(code or 0)
