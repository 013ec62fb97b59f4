"""File format of saved fits and fitted classifiers."""
