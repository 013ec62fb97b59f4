"""T-Revision: importance reweighting by T, then a slack variable dT is learned with the network."""

from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike

from ..losses import ImportanceReweightedLoss
from ..selection import BestEpoch
from ..transition import check_count
from ..updates import ByGradient
from ._checks import check_fraction, check_number, check_takes_step_sizes
from ._parameters import Module, Optimizer
from ._run import Run
from ._transition import TransitionClassifier


class TRevisionClassifier(TransitionClassifier):
    """Estimate T by cross-entropy, train with importance weights from T, then learn a correction dT and the network.

    With p = f(x), the last two stages minimise ``mean of beta * cross-entropy`` with ``beta = p_y / ((T + dT)' p)_y``:
    first with dT = 0 and constant beta, then with gradients through beta to dT and to the network. Each stage keeps its
    epoch with the best accuracy on held-out noisy rows, predicted through T + dT. The minimum of the loss need not be
    at a good T, so large steps of dT can make T much worse.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    revision_lr : float, default=5e-7
        Step size of the last stage, of dT and of the network. The paper's: with Adam an entry moves by about
        `revision_lr` in a step.
    revision_epochs : int, optional
        Epochs of the last stage; default: `max_epochs`, as in the second stage.
    revision_optimizer : class or str, default=torch.optim.Adam
        Optimiser of the last stage. It does not get ``optimizer__...``, so it has no weight decay; that of the
        paper's code has.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy rows held out to select epochs (in the paper's code not in the last stage). 0: the last
        epoch of every stage is kept. A `train_split` replaces it; a callback with ``load_best=True`` replaces the
        selection.
    transition_init : str or array-like, default="auto"
        As in `TransitionClassifier`. "auto" is "gold" with clean data, else "anchor", the paper's.
    transition_floor, warm_up_epochs
        As in `TransitionClassifier`.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks, distributed
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T + dT, projected: negative entries set to 0, rows made to sum to 1.
    transition_revision_ : ndarray of shape (n_classes, n_classes)
        dT as it was learned.
    transition_init_ : ndarray of shape (n_classes, n_classes)
        T.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        T, and the projected T + dT after each epoch of the last stage; with more than 500 classes, T and
        `transition_matrix_` alone.
    class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy rows of each true class: the most likely, given T and the noisy labels.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Xia et al., "Are Anchor Points Really Indispensable in Label-Noise Learning?", NeurIPS 2019, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import TRevisionClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> clf = TRevisionClassifier(revision_lr=1e-2, random_state=0).fit(X, y_noisy, meta=(X[::5], y[::5]))
    >>> clf.transition_matrix_.round(1)
    array([[0.6, 0.3, 0.1],
           [0.2, 0.3, 0.5],
           [0.1, 0.1, 0.7]])
    """

    _PUBLISHED: ClassVar = {"transition_init": "anchor"}

    def __init__(
        self,
        module: Module = None,
        *,
        revision_lr: float = 5e-7,
        revision_epochs: int | None = None,
        revision_optimizer: Optimizer = torch.optim.Adam,
        validation_fraction: float = 0.1,
        transition_init: str | ArrayLike = "auto",
        **net_params: Any,
    ) -> None:
        super().__init__(module, transition_init=transition_init, **net_params)
        self.revision_lr = revision_lr
        self.revision_epochs = revision_epochs
        self.revision_optimizer = revision_optimizer
        self.validation_fraction = validation_fraction

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_takes_step_sizes(self, "revision_optimizer")
        check_number(self, "revision_lr")
        check_fraction(self, "validation_fraction")
        if self.revision_epochs is not None:
            check_count(self.revision_epochs, 0, "revision_epochs")

    def _fit(self, run: Run) -> None:
        warm_up = self._warm_up(run, **self._best_epoch())
        start = self._start(run, warm_up=warm_up)
        loss = ImportanceReweightedLoss(start)
        reweighted = run.train("reweighting", module=warm_up.plain_module_, loss=loss, **self._best_epoch())
        self.net_ = run.train(
            "revision",
            module=reweighted.plain_module_,
            loss=loss,
            update=ByGradient(self.revision_lr),
            optimizer=self.revision_optimizer,
            lr=self.revision_lr,
            max_epochs=self.max_epochs if self.revision_epochs is None else self.revision_epochs,
            **self._best_epoch(),
        )
        self._keep_transition(run, start=start)
        self.transition_revision_ = loss.revision.detach().double().cpu().numpy()

    def _best_epoch(self) -> dict[str, Any]:
        select = BestEpoch("valid_noisy_acc", lower_is_better=False)
        return {"select": select, "held_out": self.validation_fraction}
