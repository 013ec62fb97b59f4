"""T-Revision: importance reweighting by T, then joint training of the network and a correction dT."""

from __future__ import annotations
from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._parameters import CONSTRAINTS, POSITIVE, Module
from ..fitting._run import FitContext
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import ImportanceReweightedLoss
from ..selection import BestEpoch
from ..updates import ByGradient


class TRevisionClassifier(NoiseModelMixin, NoisyLabelClassifier):
    """Train with importance weights from a transition matrix T, then learn a correction dT jointly with the network.

    A warm-up by cross-entropy gives T. With p = f(x), both later stages minimise ``mean of beta * cross-entropy`` with
    ``beta = p_y / ((T + dT)' p)_y``: the first with dT = 0 and constant beta, the second with gradients through beta to
    dT and the network. Each stage selects the epoch with the best accuracy on held-out noisy samples, predicted through
    T + dT. A lower loss does not imply a better T, so a large learning rate of dT can make T much worse.

    Parameters
    ----------
    transition_init : str or array-like, default="anchor"
        Initial T, or its estimator (:ref:`starts`). With clean samples, "gold" is more accurate.
    warm_up_epochs : int, optional
        Epochs of the cross-entropy warm-up. Default: `max_epochs`.
    revision_lr : float, default=5e-7
        Learning rate of the last stage, for dT and the network, as in the paper. Its optimiser is Adam, so an entry
        moves by about `revision_lr` per step.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy samples held out to select epochs. 0 selects the last epoch of each stage. A `train_split`
        replaces this parameter; a callback with ``load_best=True`` replaces the selection.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        Projection of T + dT: negative entries set to 0, then rows normalised.
    transition_revision_ : ndarray of shape (n_classes, n_classes)
        dT before the projection.
    noise_model_, noisy_class_counts_
        As in `NoiseModelMixin`.
    transition_init_, transition_history_
        As in `MetaTransitionClassifier`.
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
    array([[0.5, 0.3, 0.1],
           [0.3, 0.4, 0.3],
           [0.2, 0.2, 0.7]])
    """

    _PUBLISHED: ClassVar = {}
    _parameter_constraints: ClassVar = CONSTRAINTS | {"revision_lr": [POSITIVE]}

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "anchor",
        warm_up_epochs: int | None = None,
        revision_lr: float = 5e-7,
        validation_fraction: float = 0.1,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs
        self.revision_lr = revision_lr
        self.validation_fraction = validation_fraction

    def _fit(self, run: FitContext) -> None:
        of_every_stage: dict[str, Any] = {
            "select": BestEpoch("valid_noisy_acc", lower_is_better=False),
            "validation_fraction": self.validation_fraction,
        }
        start, warm_up = start_of_transition(
            run, self.transition_init, self.warm_up_epochs, needs_net=True, **of_every_stage
        )
        loss = ImportanceReweightedLoss(start)  # the last stage adds dT; T itself stays fixed
        reweighted = run.train("reweighting", module=warm_up.plain_module_, loss=loss, **of_every_stage)
        self.net_ = run.train(
            "revision",
            module=reweighted.plain_module_,
            loss=loss,
            update=ByGradient(),
            optimizer=torch.optim.Adam,
            lr=self.revision_lr,
            **of_every_stage,
        )
        keep_transition(self, run, start, self.net_)
        self.transition_revision_ = self.net_.criterion_.revision.detach().double().cpu().numpy()
