"""T in a fit: where it starts, the warm-up that the start comes from, and what is kept of it."""

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..nets import NoisyLabelNet
from ..transition import (
    anchor_transition_matrix,
    confusion_transition_matrix,
    count_transition_matrix,
    denoise_proba,
    gold_transition_matrix,
    symmetric_noise,
)
from ..transition._checks import check_transition_matrix
from ..transition._estimation import floor_transition_matrix, normalise_rows
from ..transition._labels import in_class_order
from ..transition._noise_model import LabelNoiseModel
from ..transition._shrinkage import shrunk_to_symmetric
from ._checks import check_checkpoints
from ._run import Run

# starts that a warm-up gives, and all by name
_OF_WARM_UP = ("gold", "gold-shrunk", "anchor", "confusion")
_STARTS = (*_OF_WARM_UP, "count", "diagonal")
# noise rate of "diagonal": a choice, about that of labels from crowds and rules
_DIAGONAL_RATE = 0.2
# smallest entry of the start, times n_classes: from exactly 0 no gradient moves an entry
_FLOOR = 1e-3
# maximum number of iterations for the class counts: one row, so they cost little; a choice, not measured
_MAX_ITER = 1000


def start_of_transition(
    run: Run,
    init: str | ArrayLike,
    epochs: int | None = None,
    *,
    needs_net: bool = False,
    percentile: float | Literal["auto"] | None = None,
    **of_warm_up: Any,
) -> tuple[NDArray[np.float64], Any]:
    """Start of T, and the warm-up that it comes from: a net that is trained by cross-entropy on the noisy rows.

    Methods that do not learn T keep it at this start.

    Parameters
    ----------
    run : Run
    init : str or array-like of shape (n_classes, n_classes)
        The parameter `transition_init`: a name of `docs/all_classifiers.rst`, or T in class order.
    epochs : int, optional
        Epochs of the warm-up; default: those of the fit.
    needs_net : bool, default=False
        Whether the method needs the warm-up too. If not, it is trained only for a start that comes from it.
    percentile : float, "auto" or None
        Of "anchor", as in `anchor_transition_matrix`.
    **of_warm_up
        How the warm-up is trained, as in `Run.train`.

    Returns
    -------
    T : ndarray of shape (n_classes, n_classes)
        Entries are at least 1e-3 / n_classes: the meta-gradient of the exact identity is zero.
    net : NoisyLabelNet or None
        The warm-up, if it was trained.

    Raises
    ------
    ValueError
        Before any training, for a start that is not valid or needs other data, and for callbacks and held-out rows
        that do not allow to learn T.
    """
    check_checkpoints(run.params["callbacks"], run.params)
    _check_validation_fraction(run, of_warm_up.get("validation_fraction", 0.0))
    _check_start(run, init)
    net = None
    if needs_net or (isinstance(init, str) and init in _OF_WARM_UP):
        net = run.train("warm_up", max_epochs=run.params["max_epochs"] if epochs is None else epochs, **of_warm_up)
    T = _start_by_name(init, run, net, percentile) if isinstance(init, str) else in_class_order(init, run.classes)
    return floor_transition_matrix(T, _FLOOR / len(run.classes)), net


def _check_validation_fraction(run: Run, fraction: float) -> None:
    if fraction and run.params.get("train_split") is None and len(run.noisy) * (1 - fraction) < 1:
        raise ValueError(
            f"validation_fraction={fraction} of {len(run.noisy)} noisy rows leaves none to train on; give 0, or more "
            "rows."
        )


def _check_start(run: Run, init: str | ArrayLike) -> None:
    if not isinstance(init, str):
        check_transition_matrix(init, n_classes=len(run.classes), name="transition_init")
        return
    if init not in _STARTS:
        raise ValueError(
            f"transition_init={init!r}; give one of {list(_STARTS)}, or an array of shape (n_classes, n_classes) whose "
            "rows sum to 1."
        )
    lacks = ""
    if init.startswith("gold") and not len(run.clean):
        lacks = "clean data: fit(..., meta=(X_meta, y_meta))"
    if init == "count" and "noisy_label" not in run.clean.columns:
        lacks = "the noisy labels of the clean rows: y_verified beside given labels, or y_meta_noisy"
    if lacks:
        raise ValueError(f"transition_init={init!r} needs {lacks}.")


def _start_by_name(name: str, run: Run, net: Any, percentile: float | Literal["auto"] | None) -> NDArray[np.float64]:
    """Start of T by name; with "gold" and "gold-shrunk", the row of a class without clean rows is its anchor point."""
    c = len(run.classes)
    if name == "diagonal":
        return symmetric_noise(c, _DIAGONAL_RATE)
    if name == "count":  # with one pseudo-count for each row of T: unseen flips stay possible
        given, weights = run.clean.columns["noisy_label"], run.clean.columns.get("sample_weight")
        is_pair = given >= 0
        true, given = run.clean.label[is_pair], given[is_pair]
        if weights is None or not np.ptp(weights):
            return count_transition_matrix(true, given, c, smoothing=1 / c)
        counts = np.bincount(c * true + given, weights[is_pair], minlength=c * c).reshape(c, c)
        return normalise_rows(counts + 1 / c)
    if name == "anchor":
        return anchor_transition_matrix(net.predict_proba(run.noisy), percentile=percentile)
    if name == "confusion":
        return confusion_transition_matrix(net.predict_proba(run.noisy), run.noisy.label)
    missing = None
    if absent := classes_without_clean_rows(run):
        warnings.warn(
            f"no clean row of class {absent}: its row of T starts from an anchor point.", UserWarning, stacklevel=5
        )
        missing = anchor_transition_matrix(net.predict_proba(run.noisy))
    proba = net.predict_proba(run.clean)
    T = gold_transition_matrix(proba, run.clean.label, missing=missing)
    return T if name == "gold" else shrunk_to_symmetric(T, proba, run.clean.label)


def classes_without_clean_rows(run: Run) -> list[Any]:
    """Labels of which there is no clean row."""
    absent = np.setdiff1d(np.arange(len(run.classes)), run.clean.label)
    labels: list[Any] = run.classes[absent].tolist()
    return labels


def keep_transition(clf: Any, run: Run, start: NDArray[np.float64], net: NoisyLabelNet | None = None) -> None:
    """Set the fitted attributes of T: `noise_model_`, `transition_init_` and `transition_history_`.

    The class counts are those under which the counts of the noisy labels are most likely, given T.

    Parameters
    ----------
    clf : NoisyLabelClassifier
    run : Run
    start : ndarray of shape (n_classes, n_classes)
        T where it started.
    net : NoisyLabelNet, optional
        Net whose loss has learned T; default: T stays at its start.
    """
    T, history = start, [start]
    if net is not None:
        update: Any = net.update
        T = net.criterion_.transition_matrix
        history = update.transition_history_ or [start, T]  # of many classes the update has no history
    noisy = np.bincount(run.noisy.label, minlength=len(T))
    counts = noisy.sum() * denoise_proba([noisy / noisy.sum()], T, n_iter=_MAX_ITER)[0]
    clf.noise_model_ = LabelNoiseModel.from_transition_matrix(T, run.classes, counts)
    clf.transition_init_, clf.transition_history_ = history[0], np.stack(history)
