"""All classifiers, small enough to train in a test, and versions that find clean rows for themselves."""

from noisytransition import CrossEntropyClassifier, FineTuningClassifier, MetaTransitionClassifier

CLASSIFIERS = [CrossEntropyClassifier, FineTuningClassifier, MetaTransitionClassifier]
NEED_CLEAN_DATA = [FineTuningClassifier, MetaTransitionClassifier]
WITH_TRANSITION = [MetaTransitionClassifier]


class SelfCleaned:
    """Takes the training rows for clean ones where none are given: what scikit-learn's checks can call."""

    def fit(self, X, y, **kwargs):
        return super().fit(X, y, **({"meta": (X, y)} | kwargs))


class SelfCleanedFineTuning(SelfCleaned, FineTuningClassifier):
    pass


class SelfCleanedMetaTransition(SelfCleaned, MetaTransitionClassifier):
    pass


def small(cls, **params):
    """A classifier that trains in a moment."""
    fast = {"max_epochs": 3, "batch_size": 64, "random_state": 0}
    if "optimizer" not in params:
        fast["optimizer__momentum"] = 0.9
    if cls is MetaTransitionClassifier:
        fast["warm_up_epochs"] = 2
    if cls is FineTuningClassifier:
        fast["fine_tuning_epochs"] = 2
    return cls(**(fast | params))
