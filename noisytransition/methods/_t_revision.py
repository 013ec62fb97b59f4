"""T-Revision: importance reweighting by T, then a slack variable dT is learned with the network."""

from typing import Any, ClassVar

import torch
from numpy.typing import ArrayLike

from ..base._classifier import NoisyLabelClassifier
from ..base._noise_model_mixin import NoiseModelMixin
from ..fitting._checks import COUNT, FRACTION, NUMBER
from ..fitting._parameters import Module
from ..fitting._run import Run
from ..fitting._starts import keep_transition, start_of_transition
from ..losses import ImportanceReweightedLoss
from ..selection import BestEpoch
from ..updates import ByGradient


class TRevisionClassifier(NoiseModelMixin, NoisyLabelClassifier):
    """Estimate T by cross-entropy, train with importance weights from T, then learn a correction dT and the network.

    With p = f(x), the last two stages minimise ``mean of beta * cross-entropy`` with ``beta = p_y / ((T + dT)' p)_y``:
    first with dT = 0 and constant beta, then with gradients through beta to dT and to the network. Each stage keeps its
    epoch with the best accuracy on held-out noisy rows, predicted through T + dT. The minimum of the loss need not be
    at a good T, so large steps of dT can make T much worse.

    Parameters
    ----------
    transition_init : str or array-like, default="anchor"
        Start of T, as in `docs/all_classifiers.rst`. With clean rows, "gold" is nearer to the truth.
    warm_up_epochs : int, optional
        Epochs of the warm-up by cross-entropy that the network goes on from, and T comes from; default: `max_epochs`.
    revision_lr : float, default=5e-7
        Step size of the last stage, of dT and of the network. The paper's: with Adam, the optimiser of this stage, an
        entry moves by about `revision_lr` in a step.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy rows held out to select epochs. 0: the last epoch of every stage is kept. A `train_split`
        replaces it; a callback with ``load_best=True`` replaces the selection.
    **params
        As in `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T + dT, projected: negative entries set to 0, rows made to sum to 1.
    transition_revision_ : ndarray of shape (n_classes, n_classes)
        dT as it was learned.
    noise_model_, class_counts_
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
           [0.2, 0.1, 0.7]])
    """

    _PUBLISHED: ClassVar = {}
    _parameter_constraints: ClassVar = {
        **NoisyLabelClassifier._parameter_constraints,
        "warm_up_epochs": [COUNT, None],
        "revision_lr": [NUMBER],
        "validation_fraction": [FRACTION],
    }

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

    def _fit(self, run: Run) -> None:
        of_every_stage: dict[str, Any] = {
            "select": BestEpoch("valid_noisy_acc", lower_is_better=False),
            "validation_fraction": self.validation_fraction,
        }
        start, warm_up = start_of_transition(
            run, self.transition_init, self.warm_up_epochs, needs_net=True, **of_every_stage
        )
        loss = ImportanceReweightedLoss(start)  # T stays at its start; the last stage adds dT to it
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
