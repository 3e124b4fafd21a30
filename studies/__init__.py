"""Many runs as one thing: plan, launch, analysis, figures, tables, report.

Imports everything but cli.
"""
