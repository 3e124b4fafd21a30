"""What people said of each image: their judgements, raw or simulated, and the labels that these
become.
"""
