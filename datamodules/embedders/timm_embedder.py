"""Any pretrained image model of the timm library, by name.

`vit_small_patch14_dinov2` is DINOv2-small.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from torch import Tensor, nn

from core.errors import InputError
from datamodules.embedders.image_embedder import ImageEmbedder
from datamodules.embedders.weights import hub_folder
from datamodules.io.files import sha256


@dataclass(frozen=True)
class TimmEmbedder(ImageEmbedder):
    """The features that the model's own head would see.

    That is the class token of DINOv2, and pooled features of a convolutional network.

    Weights come from the hub, or from the model's `.safetensors` file where `weights` names it.
    `image_size` is the side of the images that the model sees; where none is given it is the
    model's own (518 for DINOv2, which is slow without a GPU).
    """

    model: str = "vit_small_patch14_dinov2.lvd142m"
    image_size: int | None = None
    weights: str | None = None

    def __post_init__(self):
        import timm  # takes half a second, which other embedders need not wait for

        if not timm.is_model(self.model):
            family = self.model.split(".")[0].split("_")[0]
            near = ", ".join(timm.list_models(f"*{family}*")[:5]) or "see timm.list_models()"
            raise InputError(f"timm has no model named {self.model}; it has for example: {near}.")
        if self.weights is not None and (
            not self.weights.endswith(".safetensors") or not Path(self.weights).is_file()
        ):
            raise InputError(
                f"TimmEmbedder's weights is {self.weights}; it must be a .safetensors file."
            )

    @property
    def name(self) -> str:
        """The model's name in timm, and the side of the images it sees."""
        return f"{self.model} (timm), {self.side} px"

    @cached_property
    def identity(self) -> dict[str, str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """With a digest of the file of weights, which is taken once."""
        return {
            "model": f"timm {self.model}, before the head",
            "weights": sha256(self._file),
            "preprocessing": self.preprocessing,
        }

    @property
    def dimensions(self) -> int:
        """What the model's head takes; loads the model."""
        return int(self.network.head_hidden_size)  # pyright: ignore[reportArgumentType]

    @property
    def side(self) -> int:
        """`image_size`, or the size of the model's training."""
        return self.image_size or self._config.input_size[-1]

    @property
    def mean(self) -> tuple[float, ...]:
        """That of the model's training."""
        return self._config.mean

    @property
    def std(self) -> tuple[float, ...]:
        """That of the model's training."""
        return self._config.std

    @property
    def _config(self) -> Any:
        from timm import get_pretrained_cfg

        return get_pretrained_cfg(self.model)

    @cached_property
    def _file(self) -> Path:
        if self.weights is not None:
            return Path(self.weights)
        repository = self._config.hf_hub_id
        if repository is None:
            raise InputError(
                f"timm has no pretrained weights for {self.model}; name a .safetensors file of "
                "them as weights."
            )
        otherwise = "fetch its model.safetensors by another way and name that file as weights"
        return hub_folder(repository, otherwise) / "model.safetensors"

    @cached_property
    def network(self) -> nn.Module:
        """Raises an `InputError` where weights, model and size do not fit together."""
        from timm import create_model

        fixed = self.image_size and self._config.fixed_input_size
        size: dict[str, Any] = {"img_size": self.image_size} if fixed else {}
        overlay = {"file": str(self._file)}
        # With its own head: without it timm would accept a file of another model and leave weights
        # at random.
        try:
            network = create_model(
                self.model, pretrained=True, pretrained_cfg_overlay=overlay, **size
            )
        except (RuntimeError, AssertionError, KeyError, OSError, SafetensorError) as error:
            raise InputError(
                f"{self._file} and {self.side} pixels do not fit timm's {self.model}; give it its "
                "own weights and size."
            ) from error
        patch = getattr(getattr(network, "patch_embed", None), "patch_size", (1,))[0]
        if self.side % patch:
            raise InputError(
                f"TimmEmbedder's image_size is {self.side}; {self.model} takes multiples of "
                f"{patch}, the side of its patches."
            )
        return network.eval()

    def features(self, images: Tensor) -> Tensor:
        """What the model's head would see."""
        network: Any = self.network
        return network.forward_head(network.forward_features(images), pre_logits=True)
