"""What looks at a model while or after it trains. Nothing here changes what is trained.

Imports core, metrics, lightning_modules and datamodules.
"""

from callbacks.data_cartography import DataCartography
from callbacks.epoch_scores import EpochScores
from callbacks.grad_cam import GradCAM
from callbacks.gradient_variance import GradientVariance
from callbacks.hessian_spectrum import HessianSpectrum
from callbacks.history import History
from callbacks.ood_scores import OODScores
from callbacks.post_hoc.calibrators import Calibrators
from callbacks.post_hoc.prediction_sets import PredictionSets
from callbacks.prediction_table import PredictionTable
from callbacks.results import Results
from callbacks.stratum_scores import StratumScores
from callbacks.training_dynamics import TrainingDynamics
from callbacks.uncertainty_figures import UncertaintyFigures

__all__ = [
    "Calibrators",
    "DataCartography",
    "EpochScores",
    "GradCAM",
    "GradientVariance",
    "HessianSpectrum",
    "History",
    "OODScores",
    "PredictionSets",
    "PredictionTable",
    "Results",
    "StratumScores",
    "TrainingDynamics",
    "UncertaintyFigures",
]
