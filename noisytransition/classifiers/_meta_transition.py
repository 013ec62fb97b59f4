"""Meta transition adaptation: T is learned by the gradient of the clean loss one step ahead."""

from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike

from ..losses import ForwardLoss
from ..selection import HeldOutLikelihood
from ..transition import check_count
from ._checks import check_flag, check_fraction, check_number
from ._final import CLEAN_ROWS, OWN, WARM_UP, FinalMixin, Step, finished
from ._meta_gradient import check_meta_data, check_meta_gradient, meta_gradient, without_decay
from ._parameters import Module, Optimizer
from ._run import Run
from ._transition import TransitionClassifier


class MetaTransitionClassifier(FinalMixin, TransitionClassifier):
    r"""Learn the noise transition matrix T and the classifier together, guided by clean rows (Algorithm 1).

    In every iteration a noisy and a clean batch are drawn, and with the corrected loss
    ``L(W, T) = mean - log sum_i f_i(x; W) T[i, y]``::

        W_hat(T) = W - lr * grad_W L(W, T)                                  look-ahead, plain SGD
        Theta    = Theta - transition_lr * grad_Theta L_clean(W_hat(T))     T = row-softmax(Theta)
        W        = optimiser step on L(W, T) with the new T

    The gradient of the second line is exact, in closed form (`noisytransition.meta_gradient`).

    Where the network fits the clean rows easily, the meta-gradient carries little information and T moves away from a
    good start. Therefore a part of the noisy rows is held out (`validation_fraction`), and T is selected by the
    likelihood of their labels (`noisytransition.selection.HeldOutLikelihood`): the start is kept unless a T between it
    and the T of training is clearly more likely. The network is that of the last epoch, and starts from the weights of
    one trained by cross-entropy.

    At last the clean rows, which have taught T alone, are used for the classifier (`select_classifier`): this network,
    the one that it started from, either of them fine-tuned on the clean rows, or one of the clean rows alone,
    whichever predicts held-out clean rows best.
    ``validation_fraction=0, from_warm_up=False, select_classifier=False`` is the paper's
    algorithm.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    transition_lr : float, default=10.0
        Step size of the logits of T (the paper's beta); with 0, T keeps its start. The meta-gradient is proportional
        to the step size of the look-ahead, so `lr` scales the step of T too.
    transition_optimizer : class or str, default=torch.optim.SGD
        Optimiser of T, a class without weight decay. A callable of your own, such as a `functools.partial`, is taken as
        it is.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy rows held out to select T by; 0: the last T is kept. A `train_split` replaces it.
    transition_init : str or array-like, default="gold"
        Start of T, as in `TransitionClassifier`. T ends near its start: the T of an `EMTransitionClassifier` may be
        given as an array.
    transition_every : int, default=1
        T moves in every `transition_every`-th step only.
    transition_floor, warm_up_epochs
        As in `TransitionClassifier`.
    meta_weight : float, default=0.0
        Weight of the clean batch's cross-entropy in the loss of W; the paper has 0.
    meta_batch_size : int, optional
        Clean rows in a step; default: `batch_size`.
    select_classifier : bool, default=True
        Choose the last classifier by the cross-validated log-loss of the clean rows, each classifier at its best
        temperature: the network of the algorithm, the warm-up that it started from (`from_warm_up`), either of these or
        a new network after 1 to 50 epochs on the clean rows alone. Clean rows that are held out of these epochs have
        taught T, which favours the network of the algorithm. False, a `meta_weight` above 0 (the clean rows have
        trained the network then), fewer than 6 clean rows, or a class without any: the network of the algorithm.
        `train_split`, and callbacks that follow a score or a schedule (EarlyStopping, Checkpoint, LRScheduler), take no
        part in the trainings on the clean rows.
    inner_lr : float, optional
        Step size of the look-ahead; default: the optimiser's current one, per parameter group.
    meta_gradient_method : str, default="auto"
        How the gradient is computed: a name in `noisytransition.meta_gradient.METHODS`. All are exact except
        "difference"; "auto" takes the cheapest that works for the module.
    from_warm_up : bool or "auto", default="auto"
        Start from the weights of a net trained by cross-entropy, as in `GLCClassifier`; False, as published: from the
        initial ones. If noisy rows are held out by `validation_fraction`, that net is a second warm-up, trained without
        them: labels that it has memorised could not select T.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks, distributed
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        T of the training at the start and after each epoch (with more than 500 classes, the start and
        `transition_matrix_` alone); `transition_matrix_` is the one that was selected.
    class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy rows of each true class: the most likely, given T and the noisy labels.
    meta_gradient_method_ : str
        The method that was used.
    final_ : str
        If there was a choice, the classifier: "own", "warm-up", "fine-tuned, 10 epochs", "clean rows, 50 epochs", ...
    final_scores_ : dict of ndarray
        ``classifier`` and ``log_loss`` of the candidates.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Shu, Zhao, Xu, Meng, "Meta Transition Adaptation for Robust Deep Learning with Noisy Labels", 2020.

    Examples
    --------
    >>>     >>> from noisytransition import MetaTransitionClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(3, size=600)
    >>> X = rng.normal(size=(600, 2)) + 4 * np.array([[0, 0], [0, 1], [1, 0]])[y]
    >>> y_noisy = flip_labels(y, pair_noise(3, 0.4), random_state=0)
    >>> clf = MetaTransitionClassifier(random_state=0).fit(X[60:], y_noisy[60:], meta=(X[:60], y[:60]))
    >>> clf.transition_matrix_.round(1)
    array([[0.6, 0.4, 0. ],
           [0. , 0.6, 0.4],
           [0.4, 0. , 0.6]])
    """

    _needs_clean_data = True
    _PUBLISHED: ClassVar = {
        "transition_init": "gold",
        "validation_fraction": 0,
        "from_warm_up": False,
        "select_classifier": False,
    }

    def __init__(
        self,
        module: Module = None,
        *,
        transition_init: str | ArrayLike = "gold",
        transition_lr: float = 10.0,
        transition_optimizer: Optimizer = torch.optim.SGD,
        transition_every: int = 1,
        meta_weight: float = 0.0,
        validation_fraction: float = 0.1,
        meta_batch_size: int | None = None,
        select_classifier: bool = True,
        inner_lr: float | None = None,
        meta_gradient_method: str = "auto",
        from_warm_up: bool | str = "auto",
        **net_params: Any,
    ) -> None:
        super().__init__(module, transition_init=transition_init, **net_params)
        self.transition_lr = transition_lr
        self.transition_optimizer = transition_optimizer
        self.transition_every = transition_every
        self.meta_weight = meta_weight
        self.validation_fraction = validation_fraction
        self.meta_batch_size = meta_batch_size
        self.select_classifier = select_classifier
        self.inner_lr = inner_lr
        self.meta_gradient_method = meta_gradient_method
        self.from_warm_up = from_warm_up

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("transition_lr", "meta_weight"):
            check_number(self, name)
        check_count(self.transition_every, 1, "transition_every")
        check_fraction(self, "validation_fraction")
        check_flag(self, "select_classifier")
        check_meta_gradient(self)

    def _check_data(self, run: Run) -> None:
        super()._check_data(run)
        check_meta_data(self, run)

    def _holds_out(self, run: Run) -> bool:
        return bool(self.validation_fraction) and run.params.get("train_split") is None

    def _fit(self, run: Run) -> None:
        holds_out = self._holds_out(run)
        warm_up = None if holds_out else self._warm_up_to_go_on_from(run)
        start = self._start(run, warm_up=warm_up)
        if holds_out:  # labels that the weights have memorised could not select T, but all rows may estimate its start
            warm_up = self._warm_up_to_go_on_from(run, "net_warm_up", held_out=self.validation_fraction)
        update = meta_gradient(
            self,
            run.clean,
            lr=self.transition_lr,
            optimizer=without_decay(self.transition_optimizer),
            every=self.transition_every,
        )
        self.net_ = run.train(
            "meta_transition",
            module=warm_up and warm_up.plain_module_,
            loss=ForwardLoss(start),
            update=update,
            select=HeldOutLikelihood(),
            held_out=self.validation_fraction,
            clean_batches=update.clean,
            clean_weight=self.meta_weight,
        )
        self.meta_gradient_method_ = update.method_
        self._keep_transition(run, start=start)
        if self._chooses(run) and not self.meta_weight:
            starts = {OWN: self.net_} | ({} if warm_up is None else {WARM_UP: warm_up})
            best = self._choose_final(run, starts, [Step((*starts, CLEAN_ROWS))])
            self.net_ = finished(run, best, starts.get(best.start, self.net_))
