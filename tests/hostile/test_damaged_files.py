"""Files of every format, damaged in every way that a seed gives: each ends in a result or in one
sentence, soon and in little memory.
"""

import time
from pathlib import Path

import pytest

from core.errors import InputError
from tests.hostile.damaged import TIMES, cases_of, try_damaged
from tests.hostile.mutations import PLAIN, mutated
from tests.hostile.outcomes import Hang, limits, outcome
from tests.hostile.readers import READERS, Reader
from tests.waiting import HANGS

BY_FORMAT = pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.format)


@BY_FORMAT
def test_a_damaged_file_ends_in_a_result_or_a_sentence(reader: Reader, tmp_path: Path):
    assert try_damaged(reader, tmp_path, seed=0, cases=cases_of(reader)).total() == cases_of(reader)


@pytest.mark.long
@BY_FORMAT
def test_many_more_damaged_files(reader: Reader, tmp_path: Path):
    assert try_damaged(reader, tmp_path, seed=1, cases=cases_of(reader, TIMES)).total() == cases_of(
        reader, TIMES
    )


def test_there_are_at_least_500_cases():
    assert sum(cases_of(reader) for reader in READERS) >= 500


def test_a_case_comes_back_by_its_number_and_differs_from_others():
    content = bytes(range(200))
    result = [mutated(content, 0, number) for number in range(100)]
    assert result == [mutated(content, 0, number) for number in range(100)]
    assert len({damaged for _, damaged in result}) > 80
    assert result[len(PLAIN) :] != [
        mutated(content, 1, number) for number in range(len(PLAIN), 100)
    ]


def test_what_is_neither_a_result_nor_a_sentence_is_seen():
    def says(message: str):
        raise InputError(message)

    def compute():
        while True:
            pass

    assert outcome(lambda: says("votes.csv has no rows."), "votes.csv") == "sentence"
    for message in ("votes.csv has no rows", "it has no rows."):
        with pytest.raises(AssertionError):
            outcome(lambda message=message: says(message), "votes.csv")
    with pytest.raises(KeyError):
        outcome(lambda: {}["votes"])
    with pytest.raises(MemoryError):
        outcome(lambda: bytearray(2**31))
    with pytest.raises(Hang), limits(seconds=0.05):
        compute()
    with pytest.raises(Hang), limits(waiting=0.05):
        time.sleep(HANGS)


def test_a_message_stays_one_line_whatever_it_quotes():
    error = str(
        InputError(
            f"votes.csv has the answer '\x1b[2J\n{'x' * 10_000}' in row 3; it must be yes or no."
        )
    )
    assert error.isprintable()
    assert len(error) < 1000
    assert error.startswith("votes.csv has the answer")
    assert error.endswith("it must be yes or no.")
