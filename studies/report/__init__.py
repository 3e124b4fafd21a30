"""A study's report: what it asks for, its page, its files, and a copy that is fit to be committed.

Imports all of studies but launch.
"""
