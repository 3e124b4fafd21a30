"""OpenAI's text embeddings over HTTP, with patience for rate limits and failures.

The key is kept nowhere.
"""

import base64
import os
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from time import sleep
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from core.errors import InputError
from core.randomness import generator
from datamodules.embedders.embedder import Embedder, Inputs
from datamodules.embedders.openai_limits import cut_to_limit, requests_within_limits
from datamodules.embedders.texts import check_texts

if TYPE_CHECKING:
    from requests import PreparedRequest, Response

KEY = "OPENAI_API_KEY"
BYTES_PER_TOKEN = 4  # of English text, about; only for the estimate
TRIES = 8  # of one request
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0  # seconds; doubled from try to try
# seconds that a server may ask us to wait; beyond that it is better to come back another day
LONGEST_ASKED = 600.0
TIMEOUT = 60.0  # seconds without an answer


@dataclass(frozen=True)
class OpenAIEmbedder(Embedder):
    """text-embedding-3-large, the papers' text embedder.

    The key comes from the environment, when a request is sent and not before.

    `dollars` is the price of a million tokens, for the estimate that is printed before anything is
    sent: 0.13 for text-embedding-3-large as published in 2025. Prices change. `seed` is that of the
    jitter between tries. The service keeps no hash of its weights: the cache is named by the model,
    its dimensions and the address, and is the record of what was answered.

    >>> OpenAIEmbedder().estimate([["four"] * 1_000_000])
    'OpenAI text-embedding-3-large: 1,000,000 texts, about 1,000,000 tokens, about $0.13 at $0.13
    per million tokens.'
    """

    model: str = "text-embedding-3-large"
    dimensions: int = 3072  # pyright: ignore[reportIncompatibleMethodOverride]
    batch_size: int = 256
    base_url: str = "https://api.openai.com/v1"
    dollars: float = 0.13
    seed: int = 0

    @property
    def name(self) -> str:
        """The service and its model."""
        return f"OpenAI {self.model}"

    @property
    def identity(self) -> dict[str, str]:
        """With the address in place of a digest: the service shows no weights."""
        return {
            "model": self.model,
            "weights": self.base_url,
            "preprocessing": f"{self.dimensions} dimensions",
        }

    def look_over(self, inputs: Inputs) -> list[str]:
        """Raises an `InputError` without a key; says how many texts are cut."""
        _key()
        texts = check_texts(inputs, self.name)
        fitting, most = cut_to_limit(texts)
        cut = sum(map(str.__ne__, texts, fitting))
        if not cut:
            return []
        return [
            f"{cut:,} of {len(texts):,} texts are longer than {self.name} takes: each was cut "
            f"to its first {most:,} tokens."
        ]

    def estimate(self, parts: Iterable[Inputs]) -> str | None:
        """Texts, tokens and dollars, printed before anything is sent."""
        sizes = [len(text.encode()) for part in parts for text in part]  # pyright: ignore[reportAttributeAccessIssue]
        tokens = sum(sizes) / BYTES_PER_TOKEN
        cost = tokens * self.dollars / 1e6
        sum_of_money = f"about ${cost:,.2f}" if cost >= 0.01 else "less than $0.01"
        return (
            f"{self.name}: {len(sizes):,} texts, about {tokens:,.0f} tokens, {sum_of_money} at "
            f"${self.dollars:g} per million tokens."
        )

    def embed(self, batch: Inputs) -> Tensor:
        """In as many requests as the service's limits ask for."""
        assert isinstance(batch, list)
        texts, _ = cut_to_limit(batch)
        parts = requests_within_limits(texts, self.batch_size)
        return torch.from_numpy(np.concatenate([self._ask(texts[part]) for part in parts]))

    def _ask(self, texts: list[str]) -> np.ndarray:
        """One request, tried again after rate limits, server errors and dropped connections."""
        import requests

        asked = {
            "model": self.model,
            "input": texts,
            "dimensions": self.dimensions,
            "encoding_format": "base64",
        }
        why = ""
        for attempt in range(TRIES):
            wait = self._wait(texts[0], attempt)
            try:
                answer = requests.post(
                    f"{self.base_url}/embeddings",
                    json=asked,
                    auth=_sign,
                    timeout=TIMEOUT,
                    allow_redirects=False,
                )
                if answer.status_code == 200:
                    return self._vectors(answer.json(), len(texts))
            except requests.RequestException as error:  # also an answer that broke off
                why = f"no whole answer ({type(error).__name__})"
            else:
                why = self._refusal(answer)
                wait = _asked_wait(answer) or wait
            if attempt + 1 < TRIES:
                print(
                    f"{self.base_url}: {why}; trying again in {wait:.0f} s ({attempt + 2} of "
                    f"{TRIES} tries)"
                )
                sleep(wait)
        raise InputError(
            f"{self.base_url} gave no embeddings in {TRIES} tries, the last: {why}; what is done "
            "is kept, so start again later."
        )

    def _wait(self, text: str, attempt: int) -> float:
        """Seconds before the next try: doubled each time.

        Jitter keeps many processes from coming back at once.
        """
        rng = generator(self.seed, "openai-wait", zlib.crc32(text.encode()), attempt)
        jitter = rng.uniform(0.5, 1)
        return min(LONGEST_WAIT, FIRST_WAIT * 2**attempt) * jitter

    def _refusal(self, answer: "Response") -> str:
        """Why a request failed; raises an `InputError` where another try would be useless."""
        code = answer.status_code
        if code in (401, 403):  # nothing of the answer is shown, because it may quote the key
            raise InputError(
                f"{self.base_url} refused the key in {KEY} (status {code}); set one that may use "
                f"{self.model}."
            )
        message = _message(answer)
        if "insufficient_quota" in message:
            raise InputError(
                f"{self.base_url}: the account of this key has no credit left; what is done is "
                "kept, so start again with credit."
            )
        if code not in (408, 409, 429) and code < 500:
            raise InputError(f"{self.base_url} refused a request (status {code}): {message}")
        wait = _asked_wait(answer)
        if wait > LONGEST_ASKED:
            raise InputError(
                f"{self.base_url} asks for {wait:,.0f} s of patience; what is done is kept, so "
                "start again then."
            )
        return f"status {code}"

    def _vectors(self, answer: dict, items: int) -> np.ndarray:
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors = [
                np.frombuffer(base64.b64decode(row["embedding"]), dtype="<f4") for row in rows
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{self.base_url} answered with something else than embeddings; is it the address "
                "of an OpenAI API?"
            ) from error
        sizes = {len(vector) for vector in vectors}
        if [row["index"] for row in rows] != list(range(items)) or sizes != {self.dimensions}:
            lengths = ", ".join(sorted(map(str, sizes)))
            raise InputError(
                f"{self.base_url} answered {items} texts with {len(rows)} embeddings of {lengths} "
                f"numbers; {self.model} has {self.dimensions} each."
            )
        return np.stack(vectors)


def _key() -> str:
    key = os.environ.get(KEY, "").strip()
    if not key:
        raise InputError(f"{KEY} is not set; put your OpenAI key into that environment variable.")
    if not re.fullmatch(r"[!-~]+", key):  # the HTTP library would quote it in its complaint
        raise InputError(f"{KEY} holds characters that cannot be sent; set it to the key alone.")
    return key


def _sign(request: "PreparedRequest") -> "PreparedRequest":
    request.headers["Authorization"] = f"Bearer {_key()}"
    return request


def _message(answer: "Response") -> str:
    """What the server says, cut to a sentence and without anything that looks like a key."""
    message = " ".join(answer.text.split())[:300].replace(_key(), "…")
    return re.sub(r"sk-[\w*-]+", "sk-…", message)


def _asked_wait(answer: "Response") -> float:
    """The seconds of a Retry-After header; 0 where there is none, or a date."""
    asked = answer.headers.get("Retry-After", "")
    return float(asked) if re.fullmatch(r"\d+(\.\d+)?", asked) else 0.0
