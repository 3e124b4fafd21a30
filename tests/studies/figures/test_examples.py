"""Example items: chosen by rule, of the first seed that has all models, and drawn as texts or
pictures beside three distributions.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from matplotlib.patches import Rectangle
from torch import Tensor

from callbacks.prediction_table import prediction_table
from metrics import functional
from studies.analysis.collect import Record
from studies.analysis.data_of_runs import DataOfRuns
from studies.figures.chosen_items import (
    Example,
    find_examples,
    most_disagreement,
    same_class,
    spread,
)
from studies.figures.kinds.examples import LINES, Examples, draw_examples, fitted
from studies.report.section import ABSENT, Section

SPEC = Examples("e", rows="delivery", levels={"delivery": ["soft", "hard"]}, number=2)
SECTION = Section([], [], labels={"soft": "soft labels"})


class Shop:
    """A dataset of 8 texts over two classes, of which 4 to 7 are test items."""

    num_classes, class_names, annotator_votes = 2, ("cheap", "dear"), range(8)

    def original(self, rows: np.ndarray) -> list[str]:
        return [f"text {row}" for row in rows]


class Shops(DataOfRuns):
    def of(self, config: dict[str, Any]) -> Any:
        return Shop()


PEOPLE = torch.tensor(
    [[0.5, 0.5], [1, 0], [1, 0], [1, 0], [0.9, 0.1], [0.5, 0.5], [0.6, 0.4], [0.6, 0.4]]
)


def run(
    folder: Path,
    delivery: str,
    seed: int,
    probs: Tensor | None,
    test: tuple[int, ...] = (4, 5, 6, 7),
) -> Record:
    own = folder / f"{delivery}{seed}"
    own.mkdir()
    if probs is not None:
        splits = {"train": np.arange(4), "test": np.array(test)}
        pq.write_table(
            prediction_table(probs, PEOPLE, torch.arange(8), splits), own / "predictions.parquet"
        )
    return Record(
        own.name,
        own,
        {"delivery": delivery, "seed": seed},
        {},
        {},
        {"data": {"class_path": "Shop"}},
    )


def test_rules_agree_with_a_plain_sort():
    rng = np.random.default_rng(0)
    annotator_probs, models = (
        torch.from_numpy(rng.dirichlet(np.ones(3), 50)),
        torch.from_numpy(rng.dirichlet(np.ones(3), (2, 50))),
    )
    annotator_probs[10] = annotator_probs[20]  # a tie
    entropy = functional.entropy(annotator_probs)
    by_hand = sorted(range(50), key=lambda item: (-entropy[item], item))
    assert most_disagreement(annotator_probs, models, 50).tolist() == by_hand
    alike = [
        item
        for item in by_hand
        if all(model[item].argmax() == annotator_probs[item].argmax() for model in models)
    ]
    assert 1 < len(alike) < 50
    assert same_class(annotator_probs, models, 3).tolist() == alike[:3]
    assert same_class(annotator_probs, models, 99).tolist() == alike
    from_agreement = sorted(range(50), key=lambda item: (entropy[item], item))
    assert spread(annotator_probs, models, 3).tolist() == [
        from_agreement[0],
        from_agreement[24],
        from_agreement[49],
    ]
    assert spread(annotator_probs, models, 1).tolist() == from_agreement[:1]
    assert spread(annotator_probs, models, 99).tolist() == from_agreement


def test_test_items_of_the_first_seed_that_has_all_models(tmp_path):
    soft, hard = PEOPLE * 0.8 + 0.1, PEOPLE.flip(1)
    records = [run(tmp_path, "soft", 0, soft), run(tmp_path, "hard", 0, None)]
    records += [
        run(tmp_path, "hard", 1, hard),
        run(tmp_path, "soft", 1, soft),
        run(tmp_path, "soft", 2, hard),
        run(tmp_path, "hard", 2, soft),
    ]
    result, absent = find_examples(SPEC, records, ["seed"], Shops())
    assert absent == []
    # item 0 is a training item
    assert [(example.row, example.item) for example in result] == [
        (5, "text 5"),
        (6, "text 6"),
    ]
    assert result[0].class_names == ("cheap", "dear")
    for example in result:
        assert list(example.models) == ["soft", "hard"]
        assert torch.equal(example.annotators, PEOPLE[example.row])
        assert torch.allclose(example.models["soft"], soft[example.row])
        assert torch.allclose(example.models["hard"], hard[example.row])
    assert result[1].kl("hard") == pytest.approx(0.6 * np.log(0.6 / 0.4) + 0.4 * np.log(0.4 / 0.6))


def test_what_there_is_not_is_said(tmp_path):
    soft = run(tmp_path, "soft", 0, PEOPLE)
    result, absent = find_examples(SPEC, [soft], ["seed"], Shops())
    assert result == []
    assert absent == [
        "Not drawn: no seed has a predictions.parquet, which cli.py predict writes, of each of "
        "soft, hard."
    ]
    other = run(tmp_path, "hard", 0, PEOPLE, test=(3, 4, 5))
    _, absent = find_examples(SPEC, [soft, other], ["seed"], Shops())
    assert "is of other test items" in absent[0]
    wrong = run(tmp_path, "hard", 1, PEOPLE.flip(1) * 0.9 + torch.tensor([0.0, 0.1]))
    right = run(tmp_path, "soft", 1, PEOPLE)
    _, absent = find_examples(
        Examples(**{**vars(SPEC), "choose": "same_class"}), [right, wrong], ["seed"], Shops()
    )
    assert absent == [
        "Not drawn: there is no test item for which all models predict the annotators' majority "
        "class."
    ]


def example(item: str | Tensor, classes: int, panel: Any = ABSENT) -> Example:
    annotator_probs = torch.full((classes,), 1 / classes)
    return Example(
        panel,
        7,
        item,
        tuple(f"class {k}" for k in range(classes)),
        annotator_probs,
        {"soft": annotator_probs, "hard": torch.eye(classes)[0]},
    )


def test_texts_and_pictures_are_drawn_with_their_distributions():
    picture = torch.arange(48, dtype=torch.uint8).reshape(3, 4, 4)
    shown = [
        example("It costs $5 or $6_000 🙂.\nReally?", 3, "texts"),
        example(picture, 10, "pictures"),
    ]
    figure, message = draw_examples(SPEC, shown, SECTION)
    assert len(figure.axes) == 2 * 4
    item, annotator_probs, soft, hard = figure.axes[:4]
    assert item.texts[0].get_text() == "It costs $5 or $6_000 □.\nReally?"
    assert item.get_title("left") == "texts, item 7"
    assert [label.get_text() for label in annotator_probs.get_yticklabels()] == [
        "class 0",
        "class 1",
        "class 2",
    ]
    assert [
        bar.get_width() for bar in annotator_probs.patches if isinstance(bar, Rectangle)
    ] == pytest.approx([1 / 3] * 3)
    assert [bar.get_width() for bar in hard.patches if isinstance(bar, Rectangle)] == [1, 0, 0]
    assert soft.get_title() == "soft labels\nKL 0.00"
    assert (annotator_probs.get_xlabel(), hard.get_xlabel()) == ("share of votes", "probability")
    assert len({axes.patches[0].get_facecolor() for axes in (annotator_probs, soft, hard)}) == 3
    assert np.array_equal(
        np.asarray(figure.axes[4].images[0].get_array()), picture.permute(1, 2, 0).numpy()
    )
    assert "Cut" not in " ".join(message)


def test_names_of_classes_and_panels_are_no_formulas():
    annotator_probs = torch.tensor([0.5, 0.5])
    odd = Example(
        "$\\frac{$",
        7,
        "a text",
        ("$\\frac{$", "a $ and a $, " + "x" * 300),
        annotator_probs,
        {"soft": annotator_probs, "hard": annotator_probs},
    )
    figure, _ = draw_examples(SPEC, [odd], SECTION)
    figure.draw_without_rendering()
    first, second = (label.get_text() for label in figure.axes[1].get_yticklabels())
    assert first == "\\$\\frac{\\$"
    assert second.startswith("a \\$ and a \\$, xx")
    assert len(second) < 50
    assert figure.axes[0].get_title("left") == "\\$\\frac{\\$, item 7"


def test_long_texts_are_cut_and_it_is_said():
    figure, message = draw_examples(SPEC, [example("word " * 500, 3)], SECTION)
    shown = figure.axes[0].texts[0].get_text()
    assert shown.count("\n") == LINES - 1
    assert shown.endswith(" …")
    assert "Cut to what fits (marked …): 1 text." in message
    # a word that is longer than a line
    assert fitted("a" * 100, 9) == (
        "\n".join(["a" * 34, "a" * 34, "a" * 32]),
        False,
    )


def test_nothing_is_clipped_or_laid_over_another_thing():
    shown = [
        example("Long words and more words. " * 30, 3, "texts"),
        example(torch.zeros(3, 32, 32, dtype=torch.uint8), 10, "pictures"),
    ]
    figure, _ = draw_examples(SPEC, shown, SECTION)
    figure.draw_without_rendering()
    page, content = figure.bbox, figure.get_tightbbox()
    assert min(content.x0, content.y0) >= 0
    assert content.x1 * figure.dpi <= page.width + 1
    assert content.y1 * figure.dpi <= page.height + 1
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox())]
    assert not any(a.overlaps(b) for number, a in enumerate(boxes) for b in boxes[number + 1 :])
