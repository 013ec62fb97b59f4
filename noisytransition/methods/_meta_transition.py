"""Meta transition adaptation: learn T by a meta-gradient of the clean loss."""

from __future__ import annotations
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._checks import CONSTRAINTS, NUMBER
from ..fitting._parameters import Module
from ..fitting._run import Run
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import ForwardLoss
from ..nets import CleanBatches
from ..selection import HeldOutLikelihood
from ..updates import MetaGradient


class MetaTransitionClassifier(NoiseModelMixin, NoisyLabelClassifier):
    r"""Learn the noise transition matrix T and the classifier jointly, by a meta-gradient on the clean samples.

    Use it to study the meta-gradient; `EMTransitionClassifier` estimates T more accurately. A warm-up trains the
    network by cross-entropy. The initial T is its mean posterior over the clean samples of each class. Each iteration
    then draws a noisy and a clean batch and computes, with the forward-corrected loss
    ``L(W, T) = mean - log sum_i f_i(x; W) T[i, y]``::

        W_hat(T) = W - inner_lr * grad_W L(W, T)                            look-ahead, plain SGD
        Theta    = Theta - transition_lr * grad_Theta L_clean(W_hat(T))     T = row-softmax(Theta)
        W        = optimiser step on L(W, T) with the new T

    The meta-gradient in the second line is exact, in closed form (`noisytransition.meta_gradient`).

    If the network fits the clean samples easily, the meta-gradient carries little information and T drifts away from a
    good initial T. Therefore `fit` keeps the initial T, unless an interpolation towards the learned T raises the
    log-likelihood of held-out noisy labels by more than two standard errors
    (`noisytransition.selection.HeldOutLikelihood`). The network is the same in both cases.

    Parameters
    ----------
    transition_init : array-like or str, default="gold"
        Initial T, or its estimator: "gold", "gold-shrunk", "anchor", "confusion", "count" or "diagonal"
        (:doc:`/initial_t`).
    warm_up_epochs : int, optional
        Epochs of the cross-entropy warm-up. Default: `max_epochs`.
    transition_lr : float, default=10.0
        Learning rate of the logits of T (beta in the paper). 0: T is fixed. The meta-gradient is proportional to
        `inner_lr`.
    inner_lr : float or None, default=0.1
        Learning rate of the look-ahead. None, as published: the current learning rate of each parameter group.
    meta_weight : float, default=0.0
        Weight of the clean batch's cross-entropy in the loss of W. The paper uses 0.
    meta_batch_size : int, optional
        Number of clean samples per step. Default: `batch_size`.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy samples held out to select T. 0, as published: the last T. `train_split` overrides this.
    from_warm_up : bool, default=True
        Start from the weights of the warm-up. False, as published: from the initial weights.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        Selected T.
    transition_init_ : ndarray of shape (n_classes, n_classes)
        Initial T.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        Initial T, and T after each epoch. With more than 500 classes: initial and final T only.
    noise_model_, class_counts_
        As in `NoiseModelMixin`.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition import MetaTransitionClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> X = rng.normal(size=(600, 2)) + 4 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    >>> y_noisy = flip_labels(y, pair_noise(3, 0.4), random_state=0)
    >>> clf = MetaTransitionClassifier(random_state=0).fit(X[60:], y_noisy[60:], meta=(X[:60], y[:60]))
    >>> clf.transition_matrix_.round(1)
    array([[0.6, 0.4, 0. ],
           [0. , 0.5, 0.5],
           [0.4, 0. , 0.6]])
    """

    _needs_clean_data = True
    _PUBLISHED: ClassVar = {"inner_lr": None, "validation_fraction": 0, "from_warm_up": False}
    _parameter_constraints: ClassVar = CONSTRAINTS | {
        "transition_lr": [NUMBER],
        "meta_weight": [NUMBER],
        "from_warm_up": ["boolean"],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "gold",
        warm_up_epochs: int | None = None,
        transition_lr: float = 10.0,
        inner_lr: float | None = 0.1,
        meta_weight: float = 0.0,
        meta_batch_size: int | None = None,
        validation_fraction: float = 0.1,
        from_warm_up: bool = True,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs
        self.transition_lr = transition_lr
        self.inner_lr = inner_lr
        self.meta_weight = meta_weight
        self.meta_batch_size = meta_batch_size
        self.validation_fraction = validation_fraction
        self.from_warm_up = from_warm_up

    def _fit(self, run: Run) -> None:
        start, warm_up = start_of_transition(
            run,
            self.transition_init,
            self.warm_up_epochs,
            needs_net=self.from_warm_up,
            validation_fraction=self.validation_fraction,  # memorised labels could not select T
        )
        clean = CleanBatches(run.clean, self.meta_batch_size or self.batch_size)
        self.net_ = run.train(
            "meta_transition",
            module=warm_up.plain_module_ if self.from_warm_up else None,
            loss=ForwardLoss(start),
            update=MetaGradient(clean, lr=self.transition_lr, inner_lr=self.inner_lr),
            select=HeldOutLikelihood(),
            clean_batches=clean,  # for the look-ahead and, with a weight, the step
            clean_weight=self.meta_weight,
            validation_fraction=self.validation_fraction,
        )
        keep_transition(self, run, start, self.net_)
