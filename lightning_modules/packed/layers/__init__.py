"""The layers at one depth of many networks as one, made for the CPU: forward and backward by hand,
without autograd.

Imports core and the rest of `lightning_modules`.
"""
