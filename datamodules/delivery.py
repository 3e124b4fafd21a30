"""Deliveries by the name that configs, notebooks and scripts rely on; they live in
`datamodules.votes.delivery`.
"""

from datamodules.votes.delivery import *  # noqa: F403
