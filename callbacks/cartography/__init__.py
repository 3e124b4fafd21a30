"""What is behind `DataCartography`: the records of each epoch, and the map as a picture.

No Trainer is known here. Imports what callbacks may, and how they draw.
"""
