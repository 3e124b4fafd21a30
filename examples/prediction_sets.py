"""How often prediction sets hold what people say, over 200 ways to cut a run's test items in two.

    python cli.py predict --config runs/NAME/config.yaml
    python examples/prediction_sets.py runs/NAME

One half gives the threshold, the other is judged; a few seconds on a CPU.
"""

import sys
from pathlib import Path

import numpy as np

from callbacks.prediction_table import class_probs, read_predictions
from core.randomness import generator
from metrics.prediction_sets import PredictionSets, majority_threshold, set_threshold

SPLITS = 200

table = read_predictions(Path(sys.argv[1]), "test")
probs, people = (class_probs(table, who).astype(float) for who in ("model", "annotators"))
disputed = (people > 0).sum(1) > 1
entropy = table["annotator_entropy"].to_numpy()
torn = disputed & (entropy >= np.quantile(entropy, 0.9))
print(f"{len(probs)} test items; mean ± SD over {SPLITS} splits")

for alpha in (0.05, 0.1, 0.2):
    rows = []
    for split in range(SPLITS):
        order = generator(0, "split", split).permutation(len(probs))
        fitted, judged = np.array_split(order, 2)
        # labels drawn from each item's votes, and one label for each item, the majority
        by_votes = set_threshold(probs[fitted], people[fitted], alpha, seed=split)
        by_majority = majority_threshold(probs[fitted], people[fitted], alpha)
        sets, usual = (PredictionSets.of(probs[judged], t) for t in (by_votes, by_majority))
        sizes = [sets.size[of[judged]].mean() for of in (~disputed, disputed, torn)]
        rows.append([*(s.coverage(people[judged]).mean() for s in (sets, usual)), *sizes])
    covered, usual, *sizes = np.mean(rows, 0)
    print(
        f"{1 - alpha:.0%} wanted: {covered:.2%} ± {np.std(rows, 0)[0]:.2%} of votes covered "
        f"(by the majority {usual:.2%}); classes in a set: "
        f"{sizes[0]:.2f} unanimous, {sizes[1]:.2f} disputed, {sizes[2]:.2f} most disputed tenth"
    )
