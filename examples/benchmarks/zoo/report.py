"""The page of a half's results."""


def report(half, path):
    """Write and print the page."""
