"""Joint training of network and T on noisy and clean rows, and posteriors of rows that are held out."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from skorch.callbacks import Callback

from ..losses import ForwardLoss
from ..nets import CleanBatches, NoisyLabelNet, Rows
from ..transition._estimation import pair_counts
from ..transition._held_out import Candidate, HeldOut
from ..updates import PosteriorCounts
from ._checks import without_bound_callbacks
from ._run import Run

# Choices, of which those of the folds and of the fine-tuning were measured.
# without folds, one training goes without a third of the noisy rows and half of the clean ones: better than a fifth and
# a half, a tenth and 0.3, a third and a third (one seed of the cells of em_transition.py)
_SPLIT = (3, 2)
# numbers of epochs that are compared, an eighth of the training apart
_N_CANDIDATES = 8
# epochs on the clean rows alone: a choice among seven numbers was no better on the design half of the zoo
_FINE_TUNING_EPOCHS = 50
# the running counts of T average over about a quarter of an epoch, and over at least four batches
_AVERAGED_EPOCHS, _HIGHEST_RATE = 0.25, 0.25
# share of the training before T first moves: until then the network knows little of the classes
_BURN_IN = 0.1


class HeldOutPosteriors(Callback):
    """Keep the posteriors of rows that the net is not trained on, after given epochs and at the end.

    Parameters
    ----------
    sets : sequence of Rows
        Held-out rows, each set of which is predicted by itself.
    epochs : sequence of int
        Numbers of epochs after which to predict.

    Attributes
    ----------
    posteriors_ : dict of int to list of ndarray of shape (n_samples, n_classes)
        By number of epochs, one array for each set.
    """

    def __init__(self, sets: Sequence[Rows], epochs: Sequence[int]) -> None:
        self.sets = sets
        self.epochs = epochs
        self.posteriors_: dict[int, list[NDArray]] = {}

    def on_epoch_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Predict after one of the given epochs."""
        if len(net.history) in self.epochs:
            self._predict(net)

    def on_train_end(self, net: NoisyLabelNet, **kwargs: Any) -> None:
        """Predict at the end too: an EarlyStopping may have ended the training or restored an earlier epoch."""
        self._predict(net)

    def _predict(self, net: NoisyLabelNet) -> None:
        self.posteriors_[len(net.history)] = [net.predict_proba(rows) for rows in self.sets]

    def after(self, epochs: int) -> list[NDArray]:
        """Return the posteriors after this number of epochs, or at the end of a training that ended earlier."""
        return self.posteriors_[min(epochs, max(self.posteriors_))]

    def release(self) -> None:
        """Drop the rows, so that a trained net does not keep them."""
        self.sets = ()


class JointTraining(NamedTuple):
    """Training on noisy rows through T and, in every step, on clean rows without it.

    Attributes
    ----------
    start : ndarray of shape (n_classes, n_classes)
        T at the start of each training in which it is learned.
    weight : float
        Weight of the clean batch's mean loss beside the noisy batch's.
    """

    start: NDArray
    weight: float

    def train(self, run: Run, stage: str, T: NDArray, clean: Rows, **params: Any) -> NoisyLabelNet:
        """Train a network on all rows through a T that is known; parameters are those of `Run.train`."""
        return run.train(stage, loss=ForwardLoss(T), **self._clean(run, clean), **params)

    def train_with_transition(
        self, run: Run, stage: str, noisy: Rows, clean: Rows, held_out: HeldOutPosteriors
    ) -> NoisyLabelNet:
        """Train a network and T together."""
        size, epochs = run.params["batch_size"], run.params["max_epochs"]
        size = size if 0 < size < len(noisy) else len(noisy)
        rate = min(size / (_AVERAGED_EPOCHS * len(noisy)), _HIGHEST_RATE)
        return run.train(
            stage,
            noisy,
            loss=ForwardLoss(self.start),
            update=PosteriorCounts(rate, burn_in=int(_BURN_IN * epochs * len(noisy) / size)),
            callbacks=[("held_out_posteriors", held_out)],
            **self._clean(run, clean),
        )

    def _clean(self, run: Run, clean: Rows) -> dict[str, Any]:
        """Clean rows of a step: a quarter of the batch size."""
        batch_size = run.params["batch_size"]
        size = max(batch_size // 4, 1) if batch_size > 0 else -1
        return {"clean_batches": CleanBatches(clean, size, joint=True), "clean_weight": self.weight}


def fine_tune(run: Run, stage: str, net: NoisyLabelNet, clean: Rows, **params: Any) -> NoisyLabelNet:
    """Train on from a network with the clean rows alone, without what the user gives for the noisy rows."""
    of_clean = {"train_split": None, "labels": "clean", "max_epochs": _FINE_TUNING_EPOCHS}
    own = without_bound_callbacks(run.params) | of_clean | params
    if len(clean) < own["batch_size"] and "iterator_train__drop_last" in own:
        own["iterator_train__drop_last"] = False  # no batch would be left
    return run.train(stage, clean, params=own, module=net.plain_module_)


def cross_fit(
    run: Run, joint: JointTraining, *, cv: int | None, n_jobs: int | None = None, fine_tuning: bool = False
) -> tuple[HeldOut, NDArray | None]:
    """Train without each fold in turn; return the posteriors of all rows, by networks that were not trained on them.

    Parameters
    ----------
    run : Run
    joint : JointTraining
    cv : int or None
        Folds of the noisy rows and of the clean ones. None: one training, without a third of the noisy rows and half
        of the clean ones; posteriors are of these alone.
    n_jobs : int, optional
        Folds that are trained at the same time, by joblib.
    fine_tuning : bool, default=False
        Whether to go on with the clean rows alone after each training.

    Returns
    -------
    held_out : HeldOut
        A candidate for each number of epochs; rows in rising order.
    fine_tuned : ndarray of shape (n_clean, n_classes) or None
        Posteriors of the clean rows after the last epoch and a training on the other clean rows alone.
    """
    most, c = run.params["max_epochs"], len(run.classes)
    epochs = sorted({-(-most * k // _N_CANDIDATES) for k in range(1, _N_CANDIDATES + 1)})
    parts = _held_out_rows(run, cv)
    task = partial(_train_without, joint=joint, epochs=epochs, fine_tuning=fine_tuning)
    done = run.train_parts({f"fold_{k}": partial(task, held_out=rows) for k, rows in enumerate(parts)}, n_jobs)
    noisy, clean = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    of_noisy, of_clean = np.argsort(noisy), np.argsort(clean)

    def candidate(k: int) -> Candidate:
        proba, proba_meta = (np.concatenate(p) for p in zip(*(part[k] for part in done), strict=True))
        return Candidate(epochs[k], proba[of_noisy], proba_meta[of_clean])

    y = run.clean.label
    given = run.clean.columns.get("noisy_label")
    held_out = HeldOut(
        [candidate(k) for k in range(len(epochs))],
        run.noisy.label[noisy[of_noisy]],
        y[clean[of_clean]],
        (np.full(len(y), -1) if given is None else given)[clean[of_clean]],
        np.zeros((c, c), dtype=int) if given is None else pair_counts(y, given, c),
        np.bincount(y, minlength=c),
        len(run.noisy),
    )
    return held_out, np.concatenate([part[-1][1] for part in done])[of_clean] if fine_tuning else None


def _train_without(
    run: Run,
    stage: str,
    *,
    joint: JointTraining,
    held_out: tuple[NDArray, NDArray],
    epochs: Sequence[int],
    fine_tuning: bool,
) -> list[list[NDArray]]:
    """Train without some noisy and some clean rows; give their posteriors after each number of epochs, and fine-tuned.

    Of the fine-tuned network those of the noisy rows are not asked for: there is an empty array.
    """
    noisy, clean = (
        rows.take(np.delete(np.arange(len(rows)), out))
        for rows, out in zip((run.noisy, run.clean), held_out, strict=True)
    )
    out = [run.noisy.take(held_out[0]), run.clean.take(held_out[1])]
    watched = HeldOutPosteriors(out, epochs)
    net = joint.train_with_transition(run, stage, noisy, clean, watched)
    posteriors = [watched.after(n) for n in epochs]
    if fine_tuning:
        tuned = fine_tune(run, f"{stage}_fine_tuned", net, clean, verbose=0)
        posteriors.append([np.empty(0), tuned.predict_proba(out[1])])
    return posteriors


def _held_out_rows(run: Run, cv: int | None) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Draw the noisy and the clean rows of each part that is held out in turn."""
    random, (n_noisy, n_clean) = np.random.default_rng(run.seed), n_folds(cv)
    noisy, clean = fold_of_rows(run.noisy.label, n_noisy, random), fold_of_rows(run.clean.label, n_clean, random)
    return [(np.flatnonzero(noisy == k), np.flatnonzero(clean == k)) for k in range(cv or 1)]


def fold_of_rows(y: NDArray, n: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Draw the fold of each row, with the classes dealt out evenly.

    As scikit-learn's `StratifiedKFold`, which refuses labels where every class has fewer rows than there are folds, as
    a few clean rows have.
    """
    order = random.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), dtype=np.intp)
    folds[order] = np.arange(len(y)) % n
    return folds


def n_folds(cv: int | None) -> tuple[int, int]:
    """Folds of the noisy rows and of the clean ones."""
    return (cv, cv) if cv else _SPLIT
