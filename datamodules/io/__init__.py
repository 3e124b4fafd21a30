"""From bytes to arrays: downloads, archives, images, idx and tables, each checked before it is
believed. Imports core alone.
"""
