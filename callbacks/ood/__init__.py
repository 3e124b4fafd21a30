"""The mathematics behind `OODScores`: detectors, the pass that feeds them, and their picture.

No Trainer is known here. Imports what callbacks may, and how they draw.
"""
