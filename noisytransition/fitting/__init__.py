"""Training in `fit`: defaults, checks, trainings, cross-fitting, progress."""
