"""Learning-rate schedules that need to know how long the run is.

All of torch's own can be named in a config as well.
"""

from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR


class CosineToEnd(CosineAnnealingLR):
    """Cosine annealing to 0 over the whole run, however long `trainer.max_epochs` makes it.

    torch's CosineAnnealingLR wants the length spelled out a second time, and turns up again if it
    is forgotten when max_epochs changes. `AnnotatorClassifier.configure_optimizers` fills it in.
    """

    def __init__(self, optimizer: Optimizer):
        super().__init__(optimizer, T_max=1)
