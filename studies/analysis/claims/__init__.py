"""A paper's claims, each tested on a study's finished runs. Imports what analysis may."""
