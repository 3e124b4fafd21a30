"""What follows a training while it goes on: the seam between Lightning's hooks and packs, and what
is behind `TrainingDynamics`.
"""
