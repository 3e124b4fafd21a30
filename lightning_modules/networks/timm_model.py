"""Any image model of the timm library, by name."""

from typing import Any

import torch
from torch import Tensor

from core.errors import InputError
from lightning_modules.networks.network import Network, check_images


class TimmModel(Network):
    """`--model.network TimmModel --model.network.name convnext_atto`; `pretrained` fetches weights
    from the hub.
    """

    def __init__(
        self, input_shape: tuple[int, ...], num_classes: int, name: str, pretrained: bool = False
    ):
        import timm  # takes half a second, which other networks need not wait for

        super().__init__()
        check_images(f"TimmModel ({name})", input_shape)
        if not timm.is_model(name):
            near = (
                ", ".join(timm.list_models(f"*{name.split('.')[0].split('_')[0]}*")[:5])
                or "see timm.list_models()"
            )
            raise InputError(f"timm has no model named {name}; it has for example: {near}.")
        self.model: Any = timm.create_model(
            name, pretrained=pretrained, num_classes=num_classes, in_chans=input_shape[0]
        )
        self.head = self.model.get_classifier()
        if not next(self.parameters()).is_meta:  # without memory not all models can be tried
            self._try(name, input_shape, num_classes)

    def _try(self, name: str, input_shape: tuple[int, ...], num_classes: int) -> None:
        """One image, before any training: models are made for images of some size, and not all of
        them have their classifier at the end.
        """
        try:
            with torch.no_grad():
                fits = self.eval()(torch.zeros(1, *input_shape)).shape == (1, num_classes)
        except (
            RuntimeError,
            AssertionError,
            AttributeError,
            IndexError,
            TypeError,
            ValueError,
        ) as error:  # theirs for shapes that do not fit
            reason = " ".join(str(error).split())[:160] or type(error).__name__
            raise InputError(
                f"timm's {name} does not take inputs of the shape {input_shape} ({reason}); "
                "choose another model or size."
            ) from error
        if not fits:
            raise InputError(
                f"timm's {name} has no classifier at its end that gives {num_classes} logits; "
                "choose another model."
            )
        self.train()

    def features(self, inputs: Tensor) -> Tensor:
        """What the model's own classifier is given."""
        return self.model.forward_head(self.model.forward_features(inputs), pre_logits=True)
