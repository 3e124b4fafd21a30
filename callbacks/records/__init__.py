"""What a run writes of itself beside its results, and how such files are read again.

They say how its training ended, which data it saw, and what its scores are worth. Imports core,
metrics, lightning_modules and datamodules.
"""
