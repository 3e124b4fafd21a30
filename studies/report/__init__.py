"""A study's report: what it asks for, its page, its files, and the copy that is fit to be
committed.
"""
