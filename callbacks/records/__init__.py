"""What a run writes of itself beside its results: how its training ended, and which data it saw;
and how such files are read again.
"""
