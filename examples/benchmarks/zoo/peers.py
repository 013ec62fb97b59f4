"""Methods of the open benchmark: classifiers of `noisytransition` and of other packages, on logistic regression."""

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import validate_data

import noisytransition


def linear():
    """Return logistic regression on scaled columns: the classifier in all methods below, and the unit of time."""
    return make_pipeline(StandardScaler(with_mean=False), LogisticRegression(max_iter=1000))


def one_label(labels):
    """Return the true labels of verified samples, and the noisy labels of the others."""
    return labels["verified"].fillna(labels["label"]).to_numpy(int)


def transition_cv():
    """Return `TransitionClassifierCV` with logistic regression."""
    return noisytransition.TransitionClassifierCV(linear())


class OnTable(ClassifierMixin, BaseEstimator):
    """Base of classifiers that fit a table of labels; `model_` predicts."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def predict(self, X):
        """Predict labels."""
        return np.asarray(self.model_.predict(X))


class VerifiedOnly(OnTable):
    """Logistic regression on the verified samples."""

    def fit(self, X, labels):
        """Train."""
        verified = labels["verified"].notna().to_numpy()
        self.model_ = linear().fit(X[verified], one_label(labels)[verified])
        return self


class CleanLearning(OnTable):
    """cleanlab's classifier; it does not know which labels are verified."""

    def fit(self, X, labels):
        """Train, and keep T and the quality of the labels."""
        from cleanlab.classification import CleanLearning

        options = {"n_jobs": 1}
        self.model_ = CleanLearning(linear(), seed=self.random_state, find_label_issues_kwargs=options)
        self.model_.fit(X, one_label(labels))
        self.transition_matrix_ = np.asarray(self.model_.noise_matrix).T  # columns of cleanlab's matrix sum to 1
        return self

    def label_quality(self, X, labels):
        """Return the quality of each label of `fit`."""
        return self.model_.get_label_issues()["label_quality"]


class IRBL(OnTable):
    """biquality-learn's importance reweighting (Nodet et al., 2021)."""

    def fit(self, X, labels):
        """Train on samples weighted by the classifiers of verified and of noisy labels."""
        from bqlearn.irbl import IRBL

        BaseEstimator._validate_data = _validate_data
        self.scale_ = StandardScaler(with_mean=False).fit(X)
        base = LogisticRegression(max_iter=1000)
        verified = labels["verified"].notna().to_numpy(float)
        self.model_ = IRBL(base, base).fit(self.scale_.transform(X), one_label(labels), sample_quality=verified)
        return self

    def predict(self, X):
        """Predict labels."""
        return self.model_.predict(self.scale_.transform(X))


def _validate_data(self, X, y, *, force_all_finite, **options):
    """Check data by the method that biquality-learn 0.1.0 calls, and that scikit-learn has removed since."""
    return validate_data(self, X, y, ensure_all_finite=force_all_finite, **options)


class DawidSkene(OnTable):
    """crowd-kit's Dawid-Skene with noisy and verified labels as two workers, then logistic regression."""

    def fit(self, X, labels):
        """Combine the labels, without X, and train on the result."""
        from crowdkit.aggregation import DawidSkene

        answers = labels.rename_axis(index="task", columns="worker").stack().dropna()
        answers = answers.rename("label").astype(int).reset_index()
        combined = pd.Series(DawidSkene().fit_predict(answers)).reindex(labels.index)
        self.model_ = linear().fit(X, combined.to_numpy(int))
        return self
