"""What OpenAI's models take at once: texts cut at a token, said how, and requests of
bounded size.
"""

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError
from datamodules.embedders import OpenAIEmbedder
from datamodules.embedders.openai_limits import (
    MOST_TOKENS_PER_REQUEST,
    cut_to_limit,
    requests_within_limits,
)


@pytest.fixture
def tokenizer(monkeypatch: pytest.MonkeyPatch):
    """The real tokenizer with a vocabulary of single bytes and "aa", because the published one
    would have to be fetched.
    """
    tiktoken = pytest.importorskip(
        "tiktoken", reason="the tokenizer is not installed (extra `openai`)"
    )
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"aa": 256}
    encoding = tiktoken.Encoding(
        "bytes", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 300}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", {"cl100k_base": encoding}.__getitem__)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("short", "short"),
        ("b" * 8_192, "b" * 8_192),
        ("b" * 8_193, "b" * 8_000),
        ("a" * 16_384, "a" * 16_384),  # 8,192 tokens of two bytes
        ("a" * 16_386, "a" * 16_000),
        ("<|endoftext|>" + "b" * 9_000, "<|endoftext|>" + "b" * 7_987),  # nothing special in a text
        # the last token kept is half a letter, which is left out
        (
            "b" + "é" * 5_000,
            "b" + "é" * 3_999,
        ),
    ],
)
def test_a_text_is_cut_at_a_token_and_only_if_it_is_too_long(tokenizer, text: str, kept: str):
    fitting, _ = cut_to_limit(["first", text])
    assert fitting == ["first", kept]


def test_how_many_were_cut_is_said(tokenizer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert OpenAIEmbedder().look_over(["short", "a" * 9_000]) == []
    assert OpenAIEmbedder().look_over(["short", "b" * 9_000, "a" * 9_000, "b" * 20_000]) == [
        "2 of 4 texts are longer than OpenAI text-embedding-3-large takes: each was cut to its "
        "first 8,000 tokens."
    ]


def test_a_long_text_without_the_tokenizer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(
        InputError,
        match=r"row 1 of the texts may be too long, and the tokens cannot be counted .*openai",
    ):
        cut_to_limit(["short", "b" * 8_193])


@given(st.lists(st.integers(1, 400_000), max_size=30), st.integers(1, 10))
def test_requests_hold_every_text_once_in_order_and_never_too_much(
    sizes: list[int], batch_size: int
):
    texts = ["b" * size for size in sizes]
    parts = [texts[part] for part in requests_within_limits(texts, batch_size)]
    assert [text for part in parts for text in part] == texts
    assert all(1 <= len(part) <= batch_size for part in parts)
    assert all(len(part) == 1 or sum(map(len, part)) <= MOST_TOKENS_PER_REQUEST for part in parts)
    for part, following in pairwise(parts):  # and no request is cut for nothing
        assert (
            len(part) == batch_size
            or sum(map(len, part)) + len(following[0]) > MOST_TOKENS_PER_REQUEST
        )
