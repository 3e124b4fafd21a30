"""Digits of which one process of a run cannot make sense, as where a file is missing on one of
several nodes.
"""

import os

from core.errors import InputError
from core.ranks import rank_and_ranks
from tests.devices.odd_digits import OddDigits


class MistakenDigits(OddDigits):
    """MISTAKE in the environment is the rank that fails, or `all`, and the method in which
    it does.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._fail("__init__", int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", "0"))))

    def setup(self, stage: str | None = None) -> None:
        self._fail("setup", rank_and_ranks()[0])
        super().setup(stage)

    def train_dataloader(self):
        self._fail("train_dataloader", rank_and_ranks()[0])
        return super().train_dataloader()

    def _fail(self, where: str, rank: int) -> None:
        which, place = os.environ.get("MISTAKE", "none nowhere").split()
        if place == where and which in (str(rank), "all"):
            raise InputError(f"votes.csv is not there in {where}; name a file that is.")
