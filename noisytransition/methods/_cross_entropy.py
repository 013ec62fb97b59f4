"""Cross-entropy on the noisy labels, as if they were true."""

from typing import ClassVar

from ..base._classifier import NoisyLabelClassifier
from ..fitting._run import Run


class CrossEntropyClassifier(NoisyLabelClassifier):
    """Plain cross-entropy on the noisy labels: the baseline of all others.

    Clean data is accepted in every form and never trained on.

    Parameters
    ----------
    **params
        As in `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    net_ : skorch net
        Trained net: ``net_.module_``, ``net_.save_params(...)``.
    histories_ : dict of str to History
        skorch's history of each training stage.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = CrossEntropyClassifier(max_epochs=100, random_state=0).fit(X, y)
    >>> clf.predict(X[[0, 50, 100]]), y[[0, 50, 100]]
    (array([0, 1, 2]), array([0, 1, 2]))
    """

    _PUBLISHED: ClassVar = {}

    def _fit(self, run: Run) -> None:
        self.net_ = run.train("cross_entropy")
