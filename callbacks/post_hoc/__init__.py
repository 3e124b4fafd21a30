"""What is fitted to a trained model's predictions on held-out items: calibrators and prediction
sets.

Imports what callbacks imports.
"""
