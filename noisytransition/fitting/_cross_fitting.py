"""Joint training of network and T on noisy and clean samples, and out-of-fold posteriors."""

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from skorch.callbacks import Callback, Checkpoint, EarlyStopping, LoadInitState, LRScheduler
from torch import nn

from ..labels._draw import in_order_of_appearance
from ..labels._read import Labels
from ..likelihood._out_of_fold import Candidate, OutOfFold, out_of_fold_of
from ..nets import NoisyLabelNet, Rows
from ..nets._net import DivergenceError
from ..nets._rows import noisy_and_clean
from ..updates import PosteriorCounts
from ._run import FitContext

# values of noisy and of clean samples
OfBoth = tuple[NDArray, NDArray]

# compared numbers of epochs, at equal distances
_N_CANDIDATES = 8
# running counts of T average over about a quarter of an epoch and at least four batches
_AVERAGED = 0.25
# fraction of the training before the first update of T, while the network knows little about the classes
_BURN_IN = 0.1

# callbacks that depend on the held-out samples, epochs or weights of one training
_BOUND = (Checkpoint, EarlyStopping, LoadInitState, LRScheduler)


class HeldOutPosteriors(Callback):
    """Predict sets of held-out samples after given numbers of epochs and at the end of the training."""

    def __init__(self, sets: Sequence[Rows], epochs: Sequence[int]) -> None:
        self.sets = sets
        self.epochs = epochs
        self.posteriors_: dict[int, list[NDArray]] = {}  # of each set, by number of epochs

    def on_epoch_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        if len(net.history) in self.epochs:
            self.on_train_end(net)

    def on_train_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Predict, also at the end: EarlyStopping may have stopped the training or restored an earlier epoch."""
        none = np.empty((0, len(net.classes)))
        self.posteriors_[len(net.history)] = [net.predict_proba(rows) if len(rows) else none for rows in self.sets]

    def after(self, epochs: int) -> list[NDArray]:
        """Return the posteriors after a number of epochs, or at the end if the training stopped earlier."""
        return self.posteriors_[min(epochs, max(self.posteriors_))]


def predict_from_clean(run: FitContext, stage: str, clean: Rows, rows: Rows) -> NDArray | None:
    """Posteriors by a network of clean samples alone, without the user's callbacks of `_BOUND`; None if it diverges."""
    kept = [(name, callback) for name, callback in run.params["callbacks"] if not isinstance(callback, _BOUND)]
    of_clean = copy(run)
    of_clean.params = run.params | {"callbacks": kept, "train_split": None, "labels": "clean"}
    if len(clean) < run.params["batch_size"] and "iterator_train__drop_last" in run.params:
        of_clean.params["iterator_train__drop_last"] = False  # it would drop all batches
    try:
        return of_clean.train(stage, clean).predict_proba(rows)
    except DivergenceError:
        return None


def train_on_both(run: FitContext, stage: str, noisy: Rows, clean: Rows, **params: Any) -> NoisyLabelNet:
    """Train on both in batches of up to twice `batch_size`; an epoch has as many steps as on the noisy samples."""
    share = min(len(clean) / len(noisy), 1.0)
    size = run.params["batch_size"]
    size = ceil(size * (1 + share)) if size > 0 else size
    return run.train(stage, noisy_and_clean(noisy, clean), batch_size=size, **params)


def cross_fit(
    run: FitContext, loss: Callable[[], nn.Module], *, cv: int, n_jobs: int | None
) -> tuple[OutOfFold, NDArray | None]:
    """Train outside each fold in turn and return out-of-fold posteriors after each number of epochs, in sample order.

    The second result has the posteriors of the clean samples by networks trained on the other clean samples alone; None
    if there are too few samples, or if one of the networks diverges.
    """
    epochs = np.unique(-(-run.params["max_epochs"] * np.arange(1, _N_CANDIDATES + 1) // _N_CANDIDATES)).tolist()
    folds = fold_of_samples(run.labels.labelled(), cv, run.seed)
    # a network of clean samples alone would never predict a class without samples, which the folds need, too
    per_class = np.bincount(run.clean.label, minlength=len(run.classes))
    train = partial(_train_without, loss=loss, epochs=epochs, alone=per_class.min() >= 2)
    tasks = {f"fold_{k}": partial(train, fold=(folds[0] == k, folds[1] == k)) for k in range(cv)}
    posteriors, of_alone = zip(*run.train_parts(tasks, n_jobs), strict=True)
    has_all = all(proba is not None for proba in of_alone)
    return _out_of_fold(run.labels, folds, epochs, posteriors), joined(of_alone, folds[1]) if has_all else None


def joined(of_folds: Sequence[NDArray], folds: NDArray[np.intp]) -> NDArray:
    """Join the values of the samples of all folds, in the order of the samples."""
    of_all = np.empty((len(folds), of_folds[0].shape[1]), dtype=of_folds[0].dtype)
    for k, values in enumerate(of_folds):
        of_all[folds == k] = values
    return of_all


def _train_without(
    run: FitContext,
    stage: str,
    *,
    loss: Callable[[], nn.Module],
    fold: OfBoth,
    epochs: Sequence[int],
    alone: bool,
) -> tuple[list[list[NDArray]], NDArray | None]:
    """Train a network outside a fold; return its posteriors of the fold, and those of one of clean samples alone.

    The first have those of the noisy samples with all unlabelled ones, and of the clean samples.
    """
    noisy = run.noisy.take(np.flatnonzero(~fold[0]))
    clean = run.clean.take(np.flatnonzero(~fold[1]))
    clean_out = run.clean.take(np.flatnonzero(fold[1]))
    out = run.noisy.take(np.flatnonzero(fold[0]))
    # one set: each prediction draws a seed, and a fit draws the same ones without the unlabelled samples
    out = noisy_and_clean(out, run.unlabelled) if len(run.unlabelled) else out
    held_out = HeldOutPosteriors([out, clean_out], epochs)
    update = _count_update(run, len(noisy))
    train_on_both(run, stage, noisy, clean, loss=loss, update=update, callbacks=[("held_out", held_out)])
    of_alone = predict_from_clean(run, f"{stage}_clean", clean, clean_out) if alone else None
    return [held_out.after(n) for n in epochs], of_alone


def _count_update(run: FitContext, n_noisy: int) -> PosteriorCounts:
    """Update of T by running counts, which begins and averages after fractions of the steps on the noisy samples."""
    size = run.params["batch_size"]
    size = size if 0 < size < n_noisy else n_noisy
    rate = min(size / (_AVERAGED * n_noisy), _AVERAGED)
    return PosteriorCounts(rate, burn_in=int(_BURN_IN * run.params["max_epochs"] * n_noisy / size))


def _out_of_fold(labels: Labels, folds: OfBoth, epochs: list[int], posteriors: Any) -> OutOfFold:
    """Join the posteriors of all folds in the order of the samples, and add the labels."""
    noisy, clean = folds
    has_label = labels.noisy >= 0
    candidates = []
    for n, *of_folds in zip(epochs, *posteriors, strict=True):
        of_noisy, of_clean = zip(*of_folds, strict=True)
        split = (np.split(of, [(noisy == k).sum()]) for k, of in enumerate(of_noisy))
        of_labelled, of_unlabelled = zip(*split, strict=True)
        proba = np.empty((len(has_label), len(labels.classes)), dtype=of_noisy[0].dtype)
        proba[has_label] = joined(of_labelled, noisy)
        proba[~has_label] = np.mean(of_unlabelled, axis=0)
        candidates.append(Candidate(n, proba, joined(of_clean, clean)))
    return out_of_fold_of(candidates[0], labels)._replace(candidates=candidates)


def fold_of_samples(labels: Labels, cv: int, seed: int) -> OfBoth:
    """Draw a fold of each noisy and of each clean sample, stratified by label; a group is in one fold.

    Groups are stratified by the label of their first sample, which is a clean one if they have any.
    """
    random = np.random.default_rng(seed)
    groups = np.arange(len(labels.true)) if labels.groups is None else labels.groups
    codes = in_order_of_appearance(np.concatenate([groups[labels.is_clean], groups[labels.is_noisy]]))
    of_clean, of_noisy = np.split(codes, [len(labels.clean)])
    n_with_clean = of_clean.max(initial=-1) + 1
    _, first = np.unique(codes, return_index=True)
    label = np.concatenate([labels.clean, labels.noisy])[first]
    folds_of_others = fold_of_rows(label[n_with_clean:], cv, random)
    folds = np.append(fold_of_rows(label[:n_with_clean], cv, random), folds_of_others)
    return folds[of_noisy], folds[of_clean]


def fold_of_rows(y: NDArray, n: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw a stratified fold of each sample.

    scikit-learn's `StratifiedKFold` raises if every class has fewer samples than folds, such as a few clean samples.
    """
    order = random.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), dtype=np.intp)
    folds[order] = np.arange(len(y)) % n
    return folds


def check_folds(labels: Labels, cv: int) -> None:
    """Raise if noisy samples, or groups of them, are fewer than folds; clean samples may be fewer."""
    groups = np.arange(len(labels.true)) if labels.groups is None else labels.groups
    if (n := len(np.unique(groups[labels.is_noisy]))) < cv:
        raise ValueError(f"cv={cv} needs at least {cv} noisy samples, or groups of them, got {n}. Lower cv.")
