"""Properties that hold for any values at all: a table of votes is valid or refused, and what is
made of a valid one keeps its promises.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.errors import InputError
from core.plain_yaml import check_plain, load_plain
from corpora.annotation.aggregation import aggregate, correlations
from corpora.annotation.judgements import judgements_from_rows
from corpora.annotation.soft_digits_table import label_table, pixels, split_words
from datamodules import VoteTable
from datamodules.io.tables import read_table
from datamodules.votes import delivery as deliveries
from datamodules.votes.splitting import stratified_split
from studies.plan.study import Study
from studies.schema.options import options_of
from tests.hostile.outcomes import outcome

KEYS = set(options_of(Study))  # of a study's YAML
FEW = settings(
    max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
ANY_DTYPE = st.one_of(
    arrays.integer_dtypes(), arrays.unsigned_integer_dtypes(), arrays.floating_dtypes(), arrays.boolean_dtypes(), arrays.complex_number_dtypes(),  # noqa: E501
    arrays.datetime64_dtypes(), arrays.unicode_string_dtypes(), arrays.byte_string_dtypes(), st.just(np.dtype(object)),  # noqa: E501
)  # fmt: skip
ANY_ARRAY = ANY_DTYPE.flatmap(
    lambda dtype: arrays.arrays(
        dtype,
        arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        elements=st.none() if dtype.hasobject else None,
    )
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
NESTED = st.recursive(
    PLAIN | st.binary(max_size=5),
    lambda part: (
        st.lists(part, max_size=4) | st.dictionaries(st.text(max_size=8), part, max_size=4)
    ),
    max_leaves=12,
)
COUNTS = arrays.arrays(
    np.int64, st.tuples(st.integers(1, 12), st.integers(2, 5)), elements=st.integers(0, 9)
).filter(lambda table: (table.sum(1) > 0).all())


@FEW
@given(ANY_ARRAY | NESTED)
def test_votes_are_a_valid_table_or_refused(values: Any):
    for make in (VoteTable, VoteTable.from_probs):
        tables = []
        if (
            outcome(
                lambda make=make, tables=tables: tables.append(make(values, source="votes.npy")),
                "votes.npy",
            )
            == "result"
        ):
            (table,) = tables
            assert table.probs.shape == (len(table), table.num_classes)
            np.testing.assert_allclose(table.probs.sum(1), 1, atol=1e-9)
            assert (table.probs >= 0).all()
            assert np.isfinite(table.entropy).all()
            assert ((table.majority >= 0) & (table.majority < table.num_classes)).all()


DELIVERIES = [
    deliveries.SoftLabels(),
    deliveries.MajorityVote(),
    deliveries.LabelSmoothing(),
    deliveries.Multipass(),
    deliveries.DeterministicControl(),
    deliveries.StochasticLabelSampling(3),
    deliveries.ShuffledSLS(),
    deliveries.Mixup(),
]


@FEW
@given(COUNTS, st.sampled_from(DELIVERIES), st.integers(0, 2**32 - 1), st.integers(0, 10**6))
def test_targets_are_classes_that_have_votes(
    counts: np.ndarray, delivery: Any, seed: int, epoch: int
):
    targets = delivery.bind(VoteTable(counts), seed).targets(epoch)
    assert len(targets) == len(counts)
    if targets.is_floating_point():
        assert targets.shape == counts.shape
        torch.testing.assert_close(targets.sum(1), torch.ones(len(counts)), atol=1e-5, rtol=0)
        assert (targets >= 0).all()
    else:
        assert targets.dtype == torch.int64
        assert ((targets >= 0) & (targets < counts.shape[1])).all()
        if not isinstance(delivery, deliveries.ShuffledSLS):  # which takes the votes of other items
            assert (counts[np.arange(len(counts)), targets.numpy()] > 0).all()


@FEW
@given(
    st.lists(st.integers(-3, 3), max_size=40),
    st.lists(st.floats(), max_size=4) | st.integers(1, 5).map(lambda n: [1 / n] * n),
    st.integers(0, 99),
)
def test_splits_are_disjoint_and_complete_or_refused(
    strata: list[int], fractions: list[float], seed: int
):
    parts = []
    if (
        outcome(lambda: parts.extend(stratified_split(np.array(strata, int), fractions, seed)))
        == "result"
    ):
        assert sorted(np.concatenate(parts).tolist()) == list(range(len(strata)))
        assert all(len(part) for part in parts)


WORDS = (
    st.sampled_from(
        [
            "yes",
            "no",
            "unsure",
            "YES ",
            "",
            "nan",
            "0",
            "7",
            "7.0",
            "10",
            "-1",
            "1e400",
            "é",
            "\n",
            "x",
        ]
    )
    | NESTED
)


@FEW
@given(st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS, WORDS), max_size=8))
def test_judgements_of_any_words(rows: list[tuple]):
    columns = (
        dict(
            zip(
                ("annotator", "image", "label", "answer", "milliseconds"),
                map(list, zip(*rows, strict=True)),
                strict=True,
            )
        )
        if rows
        else {name: [] for name in ("annotator", "image", "label", "answer")}
    )
    outcome(lambda: aggregate(judgements_from_rows(columns, Path("raw.csv"))), "raw.csv")


@FEW
@given(
    arrays.arrays(np.int64, st.tuples(st.integers(1, 6), st.just(10)), elements=st.integers(0, 2)),
    st.integers(1, 3),
)
def test_aggregates_of_whole_judgements_are_distributions(answers: np.ndarray, images: int):
    annotator_probs, digits = np.indices(answers.shape)
    rows = {
        "annotator": annotator_probs.ravel(),
        "image": annotator_probs.ravel() % images,
        "label": digits.ravel(),
        "answer": np.array(["no", "unsure", "yes"])[answers.ravel()],
    }
    result = aggregate(
        judgements_from_rows(
            {name: values.tolist() for name, values in rows.items()}, Path("raw.csv")
        )
    )
    for labels in (result.equal, result.uncertainty):
        np.testing.assert_allclose(labels.sum(1), 1, atol=1e-12)
    assert ((result.mean_uncertainty >= 0) & (result.unsure_proportion <= 1)).all()
    assert ((result.majority >= 0) & (result.majority < 11)).all()
    between = correlations(result)
    assert np.isnan(between).all() or (np.abs(between[~np.isnan(between)]) <= 1 + 1e-9).all()


@FEW
@given(st.lists(NESTED, max_size=5))
def test_columns_of_soft_digits_of_any_values(values: list[Any]):
    outcome(lambda: label_table(values, "soft.parquet"), "soft.parquet")
    outcome(lambda: split_words(values, Path("soft.parquet")), "soft.parquet")
    outcome(lambda: pixels(values, Path("soft.parquet")), "soft.parquet")


@FEW
@given(
    st.binary(max_size=60) | st.text(max_size=60).map(str.encode),
    st.sampled_from([".csv", ".jsonl", ".parquet"]),
)
def test_tables_of_any_bytes(content: bytes, ending: str):
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"some{ending}"
        for head in (b"", b"a,b\n", b'{"a": 1, "b": '):
            path.write_bytes(head + content)
            outcome(lambda: read_table(path, ["a", "b"]), path.name)


YAML_VALUES = st.recursive(
    PLAIN,
    lambda part: (
        st.lists(part, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.integers(), part, max_size=4)
    ),
    max_leaves=10,
)


@FEW
@given(YAML_VALUES)
def test_what_pyyaml_writes_is_plain_and_read_again(value: Any):
    text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False)
    try:
        check_plain(text)
    except yaml.YAMLError:
        # a word that looks like a date, or one that it marked
        marked = "!!" in text or "&id" in text
        # control characters
        assert marked or any(
            escape in text for escape in ("\\x", "\\0", "\\a", "\\b", "\\e", "\\v", "\\f", "\\N")
        )
    else:
        assert repr(load_plain(text)) == repr(value) or "." in text or "e" in text


@FEW
@given(
    st.dictionaries(st.sampled_from(sorted(KEYS)), YAML_VALUES, max_size=4),
    st.sampled_from(sorted(KEYS)),
    YAML_VALUES,
)
def test_a_study_of_any_values(content: dict[str, Any], key: str, value: Any):
    whole = {
        "name": "small",
        "configs": ["configs/digits.yaml"],
        "grids": {"main": {"seed_everything": [0]}},
    }
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"
        for entries in (
            content,
            {**whole, key: value},
            {**whole, "grids": {"main": {"seed_everything": value}}},
            {**whole, "grids": {"main": value}},
        ):
            path.write_text(yaml.safe_dump(entries, allow_unicode=False))
            outcome(lambda: Study.load(path), "study.yaml")


@pytest.mark.parametrize("bad", [[0.5, np.nan], [np.inf], [], [1.5, -0.5]])
def test_fractions_that_are_none(bad: list[float]):
    with pytest.raises(InputError, match="the split fractions are"):
        stratified_split(np.zeros(10, int), bad, 0)
