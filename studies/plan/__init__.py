"""From a study's YAML to its runs: grids, selections, packs, and what all of it will cost.

Imports all that is below studies.
"""
