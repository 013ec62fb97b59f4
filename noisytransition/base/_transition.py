"""Base class of classifiers with a transition matrix T: its start, its fitted attributes, and methods that use it."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data._read import Samples
from ..fitting._checks import COUNT, FRACTION, check_checkpoints
from ..fitting._parameters import Module
from ..fitting._run import Run
from ..fitting._starts import STARTS, make_start, refusal
from ..nets import NoisyLabelNet
from ..transition import denoise_proba
from ..transition._checks import check_transition_matrix
from ..transition._estimation import floor_transition_matrix
from ..transition._labels import in_class_order
from ._classifier import NoisyLabelClassifier
from ._label_issues import LabelIssuesMixin
from ._noise_report import NoiseReportMixin
from ._transition_summary import TransitionSummaryMixin

# smallest entry of the start of T, times n_classes: from exactly 0 no gradient moves an entry
_FLOOR = 1e-3
# maximum number of iterations for the class counts: one row, so they cost little; a choice, not measured
_MAX_ITER = 1000


class TransitionClassifier(
    TransitionSummaryMixin,
    LabelIssuesMixin,
    NoiseReportMixin,
    NoisyLabelClassifier,
):
    """Base class of classifiers with a transition matrix T.

    Parameters
    ----------
    transition_init : str or array-like of shape (n_classes, n_classes), default="gold"
        Start of T. `ForwardClassifier` and `GLCClassifier` do not change T after it. Entries are at least 1e-3 /
        n_classes.

        * "gold": mean posterior of the clean rows of each class under a net trained by cross-entropy, the warm-up;
        * "gold-shrunk": the same, shrunk towards symmetric noise as far as the clean rows of a class are few;
        * "anchor": posterior of the warm-up at the most typical row of each class;
        * "confusion": noisy labels counted by the posterior of the warm-up;
        * "count": counts of pairs of true and noisy labels of the clean rows;
        * "diagonal": 0.8 on the diagonal;
        * an array, such as ``em.transition_matrix_``: row i, column j is P(noisy j | true i), in the order of
          `classes_`.
    warm_up_epochs : int, optional
        Epochs of the warm-up; default: `max_epochs`. A net that is trained too little gives a start far from T, and so
        does one that has memorised the noisy labels.
    **params
        As in `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The start that was used.
    transition_history_ : ndarray of shape (n_epochs + 1, n_classes, n_classes)
        T at the start and after each epoch; with more than 500 classes, at the start and the end alone. Of methods that
        do not learn T, T alone.
    class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy rows of each true class: the most likely, given T and the noisy labels.

    Notes
    -----
    During a training, `transition_history_`, the scores in the history, callbacks and
    ``net.criterion_.transition_matrix`` have the T that the loss uses at that moment. After it, `transition_matrix_` is
    the T that was kept, and the loss holds the same T.
    """

    #: fraction of the noisy rows held out, in methods that select by them
    validation_fraction: float = 0.0

    _parameter_constraints: ClassVar = {
        **NoisyLabelClassifier._parameter_constraints,
        "validation_fraction": [FRACTION],
        "warm_up_epochs": [COUNT, None],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        transition_init: str | ArrayLike = "gold",
        warm_up_epochs: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.warm_up_epochs = warm_up_epochs

    def predict_noisy_proba(self, X: Samples) -> NDArray:
        """Posterior of the noisy label, ``predict_proba(X) @ transition_matrix_``.

        `transition_matrix_` is the T that was kept, which can differ from the T that the network was trained with.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self.predict_proba(X) @ self.transition_matrix_

    # ---- T, from its start to its end
    def _start(
        self, run: Run, warm_up: NoisyLabelNet | None = None, percentile: Any = None, **selection: Any
    ) -> NDArray:
        """Start of T, with a lower bound of its entries: the meta-gradient of the exact identity is zero.

        Parameters
        ----------
        run : Run
        warm_up : NoisyLabelNet, optional
            Net trained by cross-entropy; default: one is trained if the start needs it.
        percentile : float, "auto" or None
            Of "anchor", as in `anchor_transition_matrix`.
        **selection
            ``select`` and ``held_out`` of that training.
        """
        if isinstance(self.transition_init, str):
            T = make_start(self.transition_init, run, lambda: warm_up or self._warm_up(run, **selection), percentile)
        else:
            T = in_class_order(self.transition_init, run.classes)
        return floor_transition_matrix(T, _FLOOR / len(run.classes))

    def _warm_up(self, run: Run, **params: Any) -> NoisyLabelNet:
        """Train by cross-entropy on the noisy rows: a model of the noisy labels, from which T is estimated."""
        epochs = run.params["max_epochs"] if self.warm_up_epochs is None else self.warm_up_epochs
        return run.train("warm_up", max_epochs=epochs, **params)

    def _keep_transition(self, run: Run, start: NDArray[np.float64], *, learned: bool = True) -> None:
        """Set the fitted attributes of T: of the trained net's loss or, where it was not learned, of its start."""
        T = self.net_.criterion_.transition_matrix if learned else start
        update: Any = self.net_.update
        # of many classes the update has no history
        history = (update.transition_history_ or [start, T]) if learned else [T]
        noisy = np.bincount(run.noisy.label, minlength=len(T))
        self.transition_history_ = np.stack(history)
        self.transition_init_, self.transition_matrix_ = self.transition_history_[0], T
        # the counts of the true classes under which those of the noisy labels are most likely
        self.class_counts_ = noisy.sum() * denoise_proba([noisy / noisy.sum()], T, n_iter=_MAX_ITER)[0]

    # ---- checks
    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_checkpoints(self.callbacks, self._net_params)
        if not isinstance(self.transition_init, str):
            check_transition_matrix(self.transition_init, name="transition_init")
        elif self.transition_init not in STARTS:
            raise ValueError(
                f"transition_init={self.transition_init!r}; give one of {list(STARTS)}, or an array of shape "
                "(n_classes, n_classes) whose rows sum to 1."
            )

    def _check_data(self, run: Run) -> None:
        super()._check_data(run)
        held_out = self.validation_fraction
        if held_out and run.params.get("train_split") is None and len(run.noisy) * (1 - held_out) < 1:
            raise ValueError(
                f"validation_fraction={held_out} of {len(run.noisy)} noisy rows leaves none to train on; give 0, or "
                "more rows."
            )
        if not isinstance(self.transition_init, str):
            check_transition_matrix(self.transition_init, n_classes=len(run.classes), name="transition_init")
        elif why := refusal(self.transition_init, run):
            raise ValueError(f"transition_init={self.transition_init!r} {why}.")
