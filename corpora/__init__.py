"""Which images to ask people about, and what they said.

It trains small networks. Imports core, metrics, lightning_modules, datamodules.votes and .io.
"""
