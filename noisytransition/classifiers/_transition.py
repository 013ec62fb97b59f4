"""What classifiers with a transition matrix share: where T starts, and what can be read off it."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from skorch.dataset import ValidSplit

from ..nets import KeepBest, NoisyLabelNet, Rows
from ..transition import (
    anchor_transition_matrix,
    check_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    denoise_proba,
    floor_transition_matrix,
    gold_transition_matrix,
    symmetric_noise,
)
from ._base import NoisyLabelClassifier
from ._callbacks import check_checkpoints, selects
from ._checks import check_count, check_number
from ._class_conditional import ClassConditionalMixin
from ._joint import EM_FOLDS, JointTraining
from ._label_issues import LabelIssuesMixin

# noise rate of "diagonal", for want of any knowledge
_DIAGONAL_RATE = 0.2
# iterations for shares of the true classes
_SETTLED = 1000
_STARTS = ("auto", "gold", "em", "anchor", "confusion", "confusion-soft", "count", "diagonal", "identity")


class TransitionClassifier(ClassConditionalMixin, LabelIssuesMixin, NoisyLabelClassifier):
    """Classifier that holds T: a start for it, predictions of noisy labels, and what T is good for.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    transition_init : str or array-like of shape (n_classes, n_classes), default="gold"
        Where T starts; in `ForwardClassifier` and `GLCClassifier`, where it stays.

        * "gold": mean posterior of the clean rows of each class under a net trained by cross-entropy, the warm-up;
        * "em": the most likely T of `EMTransitionClassifier` at its defaults: a warm-up and nine trainings in folds;
        * "anchor": the warm-up's posterior at each class's most typical row;
        * "confusion", "confusion-soft": noisy labels counted by the warm-up's prediction, or its posterior;
        * "count": counts of (`y_meta`, `y_meta_noisy`);
        * "diagonal": 0.8 on the diagonal; "identity";
        * "auto": "gold" if there is clean data, else the method's own way without;
        * an array: row i, column j P(noisy j | true i), in the order of `classes_`.
    transition_floor : float, optional
        Smallest entry of T's start; default 1e-3 / n_classes.
    warm_up_epochs : int, optional
        Epochs of the warm-up; default: `max_epochs`. An under-trained net gives a start far from T, one that has
        memorised the noisy labels too.
    **net_params
        As in `NoisyLabelClassifier`.
    """

    #: noisy rows held out, in methods that choose their epochs so
    validation_fraction: float = 0.0
    #: what "auto" means without clean data
    _start_without_clean_data = "anchor"

    def __init__(
        self,
        module: Any = None,
        *,
        transition_init: Any = "gold",
        transition_floor: float | None = None,
        warm_up_epochs: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.transition_init = transition_init
        self.transition_floor = transition_floor
        self.warm_up_epochs = warm_up_epochs

    def predict_noisy_proba(self, X: Any) -> NDArray:
        """Posterior of the noisy label, ``predict_proba(X) @ transition_matrix_``.

        The T that was learned may be another than the network was trained through, where it is judged or shrunk.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...) or torch Dataset

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self.predict_proba(X) @ self.transition_matrix_

    def _keep_transition(
        self,
        history: Sequence[NDArray[np.float64]],
        learned: NDArray[np.float64],
        class_counts: NDArray[np.float64] | None = None,
    ) -> None:
        """Set the fitted attributes of T; counts of the true classes, if the method has none, follow from T."""
        self.transition_history_ = np.stack(history)
        self.transition_init_ = self.transition_history_[0]
        self.transition_matrix_ = learned
        self.class_counts_ = self._likely_class_counts(learned) if class_counts is None else class_counts

    def _likely_class_counts(self, T: NDArray[np.float64]) -> NDArray[np.float64]:
        """Counts of the true classes under which those of the noisy labels are most likely."""
        noisy = np.bincount(self._run.noisy.y, minlength=len(T))
        return noisy.sum() * denoise_proba([noisy / noisy.sum()], T, n_iter=_SETTLED)[0]

    # ---- the start of T
    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_checkpoints(self.callbacks)
        if self.warm_up_epochs is not None:
            check_count(self, "warm_up_epochs", low=1)
        if self.transition_floor is not None:
            check_number(self, "transition_floor", high=0.5)
        if not isinstance(self.transition_init, str):
            check_transition_matrix(self.transition_init, name="transition_init")
        elif self.transition_init not in _STARTS:
            raise ValueError(
                f"transition_init={self.transition_init!r}; valid are {_STARTS} or an array of shape "
                "(n_classes, n_classes) whose rows sum to 1."
            )

    def _check_data(self, noisy: Rows, meta: Rows | None) -> None:
        super()._check_data(noisy, meta)
        init, floor, c = self.transition_init, self.transition_floor, len(self.classes_)
        if self._held_out_fraction() and len(noisy) * (1 - self.validation_fraction) < 1:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} of {len(noisy)} noisy rows leaves none to train on; "
                "give 0, or more rows."
            )
        if floor is not None and floor >= 1 / c:
            raise ValueError(f"transition_floor={floor} for {c} classes; give less than 1 / {c}.")
        if not isinstance(init, str):
            check_transition_matrix(init, n_classes=c, name="transition_init")
        elif init in ("gold", "em") and meta is None:
            raise ValueError(f"transition_init={init!r} needs clean data: fit(..., meta=(X_meta, y_meta)); or 'auto'.")
        elif init == "em" and min(len(noisy), len(meta or ())) < EM_FOLDS:
            raise ValueError(f"transition_init='em' needs at least {EM_FOLDS} noisy and {EM_FOLDS} clean rows.")
        elif init == "count" and (meta is None or meta.y_noisy is None):
            raise ValueError("transition_init='count' needs the noisy labels of the clean rows: fit(y_meta_noisy=...).")

    def _warm_up(self, noisy: Rows, **net_params: Any) -> NoisyLabelNet:
        """Cross-entropy on the noisy rows: a model of the noisy labels, from which T can be read."""
        epochs = self.max_epochs if self.warm_up_epochs is None else self.warm_up_epochs
        return self._train("warm_up", noisy, max_epochs=epochs, **net_params)

    def _selection(self, best: KeepBest, *callbacks: tuple[str, Any]) -> dict[str, Any]:
        """Parameters of a stage that ends with its best epoch on noisy rows held out of it (or on a `train_split`)."""
        params: dict[str, Any] = {"callbacks": list(callbacks)} | self._held_out()
        holds_out = "train_split" in params or self._net_params.get("train_split") is not None
        if holds_out and not selects(self.callbacks):  # the user's choice of an epoch stands
            params["callbacks"].append(("keep_best", best))
        return params

    def _held_out(self) -> dict[str, Any]:
        """Parameters that hold out noisy rows, unless the user has a split or wants none."""
        fraction = self._held_out_fraction()
        # the same seed: the same rows in every stage
        return {"train_split": ValidSplit(fraction, random_state=self._run.seed)} if fraction else {}

    def _held_out_fraction(self) -> float:
        """Share of noisy rows that the method holds out; a split of the user's takes its place."""
        return 0.0 if self._net_params.get("train_split") is not None else float(self.validation_fraction)

    def _transition_start(
        self, noisy: Rows, meta: Rows | None, warm_up: Callable[[], NoisyLabelNet]
    ) -> NDArray[np.float64]:
        """T to start from, floored: at exactly the identity its meta-gradient is exactly zero."""
        T = self.transition_init
        if isinstance(T, str):
            name = T if T != "auto" else self._start_without_clean_data if meta is None else "gold"
            T = self._named_start(name, noisy, meta, warm_up)
        return self._floored(T)

    def _floored(self, T: ArrayLike) -> NDArray[np.float64]:
        floor = 1e-3 / len(self.classes_) if self.transition_floor is None else self.transition_floor
        return floor_transition_matrix(T, floor)

    def _named_start(
        self, name: str, noisy: Rows, meta: Any, warm_up: Callable[[], NoisyLabelNet]
    ) -> NDArray[np.float64]:
        if name == "diagonal":
            return symmetric_noise(len(self.classes_), _DIAGONAL_RATE)
        if name == "identity":
            warnings.warn("transition_init='identity' hardly moves; try 'diagonal'.", UserWarning, stacklevel=6)
            return np.eye(len(self.classes_))
        if name == "count":
            return self._counted(meta)
        if name == "gold":
            return self._gold(noisy, meta, warm_up)
        if name == "em":
            gold = self._floored(self._gold(noisy, meta, warm_up))
            return JointTraining(self, noisy, meta, gold, prefix="start_").find().transition.transition_matrix
        proba = warm_up().predict_proba(noisy)
        if name == "anchor":
            return self._anchors(proba)
        return confusion_transition_matrix(proba, noisy.y, soft=name == "confusion-soft")

    def _anchors(self, proba: NDArray) -> NDArray[np.float64]:
        return anchor_transition_matrix(proba)

    def _counted(self, meta: Any) -> NDArray[np.float64]:
        # one pseudo-count per row of T keeps unseen flips possible
        return count_transition_matrix(meta.y, meta.y_noisy, len(self.classes_), smoothing=1 / len(self.classes_))

    def _gold(self, noisy: Rows, meta: Any, warm_up: Callable[[], NoisyLabelNet]) -> NDArray[np.float64]:
        net, missing = warm_up(), None
        if (absent := np.setdiff1d(np.arange(len(self.classes_)), meta.y)).size:
            warnings.warn(
                f"no clean row of class {self.classes_[absent].tolist()}: its row of T starts from an anchor point.",
                UserWarning,
                stacklevel=7,
            )
            missing = self._anchors(net.predict_proba(noisy))
        return gold_transition_matrix(net.predict_proba(meta), meta.y, missing=missing)
