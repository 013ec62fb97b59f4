"""Meta transition adaptation: T is learned by the gradient of the clean loss one step ahead."""

from typing import Any, ClassVar

from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._checks import ALL_ROWS, COUNT, FRACTION, NUMBER
from ..fitting._parameters import Module
from ..fitting._run import Run
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import ForwardLoss
from ..nets import CleanBatches
from ..selection import HeldOutLikelihood
from ..updates import MetaGradient


class MetaTransitionClassifier(NoiseModelMixin, NoisyLabelClassifier):
    r"""Learn the noise transition matrix T and the classifier together, guided by clean rows (Algorithm 1).

    A net is trained by cross-entropy, the warm-up. T starts from the warm-up's mean posterior of each class's clean
    rows, and the network from its weights. In every iteration a noisy and a clean batch are drawn, and with the
    corrected loss ``L(W, T) = mean - log sum_i f_i(x; W) T[i, y]``::

        W_hat(T) = W - inner_lr * grad_W L(W, T)                            look-ahead, plain SGD
        Theta    = Theta - transition_lr * grad_Theta L_clean(W_hat(T))     T = row-softmax(Theta)
        W        = optimiser step on L(W, T) with the new T

    The gradient of the second line is exact, in closed form (`noisytransition.meta_gradient`).

    Where the network fits the clean rows easily, the meta-gradient carries little information and T moves away from a
    good start. Therefore a part of the noisy rows is held out (`validation_fraction`), and T is selected by the
    likelihood of their labels: the start is kept unless a T between it and the T of training is clearly more likely
    (`noisytransition.selection.HeldOutLikelihood`). The network is that of the last epoch.

    Parameters
    ----------
    transition_init : str or array-like, default="gold"
        Start of T, as in `docs/all_classifiers.rst`.
    warm_up_epochs : int, optional
        Epochs of the warm-up by cross-entropy that network and T start from; default: `max_epochs`.
    transition_lr : float, default=10.0
        Step size of the logits of T (the paper's beta); with 0, T keeps its start. The meta-gradient is proportional to
        `inner_lr`.
    inner_lr : float or None, default=0.1
        Step size of the look-ahead. None, as published: the current step size of `optimizer`, of each parameter group.
    meta_weight : float, default=0.0
        Weight of the clean batch's cross-entropy in the loss of W; the paper has 0.
    meta_batch_size : int, optional
        Clean rows in a step; default: `batch_size`.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy rows that no training sees, to select T by. 0, as published: the last T is kept. A
        `train_split` replaces it.
    from_warm_up : bool, default=True
        Start from the weights of a net trained by cross-entropy. False, as published: from the initial ones.
    **params
        As in `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T that was selected; `transition_history_` has that of the training.
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        T at the start and after each epoch; with more than 500 classes, at the start and the end alone.
    noise_model_, class_counts_
        As in `NoiseModelMixin`.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020.

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
    _parameter_constraints: ClassVar = {
        **NoisyLabelClassifier._parameter_constraints,
        "warm_up_epochs": [COUNT, None],
        "transition_lr": [NUMBER],
        "inner_lr": [NUMBER, None],
        "meta_weight": [NUMBER],
        "meta_batch_size": [COUNT, ALL_ROWS, None],
        "validation_fraction": [FRACTION],
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
            validation_fraction=self.validation_fraction,  # labels that the warm-up has memorised could not select T
        )
        clean = CleanBatches(run.clean, self.meta_batch_size or self.batch_size)
        self.net_ = run.train(
            "meta_transition",
            module=warm_up.plain_module_ if self.from_warm_up else None,
            loss=ForwardLoss(start),
            update=MetaGradient(clean, lr=self.transition_lr, inner_lr=self.inner_lr),
            select=HeldOutLikelihood(),
            clean_batches=clean,  # each batch serves the look-ahead and, if it has a weight, the step
            clean_weight=self.meta_weight,
            validation_fraction=self.validation_fraction,
        )
        keep_transition(self, run, start, self.net_)
