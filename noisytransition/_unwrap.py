"""What is inside Pipelines and searches."""

from typing import Any


def inner_classifier(estimator: object) -> Any:
    """Last step of a Pipeline, best estimator of a search, however they are nested; else the estimator itself."""
    while True:
        if hasattr(estimator, "steps"):
            estimator = estimator.steps[-1][1]
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator
