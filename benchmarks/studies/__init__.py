"""Whole studies: planning, and their trainings from start to end; and what packs cost."""
