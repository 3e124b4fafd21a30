"""A metric is one entry: what is registered is computed and shown everywhere."""

import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import metrics
from core.errors import InputError
from lightning_modules.packed.pack_evaluation import mean_scores
from metrics import register, registered, registry
from metrics.calibrators import FORMS
from studies.tables.measures import MEASURES, measure
from tests.own_score import ROOT, documented_metric, own_score

TOGETHER = """
from metrics import register

@register(label="Spread of the top class", better="higher", every_epoch=True, unit="p", digits=2)
def spread(probs, target_probs):
    top = probs.max(-1).values
    return (top.max() - top.min()).item()  # a plain number does
"""


def pair(items: int = 23, classes: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(items)
    probs = torch.from_numpy(rng.dirichlet(np.ones(classes), items))
    votes = rng.multinomial(3, np.ones(classes) / classes, items)  # some classes have no vote
    return probs, torch.from_numpy(votes / 3)


def unchosen_by_hand(probs: torch.Tensor, target_probs: torch.Tensor) -> float:
    rows = zip(probs.numpy(), target_probs.numpy(), strict=True)
    return sum(target[probs.argmax()] == 0 for probs, target in rows) / len(probs)


def test_the_documented_metric_is_one_file_of_at_most_15_lines():
    assert len(documented_metric().splitlines()) <= 15


def test_a_file_in_the_folder_of_entries_is_found_after_the_standard_ones(tmp_path: Path):
    shutil.copytree(ROOT / "metrics", tmp_path / "metrics")
    (tmp_path / "metrics/entries/unchosen.py").write_text(documented_metric())
    (tmp_path / "metrics/entries/a_spread.py").write_text(TOGETHER)
    code = (
        f"import sys; sys.path.append({str(ROOT)!r}); import metrics; print(*metrics.registered())"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    names = found.stdout.split()
    assert [name for name in names if name not in ("spread", "unchosen")] == [*registered()]
    assert names.index("brier_uncertainty") < names.index("spread") < names.index("unchosen")


def test_an_own_score_is_part_of_every_test_and_of_every_epoch(tmp_path: Path):
    probs, target_probs = pair()
    with own_score(tmp_path, documented_metric() + TOGETHER):
        tested, validated = metrics.every_metric("test/"), metrics.mean_metrics("val/")
        for batch in zip(probs.split(7), target_probs.split(7), strict=True):
            tested.update(*batch)
            validated.update(*batch)
        top = probs.numpy().max(1)
        expected = {
            "unchosen": unchosen_by_hand(probs, target_probs),
            "spread": top.max() - top.min(),
        }
        assert 0 < expected["unchosen"] < 1
        for prefix, collection in (("test/", tested), ("val/", validated)):
            scores = collection.compute()
            for name, value in expected.items():
                assert scores[prefix + name].item() == pytest.approx(value, abs=1e-12)
        at_hand = metrics.every_score(probs, target_probs)
        assert {name: at_hand[name] for name in expected} == pytest.approx(expected, abs=1e-12)
        assert list(at_hand)[-2:] == ["unchosen", "spread"]
    assert not {"unchosen", "spread"} & registered().keys()


def test_a_pack_scores_each_member_as_if_it_were_alone(tmp_path: Path):
    probs, target_probs = pair()
    members = torch.stack([probs, target_probs, probs.flip(0)])
    with own_score(tmp_path, documented_metric() + TOGETHER):
        rows = mean_scores(members, target_probs)
        for row, table in zip(rows, members, strict=True):
            alone = metrics.mean_metrics("")
            alone.update(table, target_probs)
            assert row == pytest.approx({k: v.item() for k, v in alone.compute().items()})


def test_a_model_that_diverged_has_no_score_and_ends_nothing(tmp_path: Path):
    probs, target_probs = pair()
    probs[3] = math.nan
    with own_score(tmp_path, documented_metric() + TOGETHER):
        scores = metrics.mean_metrics("")
        scores.update(probs, target_probs)
        assert all(value.isnan() for value in scores.compute().values())
        members = torch.stack([probs, pair()[0]])
        diverged, sound = mean_scores(members, target_probs)
        assert all(map(math.isnan, diverged.values()))
        assert all(map(math.isfinite, sound.values()))
        with pytest.raises(InputError, match="probs has values that are not finite numbers"):
            metrics.every_score(probs, target_probs)


def test_what_is_no_distribution_never_reaches_an_own_function(tmp_path: Path):
    with own_score(tmp_path, TOGETHER):
        score = metrics.every_metric("")["spread"]
        score.update(*(50 * table for table in pair()))
        with pytest.raises(InputError, match=r"^probs does not sum to 1"):
            score.compute()


def test_tables_figures_and_strata_call_it_by_its_label(tmp_path: Path):
    assert measure("unchosen").arrow == ""
    known = list(MEASURES)
    with own_score(tmp_path, documented_metric() + TOGETHER):
        shown = measure("unchosen")
        assert shown.arrow == " ↓"
        assert shown.axis == "Top class that nobody chose, lower is better"
        assert measure("spread").axis == "Spread of the top class (p), higher is better"
        assert measure("spread_hlv").digits == 2
        forms = ["", "_nohlv", "_hlv", "_original", "_original_nohlv", "_original_hlv"]
        assert [measure(f"unchosen{form}").name for form in forms] == [
            f"Top class that nobody chose{words}"
            for words in (
                "",
                ", unanimous",
                ", not unanimous",
                ", original labels",
                ", original labels, unanimous",
                ", original labels, not unanimous",
            )
        ]
        assert MEASURES.keys() - set(known) == {
            f"{name}{form}"
            for name in ("unchosen", "spread")
            for form in [*forms, *(f"_{form}" for form in FORMS)]
        }
        assert len(MEASURES) == len(known) + 2 * (6 + len(FORMS))
        assert "  unchosen: Top class that nobody chose, lower is better" in (
            registry.scores_in_words()
        )
    assert list(MEASURES) == known


def test_parts_of_one_function_are_computed_once(monkeypatch: pytest.MonkeyPatch):
    calls = []
    standard = registered()
    original = standard["brier_resolution"].function

    def counted(*tables):
        calls.append(len(tables[0]))
        return original(*tables)

    for name, score in standard.items():
        if score.part:
            entry = registry.replace(score, function=counted)
            monkeypatch.setitem(registry._scores, name, entry)
    probs, target_probs = pair()
    metrics.every_score(probs, target_probs)
    collection = metrics.every_metric("")
    collection.update(probs, target_probs)
    collection.compute()
    assert calls == [23, 23]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("Unchosen", "a score cannot be named 'Unchosen'; its name must be lower-case letters"),
        ("loss", "a score cannot be named 'loss'; "),
        ("unchosen_hlv", "a score cannot be named unchosen_hlv: StratumScores and Calibrators"),
        ("kl_original", "a score cannot be named kl_original: StratumScores and Calibrators"),
        ("kl_dirichlet_votes", "a score cannot be named kl_dirichlet_votes: StratumScores and "),
        ("kl", "the score kl is registered twice, by metrics.per_item.kl and by "),
    ],
)
def test_a_name_that_would_be_mistaken_is_refused(name: str, sentence: str):
    before = registered()
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}"):
        register(label="Mine", name=name)(unchosen_by_hand)
    assert registered() == before


def test_a_cell_that_is_run_twice_registers_once(tmp_path: Path):
    with own_score(tmp_path, TOGETHER + TOGETHER.replace("Spread", "Range")):
        assert registered()["spread"].label == "Range of the top class"


@pytest.mark.parametrize(
    ("per_item", "body", "sentence"),
    [
        (
            True,
            "probs.max()",
            "the score odd gives a tensor of shape [] for 23 items; with per_item",
        ),
        (
            True,
            "probs",
            "the score odd gives a tensor of shape [23, 4] for 23 items; with per_item",
        ),
        (True, "0.5", "the score odd gives a float for 23 items; with per_item"),
        (
            False,
            "probs.max(-1).values",
            "the score odd gives a tensor of shape [23]; it must be one",
        ),
    ],
)
def test_a_function_of_another_shape_is_told(per_item, body, sentence, tmp_path: Path):
    code = "from metrics import register\n@register(label='Odd', per_item={})\ndef odd(probs, target_probs):\n    return {}\n"  # noqa: E501
    with (
        own_score(tmp_path, code.format(per_item, body), "odd"),
        pytest.raises(InputError, match=f"^{re.escape(sentence)}"),
    ):
        metrics.every_score(*pair())
