"""One call of fit: defaults, checks, trainings, folds, progress."""
