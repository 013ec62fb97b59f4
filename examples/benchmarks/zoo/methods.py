"""Methods of the zoo: classifiers with default parameters, and estimators of T without a classifier."""

import time
import warnings
from functools import partial

import numpy as np
from scipy.sparse import issparse, vstack
from shared import out_of_fold
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import StandardScaler

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
    TransitionClassifierCV,
    TRevisionClassifier,
    count_transition_matrix,
    sampling_limit,
    transition_error,
)
from zoo.peers import linear

LEVEL = 0.9  # confidence level of intervals
OF_CLEAN, OF_NOISY = "clean rows only, logistic regression", "logistic regression"
TOGETHER, WRAPPED = "logistic regression, noisy and clean", "TransitionClassifierCV, pairs"


class Together:
    """Logistic regression on noisy and clean labels; C has the lowest log-loss of held-out clean samples."""

    def __init__(self, random_state, **of_networks):
        self.random_state = random_state

    def fit(self, X, y, meta):
        """Train on all samples, after a choice of C by five folds of the clean samples."""
        X, X_clean = _flat(X), _flat(meta[0])
        y_clean = np.asarray(meta[1])
        self.scaler_ = StandardScaler(with_mean=not issparse(X)).fit(X)
        X, X_clean = self.scaler_.transform(X), self.scaler_.transform(X_clean)
        folds = np.random.default_rng(self.random_state).permutation(len(y_clean)) % 5
        losses = {
            C: sum(self._loss(C, X, y, X_clean, y_clean, folds == k) for k in range(5))
            for C in 10.0 ** np.arange(-4, 2)
        }
        self.C_ = min(losses, key=losses.get)
        self.model_ = self._trained(self.C_, X, y, X_clean, y_clean)
        return self

    def predict(self, X):
        """Predict labels."""
        return self.model_.predict(self.scaler_.transform(_flat(X)))

    @staticmethod
    def _trained(C, X, y, X_clean, y_clean):
        both = vstack([X, X_clean], format="csr") if issparse(X) else np.concatenate([X, X_clean])
        return LogisticRegression(C=C, max_iter=300).fit(both, np.concatenate([y, y_clean]))

    def _loss(self, C, X, y, X_clean, y_clean, out):
        model = self._trained(C, X, y, X_clean[~out], y_clean[~out])
        known = np.isin(y_clean, model.classes_) & out
        proba = model.predict_proba(X_clean[known])
        return -np.log(proba[np.arange(len(proba)), np.searchsorted(model.classes_, y_clean[known])] + 1e-12).sum()


class Linear:
    """Logistic regression with default parameters on scaled samples, alone or in `TransitionClassifierCV`."""

    def __init__(self, wrapped, random_state, **of_networks):
        self.model_ = TransitionClassifierCV(linear(), random_state=random_state) if wrapped else linear()

    def __getattr__(self, name):
        return getattr(vars(self)["model_"], name)

    def fit(self, X, y, meta=None, **labels):
        """Train; without `TransitionClassifierCV`, on the noisy samples only."""
        if isinstance(self.model_, TransitionClassifierCV):
            labels["meta"] = _flat(meta[0]), meta[1]
        self.model_.fit(_flat(X), y, **labels)
        return self

    def predict(self, X):
        """Predict labels."""
        return self.model_.predict(_flat(X))


def _flat(X):
    return X if issparse(X) else np.asarray(X, dtype=np.float64).reshape(len(X), -1)


CLASSIFIERS = {
    "clean rows only": CrossEntropyClassifier,
    "fine-tuning": FineTuningClassifier,
    "cross-entropy": CrossEntropyClassifier,
    "GCE": GCEClassifier,
    "Forward": ForwardClassifier,
    "GLC": GLCClassifier,
    "S-Model": SModelClassifier,
    "T-Revision": TRevisionClassifier,
    "MW-Net": MWNetClassifier,
    "meta-transition": MetaTransitionClassifier,
    "EM": EMTransitionClassifier,
    "EM, pairs": EMTransitionClassifier,
    OF_CLEAN: partial(Linear, False),
    OF_NOISY: partial(Linear, False),
    TOGETHER: Together,
    WRAPPED: partial(Linear, True),
}


# ---------------------------------------------------------------------------- estimates of T
def _identity(data, proba):
    return np.eye(len(data.transition_matrix))


def _counting(data, proba):
    c = proba.shape[1]
    return count_transition_matrix(proba.argmax(axis=1), data.y, c, smoothing=1e-6)


def _cleanlab(data, proba):
    from cleanlab.count import compute_confident_joint, estimate_latent

    joint = compute_confident_joint(data.y, proba)
    return estimate_latent(joint, data.y)[1].T  # transposed, since columns of cleanlab's matrix sum to 1


def _verified_pairs(data, proba):
    """Count pairs of true and noisy labels; rows of T are uniform for classes without verified samples."""
    known = np.bincount(data.y_clean, minlength=proba.shape[1]) > 0
    smoothing = 0 if known.all() else 1e-9
    return count_transition_matrix(data.y_clean, data.y_clean_noisy, len(known), smoothing=smoothing)


MATRICES = {
    "identity": _identity,
    "counting": _counting,
    "cleanlab": _cleanlab,
    "verified pairs": _verified_pairs,
}
LIMIT = "sampling limit"
METHODS = [*CLASSIFIERS, *MATRICES, LIMIT]


def estimates(data, params, names):
    """Return the errors of the named estimates of T; all share the out-of-fold posteriors of one cross-entropy net."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proba = out_of_fold(params, data.X, data.y)
    rows, seconds = {}, time.process_time() - started
    for name in names:
        if name == LIMIT:
            counts = np.bincount(data.y_true, minlength=len(data.transition_matrix))
            rows[name] = {"transition_error": sampling_limit(data.transition_matrix, counts)}
        else:
            rows[name] = _error(data, MATRICES[name](data, proba)) | {"seconds": round(seconds, 2)}
    return rows


def _error(data, T):
    return {"transition_error": transition_error(data.transition_matrix, T)}


# ---------------------------------------------------------------------------- classifiers
def fitted(data, params, name):
    """Fit a classifier and return its measures."""
    clf, started = CLASSIFIERS[name](**params), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _fit(clf, data, name)
    row = {"seconds": round(time.process_time() - started, 2)}
    predicted = clf.predict(data.X_test)
    row["accuracy"] = float((predicted == data.y_test).mean())
    row["balanced_accuracy"] = float(balanced_accuracy_score(data.y_test, predicted))
    row["warnings"] = [str(w.message)[:60] for w in caught if issubclass(w.category, UserWarning)]
    return row | _of_matrix(clf, data)


def _fit(clf, data, name):
    if name.startswith("clean rows only"):
        return clf.fit(data.X_clean, data.y_clean)
    noisy = {"y_clean_noisy": data.y_clean_noisy} if name.endswith("pairs") else {}
    return clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean), **noisy)


def _of_matrix(clf, data):
    """Return the error of T and the number of covered entries, for methods that estimate T and its error bars."""
    row, T = {}, data.transition_matrix
    if hasattr(clf, "transition_matrix_"):
        row |= _error(data, clf.transition_matrix_)
    try:
        low, high = clf.transition_interval(LEVEL)
    except (AttributeError, ValueError):  # no error bars
        return row
    covered = (low <= T + 1e-9) & (high >= T - 1e-9)
    return row | {"covered": int(covered.sum()), "entries": T.size}
