"""`study evaluate`: scores and probes that came later, for finished runs, told as they come."""

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from studies.evaluate import evaluate_study
from studies.plan.study import Study


def evaluate_command(study: Study, runs: Path, say: Callable[..., None]) -> None:
    """Add what is absent from finished runs; today's date stands beside each added number."""
    day = datetime.now(UTC).date().isoformat()
    failures = evaluate_study(study, runs, day, say)
    for name, why in failures.items():
        say(f"failed: {name}: {why}", "red")
    if failures:
        sys.exit(1)
