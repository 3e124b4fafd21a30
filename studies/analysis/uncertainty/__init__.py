"""How sure a study's numbers are, given that seeds, items and votes might have been others.

Imports what analysis may.
"""
