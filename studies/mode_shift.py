"""The mode-shift control by the name that scripts rely on; it lives in
`studies.analysis.mode_shift`.
"""

from studies.analysis.mode_shift import *  # noqa: F403
