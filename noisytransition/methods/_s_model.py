"""S-Model: learn T as a noise adaptation layer on top of the network."""

from __future__ import annotations
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._parameters import CONSTRAINTS, NUMBER, Module
from ..fitting._run import FitContext
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import ForwardLoss
from ..updates import ByGradient

# Learning rate of Theta. Error of T if Adam or SGD trains the network: 0.32 or 0.28; with the learning rate of
# `optimizer` 0.38 or 0.30, and 0.003 higher accuracy (ten problems of the design half of examples/benchmarks/zoo, two
# seeds)
_STEP = 0.05


class SModelClassifier(NoiseModelMixin, NoisyLabelClassifier):
    """Learn the noise transition matrix T from the noisy labels, as a noise adaptation layer of the network.

    After a warm-up by cross-entropy, the network and ``T = row-softmax(Theta)`` are trained jointly by the loss
    ``- log sum_i f_i(x) T[i, y]``, Theta without weight decay. Predictions do not use T. The loss does not identify T
    (the identity with memorised labels is also optimal), so the result depends on the initial T.

    Parameters
    ----------
    transition_init : str or array-like, default="confusion"
        Initial T, or its estimator (:ref:`starts`). With clean samples, "gold" is more accurate.
    warm_up_epochs : int, optional
        Epochs of the cross-entropy warm-up. Default: `max_epochs`.
    transition_lr : float or None, default=0.05
        Learning rate of Theta, for plain SGD. 0 keeps the initial T, which is forward correction. None, as published,
        trains Theta with `optimizer` and its learning rate.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    noise_model_, transition_matrix_, noisy_class_counts_
        As in `NoiseModelMixin`.
    transition_init_, transition_history_
        As in `MetaTransitionClassifier`.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Goldberger, Ben-Reuven, "Training Deep Neural-Networks Using a Noise Adaptation Layer", ICLR 2017, the simple
    model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import SModelClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> clf = SModelClassifier(random_state=0).fit(X, y_noisy, meta=(X[::5], y[::5]))
    >>> clf.transition_matrix_.round(1)
    array([[0.7, 0.3, 0.1],
           [0.1, 0.7, 0.2],
           [0.1, 0.1, 0.8]])
    """

    _PUBLISHED: ClassVar = {"transition_lr": None}
    _parameter_constraints: ClassVar = CONSTRAINTS | {"transition_lr": [NUMBER, None]}

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "confusion",
        warm_up_epochs: int | None = None,
        transition_lr: float | None = _STEP,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs
        self.transition_lr = transition_lr

    def _fit(self, run: FitContext) -> None:
        start, warm_up = start_of_transition(run, self.transition_init, self.warm_up_epochs, needs_net=True)
        self.net_ = run.train(
            "s_model",
            module=warm_up.plain_module_,
            loss=ForwardLoss(start, ignore_index=None),
            update=ByGradient(self.transition_lr),
        )
        keep_transition(self, run, start, self.net_)
