"""One file per dataset: where its files lie, and what they hold.

A config names its class by `datamodules`. Imports all of datamodules, and corpora.
"""
