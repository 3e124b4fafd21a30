"""What looks at a model while or after it trains. Nothing here changes what is trained."""

from callbacks.prediction_table import PredictionTable
from callbacks.results import Results
from callbacks.uncertainty_figures import UncertaintyFigures

__all__ = ["PredictionTable", "Results", "UncertaintyFigures"]
