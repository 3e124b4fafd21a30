"""OpenAI's embeddings against a local server that answers like the API: rate limits, failures, bad
answers, and a key that stays secret.
"""

import logging
import traceback
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from core.errors import InputError
from datamodules.embedders import OpenAIEmbedder, openai_embedder
from datamodules.embedders.embeddings import embed_all
from datamodules.embedders.openai_embedder import TRIES
from tests.datamodules.embedders.openai_server import (
    OpenAIServer,
    break_off,
    drop,
    embedding,
    reply,
    status,
)

SECRET = "sk-proj-Very5ecret_Key-0123456789"
TEXTS = [f"text number {number}" for number in range(23)]


@pytest.fixture
def server():
    with OpenAIServer() as http:
        yield http
        http.shutdown()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that would have been waited."""
    waits: list[float] = []
    monkeypatch.setattr(openai_embedder, "sleep", waits.append)
    return waits


@pytest.fixture
def embedder(
    server: OpenAIServer, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> OpenAIEmbedder:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    return OpenAIEmbedder(base_url=server.url, dimensions=6, batch_size=4)


def truth(texts: list[str], dimensions: int = 6) -> torch.Tensor:
    return torch.stack([torch.from_numpy(embedding(text, dimensions)) for text in texts])


def test_texts_go_out_in_batches_and_come_back_in_their_order(
    embedder: OpenAIEmbedder, server: OpenAIServer
):
    assert torch.equal(embedder.embed(TEXTS), truth(TEXTS))
    assert [len(asked["input"]) for asked in server.asked] == [4, 4, 4, 4, 4, 3]
    assert {(asked["path"], asked["model"], asked["dimensions"]) for asked in server.asked} == {
        ("/v1/embeddings", "text-embedding-3-large", 6)
    }
    assert {asked["key"] for asked in server.asked} == {f"Bearer {SECRET}"}


def test_the_papers_model_is_the_default():
    embedder = OpenAIEmbedder()
    assert (embedder.name, embedder.dimensions) == ("OpenAI text-embedding-3-large", 3072)
    assert embedder.base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "failure", [status(429), status(500), status(503), drop, break_off, reply(b"no json")]
)
def test_a_failure_is_tried_again(
    embedder: OpenAIEmbedder, server: OpenAIServer, slept: list[float], failure
):
    server.plan = [failure, failure]
    assert torch.equal(embedder.embed(TEXTS[:4]), truth(TEXTS[:4]))
    assert len(server.asked) == 3
    assert len(slept) == 2
    assert 0.5 <= slept[0] <= 1
    assert 1 <= slept[1] <= 2


def test_the_server_decides_how_long_to_wait(
    embedder: OpenAIEmbedder, server: OpenAIServer, slept: list[float]
):
    server.plan = [
        status(429, Retry_After="7"),
        status(503, Retry_After="0.25"),
        status(429, Retry_After="Fri, 31 Dec 2027 23:59:59 GMT"),
    ]
    embedder.embed(TEXTS[:1])
    assert slept[:2] == [7, 0.25]
    assert 2 <= slept[2] <= 4, "a date is not understood, so the own pace holds"


def test_waits_double_up_to_a_minute_and_depend_on_the_seed_alone(
    embedder: OpenAIEmbedder, server: OpenAIServer, slept: list[float]
):
    for seed in (0, 0, 1):
        server.plan = [status(500)] * TRIES
        with pytest.raises(
            InputError,
            match=rf"gave no embeddings in {TRIES} tries, the last: status 500; what is done is "
            r"kept",
        ):
            replace(embedder, seed=seed).embed(TEXTS[:1])
    waits = TRIES - 1
    assert len(server.asked) == 3 * TRIES
    assert slept[:waits] == slept[waits : 2 * waits] != slept[2 * waits :]
    bounds = [min(60, 2.0**attempt) for attempt in range(waits)]
    assert all(bound / 2 <= wait <= bound for wait, bound in zip(slept, bounds, strict=False))


def test_nobody_listens(embedder: OpenAIEmbedder, server: OpenAIServer):
    gone = replace(embedder, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(
        InputError,
        match=r"http://127.0.0.1:9/v1 gave no embeddings in 8 tries, the last: no whole answer "
        r"\(ConnectionError\)",
    ):
        gone.embed(TEXTS[:1])


def test_given_up_in_the_middle_and_continued_with_nothing_paid_twice(
    embedder: OpenAIEmbedder, server: OpenAIServer, tmp_path: Path, capsys
):
    server.plan = [None, status(429, Retry_After="1"), None, None, *[status(502)] * TRIES]
    with pytest.raises(InputError, match="what is done is kept, so start again later"):
        embed_all(embedder, TEXTS, tmp_path, chunk=4)
    assert server.served == TEXTS[:12]
    assert torch.equal(embed_all(embedder, TEXTS, tmp_path, chunk=4), truth(TEXTS))
    assert server.served == TEXTS, "something was paid twice"
    message = capsys.readouterr().out
    assert (
        "OpenAI text-embedding-3-large: 23 texts, about 78 tokens, less than $0.01 at $0.13 per "
        "million tokens." in message
    )
    assert "OpenAI text-embedding-3-large: 11 texts, about 38 tokens" in message, (
        "the second estimate is of what was left"
    )
    assert f"{server.url}: status 429; trying again in 1 s (2 of {TRIES} tries)" in message


def test_the_estimate_comes_before_the_first_request(
    embedder: OpenAIEmbedder, server: OpenAIServer, tmp_path: Path, capsys
):
    server.plan = [status(401)]
    with pytest.raises(InputError):
        embed_all(replace(embedder, dollars=2e5), TEXTS, tmp_path)
    assert "about 78 tokens, about $15.60 at $200000 per million tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            status(400, "input 3 is strange"),
            r"refused a request \(status 400\): .*input 3 is strange",
        ),
        (status(404), r"refused a request \(status 404\)"),
        (
            status(401, f"Incorrect API key provided: {SECRET}"),
            r"refused the key in OPENAI_API_KEY \(status 401\); set one that may use",
        ),
        (status(403), r"refused the key in OPENAI_API_KEY \(status 403\)"),
        (status(429, "insufficient_quota"), "the account of this key has no credit left"),
        (status(429, Retry_After="86400"), "asks for 86,400 s of patience"),
        (status(307, Location="http://127.0.0.1:9/elsewhere"), r"status 307"),
        (
            reply({"data": [{"index": 0, "embedding": "AAAAAA=="}]}),
            "answered 4 texts with 1 embeddings of 1 numbers; text-embedding-3-large has 6",
        ),
        (
            reply({"data": [{"index": i, "embedding": "AAAAAAAAAAA="} for i in range(4)]}),
            "4 embeddings of 2 numbers",
        ),
        (
            reply({"data": [{"index": i, "embedding": "A"} for i in range(4)]}),
            "something else than embeddings",
        ),
        (reply({"message": "welcome"}), "something else than embeddings"),
        (reply([]), "something else than embeddings"),
    ],
)
def test_what_trying_again_cannot_mend_ends_at_once(
    embedder: OpenAIEmbedder, server: OpenAIServer, slept: list[float], answer, message: str
):
    server.plan = [answer]
    with pytest.raises(InputError, match=message):
        embedder.embed(TEXTS[:4])
    assert len(server.asked) == 1
    assert slept == []


def test_without_a_key_nothing_is_sent_and_a_filled_cache_needs_none(
    embedder: OpenAIEmbedder, server: OpenAIServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = embed_all(embedder, TEXTS, tmp_path)
    server.asked.clear()
    for absent in ("", "  "):
        monkeypatch.setenv("OPENAI_API_KEY", absent)
        with pytest.raises(
            InputError,
            match="OPENAI_API_KEY is not set; put your OpenAI key into that environment variable",
        ):
            embed_all(embedder, TEXTS[:3], tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert torch.equal(embed_all(embedder, TEXTS, tmp_path), first)
    assert server.asked == []


def test_the_model_its_dimensions_and_its_address_have_caches_of_their_own(
    embedder: OpenAIEmbedder,
):
    others = [
        replace(embedder, model="text-embedding-3-small"),
        replace(embedder, dimensions=5),
        replace(embedder, base_url="http://other/v1"),
    ]
    assert len({str(other.identity) for other in [embedder, *others]}) == 4
    assert replace(embedder, batch_size=9, seed=3, dollars=1.0).identity == embedder.identity


@pytest.mark.parametrize(
    "plan",
    [
        [status(400, f"you sent {SECRET}")],
        [status(400, f"you sent {SECRET[:12]}*****{SECRET[-4:]}")],
        [status(401, f"Incorrect API key provided: {SECRET}")],
        [status(500, SECRET)] * TRIES,
        [drop] * TRIES,
        [break_off] * TRIES,
        [reply({"message": SECRET})],
        [],
    ],
)
@pytest.mark.parametrize(
    "key", [SECRET, SECRET + "\n", SECRET + " x", SECRET + "\nX: y", SECRET + "ü"]
)
def test_the_key_is_in_no_output_log_error_or_file(
    embedder: OpenAIEmbedder,
    server: OpenAIServer,
    plan: list,
    key: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys,
    caplog,
):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    server.plan, result = list(plan), ""
    with caplog.at_level(logging.DEBUG):
        try:
            embed_all(embedder, TEXTS, tmp_path)
        except InputError:
            result = traceback.format_exc()
    assert (result != "") == bool(plan or key.strip() != SECRET)
    printed = capsys.readouterr()
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for message in (
        result,
        printed.out,
        printed.err,
        caplog.text,
        repr(embedder),
        str(embedder.identity),
        files.decode(errors="replace"),
    ):
        assert "Very5ecret" not in message
        assert SECRET[-4:] not in message
    assert all(asked["key"] == f"Bearer {SECRET}" for asked in server.asked)


def test_a_password_file_does_not_replace_the_key(
    embedder: OpenAIEmbedder, server: OpenAIServer, tmp_path: Path, monkeypatch
):
    """The HTTP library would send what .netrc holds for a host instead of the header that it was
    given.
    """
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login someone password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    embedder.embed(TEXTS[:1])
    assert server.asked[0]["key"] == f"Bearer {SECRET}"


def test_an_empty_text_is_refused_before_anything_is_sent(
    embedder: OpenAIEmbedder, server: OpenAIServer, tmp_path: Path
):
    with pytest.raises(InputError, match="row 1 of the texts holds nothing to embed"):
        embed_all(embedder, ["fine", " "], tmp_path)
    assert server.asked == []


def test_no_request_holds_more_than_the_api_takes(embedder: OpenAIEmbedder, server: OpenAIServer):
    replace(embedder, batch_size=256).embed(["b" * 8_000] * 80)
    assert [len(asked["input"]) for asked in server.asked] == [37, 37, 6]
    assert all(sum(map(len, asked["input"])) <= 300_000 for asked in server.asked)
