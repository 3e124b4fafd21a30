"""What results.json says of a run whose training ended and whose items were all scored; made-up
results need it to be taken for results.
"""

import json
from pathlib import Path
from typing import Any

FINISHED = {
    "training": {"ended": "epochs", "epochs": 2, "planned_epochs": 2, "steps": 80},
    "test_items": 540,
    "scored_items": 540,
    "probes": [],
    "notes": [],
}


def read_preview(run: Path) -> dict[str, Any]:
    """What a look at a run that is no result has found."""
    return json.loads((run / "preview/preview.json").read_text())
