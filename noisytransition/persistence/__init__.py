"""Files of fits that resume, and of fitted classifiers."""
