"""Which images to ask people about, and what they said.

It trains small networks. Imports core, metrics, lightning_modules, datamodules.votes and .io.
"""

# first of all: it imports SoftDigits, which rests on this package, and that cannot begin in the
# middle of a module here
import datamodules  # noqa: F401
