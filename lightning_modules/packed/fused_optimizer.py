"""One step of many members' weights: the fused kernels of torch's optimizers, without the
optimizers.
"""

from collections.abc import Callable

import torch

from core.compat import fused_adam, fused_adamw, fused_sgd


def fused_kernel(optimizer: torch.optim.Optimizer) -> Callable[..., None]:
    """The fused kernel of torch's optimizer, called with lists of tensors: its own bookkeeping
    would cost as much as a whole step.
    """
    options = optimizer.param_groups[0]
    if isinstance(optimizer, torch.optim.SGD):
        rest = {key: options[key] for key in ("momentum", "dampening", "nesterov", "maximize")}
        return lambda weights, gradients, one, two, steps, **own: fused_sgd(
            weights, gradients, one if rest["momentum"] else [], is_first_step=False, **rest, **own
        )
    kernel = fused_adamw if options.get("decoupled_weight_decay") else fused_adam
    rest = {
        "beta1": options["betas"][0],
        "beta2": options["betas"][1],
        **{key: options[key] for key in ("eps", "amsgrad", "maximize")},
    }
    return lambda weights, gradients, one, two, steps, **own: kernel(
        weights, gradients, one, two, [], [steps] * len(weights), **rest, **own
    )
