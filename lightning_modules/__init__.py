"""The classifier, its networks and its schedules. Imports core and metrics."""

from lightning_modules.classifier import AnnotatorClassifier, Prediction
from lightning_modules.schedules import CosineToEnd

__all__ = ["AnnotatorClassifier", "CosineToEnd", "Prediction"]
