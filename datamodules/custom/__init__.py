"""Your own votes: tables and items as users have them, and what `describe` says of any dataset.

Imports all of datamodules but datasets.
"""
