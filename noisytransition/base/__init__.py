"""The face of all classifiers: parameters, fit, predictions, and what follows from T."""
