"""One description of what a study's YAML may say: the reader, its checks and the reference page all
come from it.

Imports published numbers alone; `reference` imports everything that it describes.
"""
