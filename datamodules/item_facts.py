"""What a dataset can tell people of its items, beside votes and inputs: defaults for all of it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from core.errors import InputError
from datamodules.votes.table import VoteTable


class ItemFacts:
    """For messages, figures and tables; nothing here changes what is learned.

    It is the part of `VoteDataModule` that a dataset overrides where it knows more.
    """

    name: str | None

    @property
    def annotator_votes(self) -> VoteTable:
        """What annotators said of all items; strata and uncertainties are told by it."""
        raise NotImplementedError

    def original(self, rows: Sequence[int] | np.ndarray) -> list[str] | Tensor:
        """These items as people see them: texts, or bytes [n, 3, height, width]; needs no setup."""
        raise InputError(
            f"{type(self).__name__} has no texts or pictures to show; figures of single items are "
            "for datasets that have."
        )

    @property
    def items_source(self) -> str:
        """Where the items came from, for messages."""
        return f"the items of {self.name}"

    @property
    def split_source(self) -> str:
        """Where the split came from, for messages."""
        return f"the split of {self.name}"

    def files(self) -> list[Path]:
        """The files that no published checksum covers: somebody may have changed them."""
        return []

    def human_uncertainties(self) -> dict[str, np.ndarray]:
        """How uncertain people were about each item of the table, by name of the measure.

        The entropy of their votes; before it what they said of themselves, where a dataset knows
        that. Maps are coloured by the first.
        """
        return {"annotators' entropy (nats)": self.annotator_votes.entropy}

    def statistics(self) -> dict[str, float]:
        """Numbers about all items, by name, for tables: those that not every vote table has."""
        return {}

    def other_labels(self) -> dict[str, VoteTable]:
        """Further labels of the same items to judge models by; short names, for metrics' names."""
        return {}
