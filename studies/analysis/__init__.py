"""What finished runs say: statistics, claims, comparisons between networks.

Numbers only; nothing is drawn here.
"""
