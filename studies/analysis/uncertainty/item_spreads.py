"""The spread of finished runs' scores, from the predictions that they keep."""

import math
from typing import Any

import numpy as np
import torch

from callbacks.prediction_table import class_probs, read_predictions
from core.errors import InputError
from metrics import Score
from metrics.registry import score_of
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.analysis.uncertainty.item_parts import (
    Votes,
    item_parts,
    vote_parts,
    votes_drawn_anew,
)
from studies.analysis.uncertainty.spread import (
    RunSpread,
    Spread,
    spread_of,
    spread_of_differences,
)
from studies.plan.known_data import same_data

NEAR = 1e-3  # what a score may change by because predictions are kept in single precision
LEAST_ITEMS = 3
ALONE = "runs keep no predictions (a study's `predict: true`)"


class ItemSpreads:
    """Looks up each run's predictions once for a metric, and each dataset's votes once."""

    def __init__(self, data: DataOfRuns):
        self._data = data
        self._known: dict[tuple[str, str], RunSpread | str] = {}
        self._votes: dict[str, tuple[np.ndarray, Votes] | None] = {}

    def of_scores(self, runs: list[Record], metric: str) -> Spread | str:
        """That of one metric of some seeds."""
        spreads = self._of(runs, metric)
        return spreads if isinstance(spreads, str) else spread_of(spreads)

    def of_differences(self, runs: list[Record], others: list[Record], metric: str) -> Spread | str:
        """That of the differences between runs that are pairs."""
        one, other = self._of(runs, metric), self._of(others, metric)
        if isinstance(one, str):
            return one
        return other if isinstance(other, str) else spread_of_differences(one, other)

    def _of(self, records: list[Record], metric: str) -> list[RunSpread] | str:
        result = []
        for record in records:
            key = record.run, metric
            if key not in self._known:
                self._known[key] = self._look(record, metric)
            known = self._known[key]
            if isinstance(known, str):
                return known
            result.append(known)
        return result

    def _look(self, record: Record, metric: str) -> RunSpread | str:
        score, stratum = score_of(metric)
        if score is None:
            return f"{metric} is no score of test items"
        if not (record.folder / "predictions.parquet").is_file():
            return ALONE
        try:
            table = read_predictions(record.folder, "test")
        except InputError as error:
            return str(error).rstrip(".")
        order = np.argsort(table["index"].to_numpy())
        index = table["index"].to_numpy()[order]
        probs, people = (class_probs(table, who)[order] for who in ("model", "annotators"))
        if stratum:
            chosen = (people.max(1) >= 1) == (stratum == "nohlv")
            probs, people, index = probs[chosen], people[chosen], index[chosen]
        if len(index) < LEAST_ITEMS:
            return f"there are fewer than {LEAST_ITEMS} test items"
        found = float(score.value(torch.from_numpy(probs), torch.from_numpy(people)))
        kept = record.metrics[metric]
        if not abs(found - kept) <= NEAR * max(1.0, abs(kept)):
            return f"{record.run} keeps other predictions than gave its {metric}; run predict again"
        items = item_parts(score, probs, people, index)
        if not np.isfinite(items).all():
            return f"{metric} is not defined without some of the items"
        # which items are of a stratum would change with their votes
        of_votes, per_item = (
            (None, math.nan) if stratum else self._vote_parts(record, score, probs, people, index)
        )
        return RunSpread(items, of_votes, index, per_item)

    def _vote_parts(
        self,
        record: Record,
        score: Score,
        probs: np.ndarray,
        people: np.ndarray,
        index: np.ndarray,
    ) -> tuple[np.ndarray | None, float]:
        """The parts of groups' votes, and how many votes an item has; None and NaN where a run is
        judged by anything but counted votes, or some items have one vote alone.
        """
        known = self._of_dataset(record.config)
        if known is None or index[-1] >= len(known[0]):
            return None, math.nan
        counts, votes = known[0][index], Votes(*(table[index] for table in known[1]))
        totals = counts.sum(1)
        if counts.shape != people.shape or not np.allclose(
            counts / totals[:, None], people, atol=1e-5
        ):
            return None, math.nan
        parts = vote_parts(score, probs.astype(np.float64), votes, index)
        return (parts if np.isfinite(parts).all() else None), float(totals.mean())

    def _of_dataset(self, config: dict[str, Any]) -> tuple[np.ndarray, Votes] | None:
        key = same_data(config)
        if key not in self._votes:
            try:
                counts = self._data.of(config).annotator_votes.counts
            except InputError:  # without the data, nothing can be said of its votes
                counts = None
            self._votes[key] = (
                (counts, votes_drawn_anew(counts))
                if counts is not None and counts.sum(1).min() > 1
                else None
            )
        return self._votes[key]
