"""One run: the LightningCLI subclass, its configuration, identity and checkpoints.

Imports all but studies and cli.
"""
