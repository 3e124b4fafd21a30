"""Frozen models that turn images and texts into embeddings, by name.

`embedder.py` says what they share. Imports core and datamodules.io.
"""

from datamodules.embedders.efficientnet_lite import EfficientNetLite0
from datamodules.embedders.embedder import Embedder
from datamodules.embedders.openai_embedder import OpenAIEmbedder
from datamodules.embedders.sentence_embedder import SentenceEmbedder
from datamodules.embedders.timm_embedder import TimmEmbedder

__all__ = ["EfficientNetLite0", "Embedder", "OpenAIEmbedder", "SentenceEmbedder", "TimmEmbedder"]
