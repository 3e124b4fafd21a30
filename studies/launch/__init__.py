"""Runs that are to be done: on this machine, as packs, or on a Slurm cluster.

Imports plan and all that is below studies.
"""
