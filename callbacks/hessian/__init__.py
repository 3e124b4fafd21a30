"""The mathematics behind `HessianSpectrum`: products, Lanczos, eigenvalues, trace and density.

No Trainer is known here. Imports what callbacks may, and how they draw.
"""
