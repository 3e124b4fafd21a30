"""What follows a training while it goes on, and the mathematics behind `TrainingDynamics`.

Here is the seam between Lightning's hooks and packs. Imports what callbacks may.
"""
