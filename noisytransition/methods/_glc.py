"""Gold loss correction: T from the clean rows, then training on noisy and clean rows together."""

from typing import ClassVar

from ..base._transition import TransitionClassifier
from ..fitting._run import Run
from ..losses import GoldCorrectionLoss
from ..nets._rows import concatenate


class GLCClassifier(TransitionClassifier):
    """Estimate T at the clean rows, then train on clean rows by cross-entropy and on noisy rows through T.

    The second net starts from the initial weights; noisy and clean rows are shuffled together.

    Parameters
    ----------
    **params
        As in `TransitionClassifier`: `transition_init` ("gold", the default, is the method), `warm_up_epochs`,
        `module`, `lr`, `max_epochs`, ...

    Attributes
    ----------
    transition_matrix_, transition_init_, transition_history_, class_counts_
        As in `TransitionClassifier`.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Hendrycks, Mazeika, Wilson, Gimpel, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe
    Noise", NeurIPS 2018, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import GLCClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> clf = GLCClassifier(random_state=0).fit(X, y_noisy, meta=(X[::5], y[::5]))
    >>> clf.transition_matrix_.round(1)
    array([[0.6, 0.4, 0. ],
           [0.1, 0.5, 0.4],
           [0.2, 0. , 0.8]])
    """

    _needs_clean_data = True
    _PUBLISHED: ClassVar = {}

    def _fit(self, run: Run) -> None:
        T = self._start(run)
        both = concatenate(run.noisy.with_columns(trusted=False), run.clean.with_columns(trusted=True))
        self.net_ = run.train("gold_loss_correction", both, loss=GoldCorrectionLoss(T))
        self._keep_transition(run, T, learned=False)
