"""The mathematics behind `HessianSpectrum`: products, Lanczos, eigenvalues, trace and density.

No Trainer is known here.
"""
