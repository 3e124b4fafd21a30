"""The processes of one run on several devices.

How they start, which signals they hear, and that they end together. Imports core alone.
"""
