"""How callbacks draw: when, with whose words, and the panel of Grad-CAM.

Imports core and metrics.
"""
