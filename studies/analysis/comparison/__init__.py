"""What sets networks apart that score alike: representations, loss barriers, kept comparisons.

Imports what analysis may.
"""
