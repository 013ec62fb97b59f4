"""All classifiers, small enough to train in a test, and versions that find clean rows for themselves."""

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    GCEClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    MWNetClassifier,
    SModelClassifier,
    TRevisionClassifier,
)

NEED_CLEAN_DATA = [
    FineTuningClassifier,
    GLCClassifier,
    MWNetClassifier,
    MetaTransitionClassifier,
    EMTransitionClassifier,
]
WITHOUT_CLEAN_DATA = [CrossEntropyClassifier, GCEClassifier, ForwardClassifier, SModelClassifier, TRevisionClassifier]
CLASSIFIERS = WITHOUT_CLEAN_DATA + NEED_CLEAN_DATA
WITH_TRANSITION = [
    ForwardClassifier,
    GLCClassifier,
    SModelClassifier,
    TRevisionClassifier,
    MetaTransitionClassifier,
    EMTransitionClassifier,
]


class SelfCleaned:
    """Takes the training rows for clean ones where none are given: what scikit-learn's checks can call."""

    def fit(self, X, y, **kwargs):
        return super().fit(X, y, **({"meta": (X, y)} | kwargs))


def _self_cleaned(cls):
    """A class of this module's own: pickle must find it."""
    name = f"SelfCleaned{cls.__name__}"
    globals()[name] = type(name, (SelfCleaned, cls), {"__module__": __name__})
    return globals()[name]


SELF_CLEANED = [_self_cleaned(cls) for cls in NEED_CLEAN_DATA]

# the stages of each method's training
N_STAGES = {cls: 1 if cls in (CrossEntropyClassifier, GCEClassifier, MWNetClassifier) else 2 for cls in CLASSIFIERS}
N_STAGES[TRevisionClassifier] = 3
N_STAGES[EMTransitionClassifier] = 4


def small(cls, **params):
    """A classifier that trains in a moment."""
    fast = {"max_epochs": 3, "batch_size": 64, "random_state": 0}
    if "optimizer" not in params:
        fast["optimizer__momentum"] = 0.9
    if cls in WITH_TRANSITION:
        fast["warm_up_epochs"] = 2
    if cls is EMTransitionClassifier:
        fast |= {"cv": 2}
    if cls is FineTuningClassifier:
        fast["fine_tuning_epochs"] = 2
    return cls(**(fast | params))
