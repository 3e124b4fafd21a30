"""Many classifiers trained as one, each as if alone.

Imports core, metrics, the classifier and its networks.
"""

from lightning_modules.packed.packed_classifier import PackedClassifier

__all__ = ["PackedClassifier"]
