"""What a fitted classifier predicts, its network, and its score."""

from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from skorch.history import History
from torch import nn
from torch.utils.data import Dataset

from ..data._read import Samples, are_samples, as_column, labels_of, validate_rows, with_true_labels
from ..nets._rows import as_rows
from ..transition._checks import as_array
from ..transition._labels import of_one_type


class PredictionMixin(ClassifierMixin):
    """Predictions of a fitted classifier; its network and history, under skorch's names."""

    classes_: NDArray
    net_: Any

    @property
    def history_(self) -> History:
        """skorch's history of the last stage; `histories_` has one for every stage."""
        check_is_fitted(self, "net_")
        return self.net_.history

    @property
    def module_(self) -> nn.Module:
        """The trained network; it returns logits."""
        check_is_fitted(self, "net_")
        return self.net_.module_

    def predict_proba(self, X: Samples) -> NDArray:
        """Posterior of the true class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`; rows sum to 1.
        """
        check_is_fitted(self, "net_")
        inputs = validate_rows(self, X, reset=False)
        return self.net_.predict_proba(as_rows(inputs))

    def predict_log_proba(self, X: Samples) -> NDArray:
        """Logarithm of `predict_proba`, from the network's logits: finite where a probability is rounded to 0.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns as in `classes_`.
        """
        check_is_fitted(self, "net_")
        inputs = validate_rows(self, X, reset=False)
        return self.net_.predict_log_proba(as_rows(inputs))

    def predict(self, X: Samples) -> NDArray:
        """Most probable true class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels out of `classes_`.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def score(
        self,
        X: Samples,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        trusted: ArrayLike | None = None,
        y_meta: ArrayLike | None = None,
    ) -> float:
        """Accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.
        y : array-like of shape (n_samples,)
            Labels to compare predictions with: true ones, except for what `y_meta` replaces. Optional for a Dataset of
            pairs of input and label.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts in the mean; default: all alike.
        trusted, y_meta : array-like, optional
            As in `fit`: the true labels of trusted rows, where y has noisy ones. Searches pass them with metadata
            routing. One without the other is ignored.

        Returns
        -------
        float
        """
        if y is None:
            if not isinstance(X, Dataset) and not are_samples(X):
                raise ValueError("y is None: give the labels to compare predictions with.")
            y = labels_of(X, "X")
        if trusted is not None and y_meta is not None:
            y = with_true_labels(y, trusted, y_meta)
        return float(super().score(X, of_one_type(as_array(as_column(y), "y")), sample_weight))
