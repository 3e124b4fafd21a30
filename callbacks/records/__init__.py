"""What a run writes of itself beside its results, and how such files are read again.

They say how its training ended, and which data it saw. Imports core, lightning_modules and
datamodules.
"""
