"""Base classes of all classifiers."""
