"""An embedder of texts that writes down what it was given, so that tests can count; it can also
hang in the middle, to be killed there.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from datamodules.embedders import Embedder


@dataclass(frozen=True)
class RecordingEmbedder(Embedder):
    """Embeds "12 anything" as (12, 144, length); after each batch, its texts are in `log`, a line
    each.
    """

    log: str
    weights: str = "first"
    hang_at: str | None = None
    pause: float = 0.0
    dimensions: int = 3  # pyright: ignore

    name = "Recording (test)"

    @property
    def identity(self) -> dict[str, str]:
        return {"model": "recording", "weights": self.weights}

    def look_over(self, inputs) -> list[str]:
        return [f"{len(inputs)} texts were looked over."]

    def estimate(self, parts) -> str:
        return f"{sum(map(len, parts))} texts are to be embedded."

    def embed(self, batch) -> Tensor:
        while self.hang_at in batch:
            time.sleep(1)
        time.sleep(self.pause)
        numbers = torch.tensor([float(text.split()[0]) for text in batch])
        with open(self.log, "a") as log:
            log.write("".join(f"{text}\n" for text in batch))
        return torch.stack(
            [numbers, numbers**2, torch.tensor([float(len(text)) for text in batch])], dim=1
        )

    def embedded(self) -> list[str]:
        """All that was embedded so far, in order."""
        return Path(self.log).read_text().splitlines() if Path(self.log).exists() else []


def texts(items: int) -> list[str]:
    return [f"{number} text{'s' * (number % 5)}" for number in range(items)]
