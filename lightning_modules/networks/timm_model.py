"""Any image model of the timm library, by name."""

from typing import Any

import timm
from torch import Tensor

from errors import InputError
from lightning_modules.networks.network import Network


class TimmModel(Network):
    """`--model.network TimmModel --model.network.name convnext_atto`; `pretrained` fetches weights from the hub."""

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, name: str, pretrained: bool = False):
        super().__init__()
        if not timm.is_model(name):
            near = ", ".join(timm.list_models(f"*{name.split('.')[0].split('_')[0]}*")[:5]) or "see timm.list_models()"
            raise InputError(f"timm has no model named {name}; it has for example: {near}.")
        self.model: Any = timm.create_model(name, pretrained=pretrained, num_classes=num_classes, in_chans=input_shape[0])
        self.head = self.model.get_classifier()

    def features(self, inputs: Tensor) -> Tensor:
        return self.model.forward_head(self.model.forward_features(inputs), pre_logits=True)
