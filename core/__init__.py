"""What everything may use and that knows nothing else: errors, randomness, atomic files, locks,
plain YAML, signals. Imports nothing of this project.
"""
