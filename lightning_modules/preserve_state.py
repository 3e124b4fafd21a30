"""Look at a module without leaving a trace."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn


@contextmanager
def preserve_state(module: nn.Module) -> Iterator[None]:
    """Eval mode with gradients enabled inside; afterwards modes, gradients and every global random
    state are what they were.

    >>> layer = nn.Dropout().train()
    >>> with preserve_state(layer):
    ...     layer.training
    False
    >>> layer.training
    True
    """
    modes = [(part, part.training) for part in module.modules()]
    gradients = [
        (parameter, parameter.grad, parameter.requires_grad) for parameter in module.parameters()
    ]
    devices = sorted({tensor.device.index or 0 for tensor in module.parameters() if tensor.is_cuda})
    python_state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices), torch.inference_mode(False), torch.enable_grad():
        module.eval()
        for parameter, _, _ in gradients:
            parameter.grad = None
        try:
            yield
        finally:
            for part, training in modes:
                part.training = training
            for parameter, gradient, wanted in gradients:
                parameter.grad, parameter.requires_grad = gradient, wanted
            random.setstate(python_state)
            np.random.set_state(numpy_state)  # noqa: NPY002
