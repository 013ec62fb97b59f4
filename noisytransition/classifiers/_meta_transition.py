"""Meta transition adaptation: T by the clean loss one step ahead."""

from typing import Any

import torch

from ..losses import ForwardLoss
from ..meta_gradient import ROUTES
from ..nets import LookAheadNet, MetaStep, Rows, TransitionTrace
from ._base import NoisyLabelClassifier
from ._checks import check_count, check_number
from ._transition import TransitionMixin


class MetaTransitionClassifier(TransitionMixin, NoisyLabelClassifier):
    r"""Learn the noise transition matrix T and the classifier together, guided by clean rows (Algorithm 1).

    In every iteration a noisy and a clean batch are drawn, and with the corrected loss
    ``L(W, T) = mean - log sum_i f_i(x; W) T[i, y]``::

        W_hat(T) = W - lr * grad_W L(W, T)                                  look-ahead, plain SGD
        Theta    = Theta - transition_lr * grad_Theta L_clean(W_hat(T))     T = row-softmax(Theta)
        W        = optimiser step on L(W, T) with the new T

    The gradient of the second line is exact, in closed form (`noisytransition.meta_gradient`).

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    transition_lr : float, default=3.0
        Step size of the logits of T (the paper's beta); 0 leaves T as it starts. The meta-gradient is
        proportional to the look-ahead's rate, so `lr` scales T's step too.
    transition_optimizer : class, default=torch.optim.SGD
        Makes T's step.
    transition_init : {"gold", "anchor", "count", "diagonal", "identity"} or array-like, default="gold"
        Where T starts. "gold": mean posterior of the clean rows of each class under a cross-entropy net (the
        paper); "anchor": that net's posterior at each class's most typical row; "count": counts of
        (`y_meta`, `y_meta_noisy`); "diagonal": 0.8 on the diagonal; "identity"; or an array of shape
        (n_classes, n_classes), row i, column j P(noisy j | true i), in the order of `classes_`.
    transition_every : int, default=1
        Look ahead in every so many steps only.
    transition_floor : float, optional
        Smallest entry of T's start; default 1e-3 / n_classes.
    warm_up_epochs : int, optional
        Epochs of the cross-entropy net for "gold" and "anchor"; default: `max_epochs`. An under-trained net gives
        a start far from T, one that has memorised the noisy labels too.
    meta_batch_size : int, optional
        Clean rows in a step; default: `batch_size`.
    meta_weight : float, default=0.0
        Weight of the clean batch's own cross-entropy in the loss of W; 0 is the paper.
    look_ahead_lr : float, optional
        Rate of the look-ahead; default: the optimiser's current one, per parameter group.
    meta_gradient_route : str, default="auto"
        How the gradient is computed: a name in `noisytransition.meta_gradient.ROUTES`. All are exact but
        "difference"; "auto" takes the cheapest that the module allows.
    lr, max_epochs, batch_size, optimizer, device, dtype, batch_transform, callbacks, random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        The start, and T after each epoch.
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

    _needs_clean_data = True

    def __init__(
        self,
        module: Any = None,
        *,
        transition_lr: float = 3.0,
        transition_optimizer: Any = torch.optim.SGD,
        transition_init: Any = "gold",
        transition_every: int = 1,
        transition_floor: float | None = None,
        warm_up_epochs: int | None = None,
        meta_batch_size: int | None = None,
        meta_weight: float = 0.0,
        look_ahead_lr: float | None = None,
        meta_gradient_route: str = "auto",
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_lr = transition_lr
        self.transition_optimizer = transition_optimizer
        self.transition_init = transition_init
        self.transition_every = transition_every
        self.transition_floor = transition_floor
        self.warm_up_epochs = warm_up_epochs
        self.meta_batch_size = meta_batch_size
        self.meta_weight = meta_weight
        self.look_ahead_lr = look_ahead_lr
        self.meta_gradient_route = meta_gradient_route

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_start()
        for name in ("transition_lr", "meta_weight"):
            check_number(self, name)
        check_count(self, "transition_every", low=1)
        if self.warm_up_epochs is not None:
            check_count(self, "warm_up_epochs", low=1)
        if self.meta_batch_size not in (None, -1):
            check_count(self, "meta_batch_size", low=1)
        for name, high in {"transition_floor": 0.5, "look_ahead_lr": None}.items():
            if getattr(self, name) is not None:
                check_number(self, name, high=high)
        if self.meta_gradient_route not in ("auto", *ROUTES):
            raise ValueError(f"meta_gradient_route={self.meta_gradient_route!r}; valid are {['auto', *ROUTES]}.")

    def _fit(self, noisy: Rows, meta: Any) -> None:
        epochs = self.max_epochs if self.warm_up_epochs is None else self.warm_up_epochs
        start = self._transition_start(noisy, meta, warm_up=lambda: self._train("warm_up", noisy, max_epochs=epochs))
        step, trace = self._meta_step(meta), TransitionTrace()
        self.net_ = self._train(
            "meta_transition",
            noisy,
            net=LookAheadNet,
            criterion=ForwardLoss,
            criterion__transition_matrix=start,
            meta_step=step,
            meta_weight=self.meta_weight,
            callbacks=[("transition_trace", trace)],
        )
        self.net_.meta_step = None  # the clean rows are not kept
        self.transition_history_ = trace.matrices()
        self.transition_init_ = self.transition_history_[0]
        self.transition_matrix_ = self.net_.criterion_.transition_matrix
        self.meta_gradient_route_ = step.route

    def _meta_step(self, meta: Rows) -> MetaStep:
        return MetaStep(
            meta,
            self.transition_lr,
            optimizer=self.transition_optimizer,
            batch_size=self.meta_batch_size,
            every=self.transition_every,
            look_ahead_lr=self.look_ahead_lr,
            route=self.meta_gradient_route,
        )
