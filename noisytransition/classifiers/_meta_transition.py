"""Meta transition adaptation: T by the clean loss one step ahead."""

from typing import Any

import torch

from ..losses import JudgedLoss
from ..nets import Rows, TransitionJudge, TransitionTrace
from ._checks import check_count, check_fraction, check_number
from ._look_ahead import LookAheadClassifier
from ._transition import TransitionClassifier


class MetaTransitionClassifier(TransitionClassifier, LookAheadClassifier):
    r"""Learn the noise transition matrix T and the classifier together, guided by clean rows (Algorithm 1).

    In every iteration a noisy and a clean batch are drawn, and with the corrected loss
    ``L(W, T) = mean - log sum_i f_i(x; W) T[i, y]``::

        W_hat(T) = W - lr * grad_W L(W, T)                                  look-ahead, plain SGD
        Theta    = Theta - transition_lr * grad_Theta L_clean(W_hat(T))     T = row-softmax(Theta)
        W        = optimiser step on L(W, T) with the new T

    The gradient of the second line is exact, in closed form (`noisytransition.meta_gradient`).

    Where the network learns the clean rows' classes easily, the meta-gradient fades and T drifts away from a good
    start. The training goes on with the T of the paper; but noisy rows are held out (`validation_fraction`), and the T
    that is *kept*, `transition_matrix_`, leaves the start only as far as their labels speak for it (`JudgedLoss.judge`
    in `noisytransition.losses`). ``validation_fraction=0`` is the paper's algorithm.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    transition_lr : float, default=10.0
        Step size of the logits of T (the paper's beta); 0 leaves T as it starts. The meta-gradient is
        proportional to the look-ahead's rate, so `lr` scales T's step too.
    transition_optimizer : class, default=torch.optim.SGD
        Makes T's step.
    validation_fraction : float in [0, 1), default=0.1
        Noisy rows held out to judge T; 0: the last T is kept. A `train_split` takes its place.
    transition_init : str or array-like, default="gold"
        Where T starts, as in `TransitionClassifier`: "gold" is the paper's choice.
    transition_every : int, default=1
        Look ahead in every so many steps only.
    transition_floor, warm_up_epochs
        As in `TransitionClassifier`.
    meta_weight : float, default=0.0
        Weight of the clean batch's own cross-entropy in the loss of W; 0 is the paper.
    meta_batch_size, look_ahead_lr, meta_gradient_route
        As in `LookAheadClassifier`.
    lr, max_epochs, batch_size, optimizer, device, dtype, batch_transform, callbacks, random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        The start, and the T kept after each epoch.
    class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy rows of each true class: the most likely, given T and the noisy labels.
    meta_gradient_route_ : str
        The route that was taken.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from noisytransition.transition import flip_labels, pair_noise, transition_error
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> X = rng.normal(size=(600, 2)) + 4 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    >>> T = pair_noise(3, 0.4)
    >>> y_noisy = flip_labels(y, T, random_state=0)
    >>> clf = MetaTransitionClassifier(random_state=0).fit(X[60:], y_noisy[60:], meta=(X[:60], y[:60]))
    >>> transition_error(T, clf.transition_matrix_) < transition_error(T, np.eye(3))
    True
    """

    def __init__(
        self,
        module: Any = None,
        *,
        transition_lr: float = 10.0,
        transition_optimizer: Any = torch.optim.SGD,
        transition_every: int = 1,
        meta_weight: float = 0.0,
        validation_fraction: float = 0.1,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_lr = transition_lr
        self.transition_optimizer = transition_optimizer
        self.transition_every = transition_every
        self.meta_weight = meta_weight
        self.validation_fraction = validation_fraction

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("transition_lr", "meta_weight"):
            check_number(self, name)
        check_count(self, "transition_every", low=1)
        check_fraction(self, "validation_fraction")

    def _fit(self, noisy: Rows, meta: Any) -> None:
        start = self._transition_start(noisy, meta, warm_up=lambda: self._warm_up(noisy))
        trace = TransitionTrace()
        self.net_ = self._train_ahead(
            "meta_transition",
            noisy,
            meta,
            step_lr=self.transition_lr,
            step_optimizer=self.transition_optimizer,
            every=self.transition_every,
            criterion=JudgedLoss,
            criterion__transition_matrix=start,
            meta_weight=self.meta_weight,
            callbacks_first=[("transition_judge", TransitionJudge())],
            callbacks=[("transition_trace", trace)],
            **self._held_out(),
        )
        self._keep_transition(trace.matrices_, self.net_.criterion_.transition_matrix)
