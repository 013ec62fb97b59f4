"""Gold loss correction with T estimated from the clean samples."""

from __future__ import annotations
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._parameters import Module
from ..fitting._run import FitContext
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import GoldCorrectionLoss
from ..nets._rows import noisy_and_clean


class GLCClassifier(NoiseModelMixin, NoisyLabelClassifier):
    """Estimate the noise transition matrix T from the clean samples, then train with gold loss correction.

    The loss is cross-entropy for clean samples and forward correction for noisy samples, shuffled together. Warm-up and
    training start from the same initial weights. If classes overlap, T contains the uncertainty of the network, too:
    `EMTransitionClassifier` separates both.

    Parameters
    ----------
    transition_init : str or array-like, default="gold"
        Estimator of T (:ref:`starts`), or a known T. The paper uses "gold".
    warm_up_epochs : int, optional
        Epochs of the cross-entropy warm-up that T is estimated from. Default: `max_epochs`.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    noise_model_, transition_matrix_, noisy_class_counts_, transition_init_, transition_history_
        As in `MetaTransitionClassifier`. T does not change in the second training.
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
    array([[0.6, 0.3, 0. ],
           [0.1, 0.4, 0.4],
           [0.2, 0. , 0.8]])
    """

    _needs_clean_data = True
    _PUBLISHED: ClassVar = {}

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "gold",
        warm_up_epochs: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs

    def _fit(self, run: FitContext) -> None:
        T, _ = start_of_transition(run, self.transition_init, self.warm_up_epochs)
        loss = GoldCorrectionLoss(T, ignore_index=None)
        self.net_ = run.train("gold_loss_correction", noisy_and_clean(run.noisy, run.clean), loss=loss)
        keep_transition(self, run, T)
