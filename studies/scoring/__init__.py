"""`cli.py score`: anybody's predictions judged by votes, without a training.

It stands in studies because it shows what it finds by the tables, figures and pages of reports.
Imports what studies may import.
"""
