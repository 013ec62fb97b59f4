"""Initial T of a fit, the warm-up that it is estimated from, and the fitted attributes of T."""

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..labels._arrays import in_class_order, shortened
from ..likelihood._fit import gold_start
from ..nets import NoisyLabelNet
from ..noise_model._model import LabelNoiseModel
from ..transition import anchor_transition_matrix, confusion_transition_matrix, denoise_proba, symmetric_noise
from ..transition._checks import check_transition_matrix
from ..transition._estimation import floor_transition_matrix, normalise_rows, pair_counts
from ._run import FitContext

# noise rate of "diagonal", typical for labels from crowdsourcing and rules: a choice, not measured
_DIAGONAL_RATE = 0.2
# smallest entry of the initial T, times n_classes: gradients cannot move an entry of exactly 0
_FLOOR = 1e-3
# maximum number of iterations for the class counts, which are cheap: a choice, not measured
_MAX_ITER = 1000


def start_of_transition(
    run: FitContext,
    init: str | ArrayLike,
    epochs: int | None = None,
    *,
    needs_net: bool = False,
    percentile: float | Literal["auto"] | None = None,
    **of_warm_up: Any,
) -> tuple[NDArray[np.float64], Any]:
    """Estimate the initial T, with a warm-up by cross-entropy on the noisy samples if needed or with `needs_net`.

    `init` is the parameter `transition_init`: a name in `docs/methods/index.rst`, or T in class order. The warm-up has
    the epochs of the fit by default, and the parameters `of_warm_up` of `FitContext.train`. `percentile` is as in
    `anchor_transition_matrix`. Return T, with entries of at least 1e-3 / n_classes since the meta-gradient of the exact
    identity is zero; and the net of the warm-up, or None.
    """
    T = None
    if not isinstance(init, str):
        T = check_transition_matrix(in_class_order(init, run.classes), len(run.classes), "transition_init")
    elif init == "diagonal":
        T = symmetric_noise(len(run.classes), _DIAGONAL_RATE)
    elif init == "count":
        T = _from_counts(run)
    elif init.startswith("gold") and not run.n_clean:
        raise ValueError(f"transition_init={init!r} needs clean data. Pass y_verified, or meta=(X_clean, y_clean).")
    net = None
    if needs_net or T is None:
        net = run.train("warm_up", max_epochs=run.params["max_epochs"] if epochs is None else epochs, **of_warm_up)
    if T is None:
        T = _from_warm_up(init, run, net, percentile)
    return floor_transition_matrix(T, _FLOOR / len(run.classes)), net


def _from_counts(run: FitContext) -> NDArray[np.float64]:
    """Estimate T from pairs of true and noisy labels; one pseudo-count per row of T keeps unseen flips possible."""
    noisy = run.labels.noisy_of_clean
    if not (noisy >= 0).any():
        raise ValueError("transition_init='count' needs clean samples with noisy labels: y_verified, or y_clean_noisy.")
    c = len(run.classes)
    return normalise_rows(pair_counts(run.clean.label, noisy, c, run.clean.columns.get("sample_weight")) + 1 / c)


def _from_warm_up(
    name: Any, run: FitContext, net: Any, percentile: float | Literal["auto"] | None
) -> NDArray[np.float64]:
    """Estimate T; "gold" and "gold-shrunk" use an anchor point for a class without clean samples."""
    if name == "anchor":
        return anchor_transition_matrix(net.predict_proba(run.noisy), percentile=percentile)
    if name == "confusion":
        return confusion_transition_matrix(net.predict_proba(run.noisy), run.noisy.label)
    of_noisy = None
    if absent := classes_without_clean_rows(run):
        text = f"No clean sample of class {shortened(absent)}: an anchor point gives its row of T. Verify some."
        warnings.warn(text, stacklevel=5)
        of_noisy = net.predict_proba(run.noisy)
    return gold_start(of_noisy, net.predict_proba(run.clean), run.clean.label, is_shrunk=name == "gold-shrunk")


def classes_without_clean_rows(run: FitContext) -> list[Any]:
    return run.classes[np.setdiff1d(np.arange(len(run.classes)), run.clean.label)].tolist()


def keep_transition(clf: Any, run: FitContext, start: NDArray[np.float64], net: NoisyLabelNet | None = None) -> None:
    """Set the fitted attributes of T: `noise_model_`, `transition_init_` and `transition_history_`.

    T is that in the loss of the net, by default the initial T, `start`. The class counts are the maximum-likelihood
    estimate from the counts of the noisy labels, given T.
    """
    T = start
    history = [start]
    if net is not None:
        update: Any = net.update
        T = net.criterion_.transition_matrix
        history = update.transition_history_ or [start, T]  # there is no history for many classes
    noisy = np.bincount(run.noisy.label, minlength=len(T))
    counts = noisy.sum() * denoise_proba([noisy / noisy.sum()], T, n_iter=_MAX_ITER)[0]
    clf.noise_model_ = LabelNoiseModel.from_transition_matrix(T, run.classes, counts)
    clf.transition_init_ = history[0]
    clf.transition_history_ = np.stack(history)
