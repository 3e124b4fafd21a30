"""The processes of one run on several devices: how they start, which signals they hear, and that
they end together.
"""
