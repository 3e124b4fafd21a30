"""OOD scores by the name that scripts rely on; they live in `callbacks.ood.detectors`."""

from callbacks.ood.detectors import *  # noqa: F403
