"""What annotators said: the table of their votes, how it reaches the loss, how it is split, how far
people agree. Imports core alone.
"""

from datamodules.votes.table import VoteTable

__all__ = ["VoteTable"]
