"""`python cli.py score PREDICTIONS --data …`: the words are checked first, and only what is right
has to wait for imports.
"""

import gc

from studies.scoring.score_options import parse_score


def score_command(words: list[str]) -> None:
    """Do what stands after `cli.py score`."""
    options = parse_score(words)
    gc.disable()  # imports leave no garbage, and looking for some takes a fifth of their time
    try:
        from studies.scoring.scoring import score
    finally:
        gc.enable()
    score(options, words)
