"""Validate and encode X, y and clean data."""
