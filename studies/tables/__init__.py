"""The tables of a report as numbers, and as Markdown, CSV, LaTeX and HTML.

Imports all of studies but launch.
"""
