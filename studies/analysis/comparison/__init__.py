"""What sets networks apart that score alike: representations, loss barriers, and what is kept of
such comparisons.
"""
