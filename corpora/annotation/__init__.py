"""What people said of each image: their judgements, raw or simulated, and the labels they become.

Imports core, datamodules.votes and .io.
"""
