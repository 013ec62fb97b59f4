"""Forward correction with T estimated from anchor points."""

from __future__ import annotations
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._parameters import Module
from ..fitting._run import FitContext
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import ForwardLoss
from ..selection import BestEpoch


class ForwardClassifier(NoiseModelMixin, NoisyLabelClassifier):
    """Estimate the noise transition matrix T from anchor points, then train with forward correction.

    A warm-up network gives T. A new network is trained by the loss ``- log sum_i f_i(x) T[i, y]`` of each sample. Clean
    samples are only used if `transition_init` needs them. If the classes overlap everywhere, no sample is an anchor
    point, and T is wrong (:doc:`/methods/loss_correction`).

    Parameters
    ----------
    transition_init : str or array-like, default="anchor"
        Estimator of T (:ref:`starts`), or a known T.
    warm_up_epochs : int, optional
        Epochs of the cross-entropy warm-up that T is estimated from. Default: `max_epochs`.
    anchor_percentile : float, "auto" or None, default=None
        `percentile` of `anchor_transition_matrix`. The paper's code uses 97 on some data sets, which fails for classes
        rarer than 3 %.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy samples held out of the warm-up, to select the epoch with the lowest loss on them. A
        network that has memorised the noisy labels would give a T near the identity. 0 selects the last epoch. A
        `train_split` replaces this parameter.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    noise_model_, transition_matrix_, noisy_class_counts_, transition_init_, transition_history_
        As in `MetaTransitionClassifier`. The second training does not change T.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Patrini, Rozza, Menon, Nock, Qu, "Making Deep Neural Networks Robust to Label Noise: a Loss Correction Approach",
    CVPR 2017, equations (6), (12), (13).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import ForwardClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> clf = ForwardClassifier(random_state=0).fit(X, y_noisy)
    >>> clf.transition_matrix_.round(1)
    array([[0.7, 0.3, 0. ],
           [0.3, 0.4, 0.3],
           [0.1, 0.1, 0.9]])
    """

    _PUBLISHED: ClassVar = {}

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "anchor",
        warm_up_epochs: int | None = None,
        anchor_percentile: float | Literal["auto"] | None = None,
        validation_fraction: float = 0.1,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs
        self.anchor_percentile = anchor_percentile
        self.validation_fraction = validation_fraction

    def _fit(self, run: FitContext) -> None:
        T, _ = start_of_transition(
            run,
            self.transition_init,
            self.warm_up_epochs,
            percentile=self.anchor_percentile,
            select=BestEpoch("valid_noisy_loss"),
            validation_fraction=self.validation_fraction,
        )
        self.net_ = run.train("forward", loss=ForwardLoss(T, ignore_index=None))
        keep_transition(self, run, T)
