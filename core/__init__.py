"""What everything may use: errors, randomness, atomic files, locks, plain YAML, signals.

Imports nothing else of this project.
"""
