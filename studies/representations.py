"""Comparisons between networks by the name that scripts rely on; they live in
`studies.analysis.comparison.representations`.
"""

from studies.analysis.comparison.representations import *  # noqa: F403
