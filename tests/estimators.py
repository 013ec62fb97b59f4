"""All classifiers, with settings for fast tests, and variants that create their own clean samples."""

import numpy as np
import page_methods
from sklearn.utils import _safe_indexing

from noisytransition.methods import METHODS, NoiseModelMixin

# the library's own, and those that the docs build as examples
CLASSIFIERS = [
    *METHODS.values(),
    page_methods.SymmetricClassifier,
    page_methods.CoTeachingClassifier,
    page_methods.EpochEMClassifier,
]
NEED_CLEAN_DATA = [cls for cls in CLASSIFIERS if cls._needs_clean_data]
WITHOUT_CLEAN_DATA = [cls for cls in CLASSIFIERS if not cls._needs_clean_data]
WITH_TRANSITION = [cls for cls in CLASSIFIERS if issubclass(cls, NoiseModelMixin)]


class SelfCleaned:
    """Mixin that uses the training samples as clean samples if none are given, for scikit-learn's checks."""

    def fit(self, X, y, sample_weight=None, **kwargs):
        clean = X, y
        if isinstance(sample_weight, np.ndarray) and 0 < np.count_nonzero(sample_weight) < np.size(sample_weight):
            clean = [_safe_indexing(part, np.flatnonzero(sample_weight)) for part in clean]
        return super().fit(X, y, **({"meta": clean, "sample_weight": sample_weight} | kwargs))


def _self_cleaned(cls):
    """Create a class in this module, where pickle finds it."""
    name = f"SelfCleaned{cls.__name__}"
    globals()[name] = type(name, (SelfCleaned, cls), {"__module__": __name__})
    return globals()[name]


SELF_CLEANED = [_self_cleaned(cls) for cls in NEED_CLEAN_DATA]


def small(cls, **params):
    """A classifier that trains in a moment."""
    fast = {"max_epochs": 3, "batch_size": 100, "random_state": 0}
    known = cls._get_param_names()
    if "optimizer" not in params:
        fast |= {"optimizer": "sgd", "lr": 0.1, "optimizer__momentum": 0.9}
    fast |= {name: 2 for name in ("warm_up_epochs", "fine_tuning_epochs") if name in known}
    if "cv" in known:
        fast |= {"cv": 2}
    return cls(**(fast | params))
