"""What finished runs say: statistics, claims, comparisons between networks.

Numbers only; nothing is drawn here. Imports all that is below studies, and of studies itself
neither launch nor figures.
"""
