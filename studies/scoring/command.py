"""`python cli.py score PREDICTIONS --data …`: the words are checked first, and only what is right
has to wait for imports.
"""

from studies.scoring.score_options import parse_score


def score_command(words: list[str]) -> None:
    """Do what stands after `cli.py score`."""
    options = parse_score(words)
    from studies.scoring.scoring import score

    score(options, words)
