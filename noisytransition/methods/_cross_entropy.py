"""Cross-entropy on the noisy labels."""

from typing import ClassVar

from ..base._classifier import NoisyLabelClassifier
from ..fitting._run import FitContext


class CrossEntropyClassifier(NoisyLabelClassifier):
    """Train on the noisy labels by cross-entropy: the baseline.

    `fit` accepts clean samples in every form, but does not train on them. After many epochs, a network learns
    wrong labels, too.

    Parameters
    ----------
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    net_ : skorch net
        Trained net. ``net_.module_`` is the network.
    histories_ : dict of str to History
        skorch history of each training stage.
    n_features_in_ : int
        Number of features.

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

    def _fit(self, run: FitContext) -> None:
        self.net_ = run.train("cross_entropy")
