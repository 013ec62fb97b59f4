"""X, y and clean data in: read, checked, encoded."""
