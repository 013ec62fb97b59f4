"""Meta transition adaptation: learn T by a meta-gradient of the clean loss."""

from __future__ import annotations
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._parameters import CONSTRAINTS, NUMBER, Module
from ..fitting._run import FitContext
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import ForwardLoss, GoldCorrectionLoss
from ..nets import CleanBatches
from ..nets._rows import noisy_and_clean
from ..selection import BestCleanEpoch
from ..updates import MetaGradient


class MetaTransitionClassifier(NoiseModelMixin, NoisyLabelClassifier):
    r"""Learn the noise transition matrix T and the classifier jointly, by a meta-gradient on the clean samples.

    `EMTransitionClassifier` estimates T more accurately. A warm-up trains a network by cross-entropy. The initial T is
    its mean posterior over the clean samples of each class. Then a new network is trained. Each iteration draws a noisy
    and a clean batch and computes, with the forward-corrected loss
    ``L(W, T) = mean - log sum_i f_i(x; W) T[i, y]``::

        W_hat(T) = W - lr * grad_W L(W, T)                                  look-ahead, plain SGD
        Theta    = Theta - transition_lr * grad_Theta L_clean(W_hat(T))     T = row-softmax(Theta)
        W        = optimiser step on L(W, T) with the new T

    The meta-gradient in the second line is exact, in closed form (`noisytransition.meta_gradient`). The published
    algorithm leaves its scale open, which depends on the network. Here it is normalised
    (`noisytransition.updates.MetaGradient`). This network is not trained on the clean samples, so that their loss can
    select the epoch of T: a network that memorises wrong labels also moves T away from the truth. A last training with
    that T and as many epochs uses noisy and clean samples, as in `GLCClassifier`.

    Parameters
    ----------
    transition_init : array-like or str, default="gold"
        Initial T, or its estimator: "gold", "gold-shrunk", "anchor", "confusion", "count" or "diagonal"
        (:ref:`starts`).
    warm_up_epochs : int, optional
        Epochs of the cross-entropy warm-up. Default: `max_epochs`.
    transition_lr : float, default=10.0
        Learning rate of the logits of T (beta in the paper). 0: T is fixed.
    normalize : bool, default=True
        Whether `transition_lr` is a step per epoch of the normalised meta-gradient. False, as published: a step per
        batch of the meta-gradient, which is proportional to the learning rate of the look-ahead.
    meta_batch_size : int, optional
        Number of clean samples per step. Default: `batch_size`.
    refit : bool, default=True
        Whether to select T of the epoch with the lowest calibrated cross-entropy of all clean samples, and refit a new
        network through it. False, as published: network and T of the last epoch. A callback with ``load_best=True``
        replaces both.
    from_warm_up : bool, default=False
        Whether to start from the weights of the warm-up instead of new weights. The paper does not define the start.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T of the selected epoch.
    transition_init_ : ndarray of shape (n_classes, n_classes)
        Initial T.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        Initial T, and T after each epoch. With more than 500 classes: initial and final T only.
    noise_model_, noisy_class_counts_
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
           [0.5, 0. , 0.5]])
    """

    _needs_clean_data = True
    _PUBLISHED: ClassVar = {"normalize": False, "refit": False}
    _parameter_constraints: ClassVar = CONSTRAINTS | {
        "transition_lr": [NUMBER],
        "normalize": ["boolean"],
        "refit": ["boolean"],
        "from_warm_up": ["boolean"],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "gold",
        warm_up_epochs: int | None = None,
        transition_lr: float = 10.0,
        normalize: bool = True,
        meta_batch_size: int | None = None,
        refit: bool = True,
        from_warm_up: bool = False,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs
        self.transition_lr = transition_lr
        self.normalize = normalize
        self.meta_batch_size = meta_batch_size
        self.refit = refit
        self.from_warm_up = from_warm_up

    def _fit(self, run: FitContext) -> None:
        start, warm_up = start_of_transition(
            run, self.transition_init, self.warm_up_epochs, needs_net=self.from_warm_up
        )
        clean = CleanBatches(run.clean, self.meta_batch_size or self.batch_size)
        select = BestCleanEpoch(run.clean) if self.refit else None
        net = run.train(
            "meta_transition",
            module=warm_up.plain_module_ if self.from_warm_up else None,
            loss=ForwardLoss(start, ignore_index=None),
            update=MetaGradient(clean, self.transition_lr, normalize=self.normalize),
            select=select,
        )
        keep_transition(self, run, start, net)
        if select is not None and select.best_epoch_:
            both = noisy_and_clean(run.noisy, run.clean)
            loss = GoldCorrectionLoss(self.transition_matrix_, ignore_index=None)
            net = run.train("refit", both, loss=loss, max_epochs=select.best_epoch_)
        self.net_ = net
