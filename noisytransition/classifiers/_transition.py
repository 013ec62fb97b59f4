"""Base class of classifiers with a transition matrix T: its start, its fitted attributes, and methods that use it."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..nets import NoisyLabelNet
from ..transition import (
    check_count,
    check_transition_matrix,
    denoise_proba,
    floor_transition_matrix,
    in_class_order,
)
from ._base import NoisyLabelClassifier
from ._checks import check_checkpoints, check_flag, check_number
from ._data import Samples
from ._label_issues import LabelIssuesMixin
from ._noise_report import NoiseReportMixin
from ._parameters import Module
from ._run import Run
from ._starts import Anchor, Start, starts
from ._transition_summary import TransitionSummaryMixin

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
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    transition_init : str or array-like of shape (n_classes, n_classes), default="gold"
        Start of T. `ForwardClassifier` and `GLCClassifier` do not change T after it.

        * "gold": mean posterior of the clean rows of each class under a net trained by cross-entropy, the warm-up;
        * "gold-shrunk": the same, shrunk towards symmetric noise as far as the clean rows of a class are few;
        * "anchor": posterior of the warm-up at the most typical row of each class;
        * "confusion", "confusion-soft": counts of the noisy labels by the warm-up's prediction, or by its posterior;
        * "count": counts of pairs of true and noisy labels of the clean rows;
        * "diagonal": 0.8 on the diagonal; "identity";
        * "auto": "gold" if there is clean data, else a start without clean data that depends on the method; what it is
          in methods with another default, they say;
        * an array: row i, column j is P(noisy j | true i), in the order of `classes_`.
    transition_floor : float, optional
        Smallest entry of the start of T; default 1e-3 / n_classes.
    warm_up_epochs : int, optional
        Epochs of the warm-up; default: `max_epochs`. A net that is trained too little gives a start far from T, and so
        does one that has memorised the noisy labels.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks, distributed
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, like ``**net_params``.

    Notes
    -----
    During a training, `transition_history_`, the scores in the history, callbacks and
    ``net.criterion_.transition_matrix`` have the T that the loss uses at that moment. After it, `transition_matrix_` is
    the T that was kept, and the loss holds the same T.
    """

    #: fraction of the noisy rows held out, in methods that select by them
    validation_fraction: float = 0.0
    #: whether the net that is trained through T starts from the warm-up's weights, in methods with this choice
    from_warm_up: bool | str = False
    #: what "auto" means without clean data
    _start_without_clean_data = "anchor"

    def __init__(
        self,
        module: Module = None,
        *,
        transition_init: str | ArrayLike = "gold",
        transition_floor: float | None = None,
        warm_up_epochs: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.transition_floor = transition_floor
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

    def _keep_transition(
        self, run: Run, fixed: NDArray[np.float64] | None = None, *, start: NDArray[np.float64] | None = None
    ) -> None:
        """Set the fitted attributes of T: of the trained net's loss, or of a T that was fixed.

        Of many classes the update has no history of T; what is known of it then is `start`, if given, and the end.
        """
        T = self.net_.criterion_.transition_matrix if fixed is None else fixed
        recorded = self.net_.update.transition_history_ if fixed is None else [fixed]
        history = recorded or ([T] if start is None else [start, T])
        noisy = np.bincount(run.noisy.label, minlength=len(T))
        self.transition_history_ = np.stack(history)
        self.transition_init_, self.transition_matrix_ = self.transition_history_[0], T
        # the counts of the true classes under which those of the noisy labels are most likely
        self.class_counts_ = noisy.sum() * denoise_proba([noisy / noisy.sum()], T, n_iter=_MAX_ITER)[0]

    # ---- the start of T
    def _starts(self) -> dict[str, Start]:
        """Starts of T by name."""
        return starts(Anchor())

    def _start(self, run: Run, warm_up: NoisyLabelNet | None = None, **selection: Any) -> NDArray[np.float64]:
        """Start of T, with a lower bound of its entries: the meta-gradient of the exact identity is zero.

        Parameters
        ----------
        run : Run
        warm_up : NoisyLabelNet, optional
            Net trained by cross-entropy; default: one is trained if the start needs it.
        **selection
            ``select`` and ``held_out`` of that training.
        """
        if not isinstance(self.transition_init, str):
            return self._floored(in_class_order(self.transition_init, run.classes))
        start = self._starts()[self._start_name(run)]
        return self._floored(start.matrix(run, lambda: warm_up or self._warm_up(run, **selection)))

    def _start_name(self, run: Run) -> str:
        name = str(self.transition_init)
        return name if name != "auto" else "gold" if run.has_clean else self._start_without_clean_data

    def _warm_up(self, run: Run, stage: str = "warm_up", **params: Any) -> NoisyLabelNet:
        """Train by cross-entropy on the noisy rows: a model of the noisy labels, from which T is estimated."""
        epochs = self.max_epochs if self.warm_up_epochs is None else self.warm_up_epochs
        return run.train(stage, max_epochs=epochs, **params)

    def _warm_up_to_go_on_from(self, run: Run, stage: str = "warm_up", **params: Any) -> NoisyLabelNet | None:
        """Train the warm-up whose weights the next net starts from; None, for a new net, by `from_warm_up`."""
        return self._warm_up(run, stage, **params) if self._goes_on_from_warm_up(run) else None

    def _goes_on_from_warm_up(self, run: Run) -> bool:
        if not isinstance(self.from_warm_up, str):
            return bool(self.from_warm_up)
        is_named = isinstance(self.transition_init, str)  # "auto"
        return is_named and self._starts()[self._start_name(run)].needs_warm_up

    def _floored(self, T: ArrayLike) -> NDArray[np.float64]:
        floor = 1e-3 / len(np.asarray(T)) if self.transition_floor is None else self.transition_floor
        return floor_transition_matrix(T, floor)

    # ---- checks
    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_checkpoints(self.callbacks, self._net_params)
        check_flag(self, "from_warm_up", auto=True)
        if self.warm_up_epochs is not None:
            check_count(self.warm_up_epochs, 1, "warm_up_epochs")
        if self.transition_floor is not None:
            check_number(self, "transition_floor", high=0.5)
        if not isinstance(self.transition_init, str):
            check_transition_matrix(self.transition_init, name="transition_init")
        elif self.transition_init not in (valid := ["auto", *self._starts()]):
            raise ValueError(
                f"transition_init={self.transition_init!r}; valid are {valid} or an array of shape "
                "(n_classes, n_classes) whose rows sum to 1."
            )

    def _check_data(self, run: Run) -> None:
        super()._check_data(run)
        c, held_out = len(run.classes), self.validation_fraction
        if held_out and run.params.get("train_split") is None and len(run.noisy) * (1 - held_out) < 1:
            raise ValueError(
                f"validation_fraction={held_out} of {len(run.noisy)} noisy rows leaves none to train on; give 0, or "
                "more rows."
            )
        if self.transition_floor is not None and self.transition_floor >= 1 / c:
            raise ValueError(f"transition_floor={self.transition_floor} for {c} classes; give less than 1 / {c}.")
        if not isinstance(self.transition_init, str):
            check_transition_matrix(self.transition_init, n_classes=c, name="transition_init")
        elif refusal := self._starts()[self._start_name(run)].refusal(run):
            raise ValueError(f"transition_init={self.transition_init!r} {refusal}.")
