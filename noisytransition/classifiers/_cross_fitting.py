"""Joint training of network and T on noisy and clean rows, and posteriors of rows that are held out."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses import ForwardLoss
from ..nets import CleanBatches, NoisyLabelNet, Rows
from ..nets._callbacks import HeldOutPosteriors
from ..updates import PosteriorCounts
from ._final import fine_tuned
from ._folds import N_FOLDS, fold_of_rows
from ._parts import train_parts
from ._run import Run

# without folds, one training goes without a third of the noisy rows and half of the clean ones: better than a fifth and
# a half, a tenth and 0.3, a third and a third (one seed of the cells of em_transition.py, two of cv_none.py)
_SPLIT = (3, 2)
# numbers of epochs that are compared, an eighth of the training apart; a choice, not measured
_N_CANDIDATES = 8
# the running counts of T average over about a quarter of an epoch, and over at least four batches; not measured
_AVERAGED_EPOCHS = 0.25
_HIGHEST_RATE = 0.25
# standard errors by which a longer training must make the network right more often: with 10,000 rows 2 points of
# accuracy are 1.2 to 2.6 of them (examples/benchmarks/last_training.py)
_LEAST_GAIN = 1.0
# share of the training before T first moves: until then the network knows little of the classes; not measured
_BURN_IN = 0.1


class Candidate(NamedTuple):
    """Posteriors of held-out rows after a number of epochs, and which rows these are: noisy ones, and clean ones."""

    epochs: int
    posteriors: tuple[NDArray, NDArray]
    rows: tuple[NDArray[np.intp], NDArray[np.intp]]

    def labels(self, run: Run) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Noisy labels of the noisy rows, and true ones of the clean rows."""
        noisy, clean = self.rows
        return run.noisy.label[noisy], run.clean.label[clean]


class JointTraining(NamedTuple):
    """Training on noisy rows through T and, in every step, on clean rows without it.

    Attributes
    ----------
    start : ndarray of shape (n_classes, n_classes)
        T at the start of each training.
    weight : float
        Weight of the clean batch's mean loss beside the noisy batch's.
    meta_batch_size : int or None
        Clean rows in a step; None: a quarter of ``batch_size``.
    """

    start: NDArray
    weight: float
    meta_batch_size: int | None = None

    def train(self, run: Run, stage: str, T: NDArray, **params: Any) -> NoisyLabelNet:
        """Train a network through a T that is known; parameters are those of `Run.prepare`."""
        clean = self._clean_batches(run, run.clean)
        return run.train(stage, loss=ForwardLoss(T), clean_batches=clean, clean_weight=self.weight, **params)

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
            clean_batches=self._clean_batches(run, clean),
            clean_weight=self.weight,
            callbacks=[("held_out_posteriors", held_out)],
        )

    def _clean_batches(self, run: Run, clean: Rows) -> CleanBatches:
        size, batch_size = self.meta_batch_size, run.params["batch_size"]
        if size is None:
            size = max(batch_size // 4, 1) if batch_size > 0 else -1
        return CleanBatches(clean, size, joint=True)


def likelihood_weight(run: Run) -> float:
    """Weight of the clean rows' mean loss that makes each row count once, as in the likelihood of all labels."""
    return len(run.clean) / len(run.noisy)


def balanced_weight(run: Run) -> float:
    """Geometric mean of that weight and of 1, at which both sets count alike.

    T from trainings at this one weight is as good as the best of three (examples/benchmarks/em_transition.py).
    """
    return likelihood_weight(run) ** 0.5


def weights_of_clean_batches(run: Run, weight: float | str) -> tuple[float, float]:
    """Weights of the clean rows' mean loss in the folds, and in the last training; given, or by "auto"."""
    return (balanced_weight(run), likelihood_weight(run)) if isinstance(weight, str) else (weight, weight)


def candidate_epochs(max_epochs: int) -> list[int]:
    """Numbers of epochs to choose from."""
    return sorted({-(-max_epochs * k // _N_CANDIDATES) for k in range(1, _N_CANDIDATES + 1)})


def last_training(candidates: Sequence[Candidate], best: Candidate, T: NDArray, run: Run) -> int:
    """How many epochs the last network is trained: more than those of T's posteriors, if it is then better.

    T comes from calibrated posteriors, which hardly show that a step is still large, as before the end of a schedule: a
    network then prefers some classes, and its calibration makes up for it. The last network has no calibration
    (examples/benchmarks/last_training.py).

    Parameters
    ----------
    candidates : sequence of Candidate
    best : Candidate
        Whose posteriors T comes from.
    T : ndarray of shape (n_classes, n_classes)
    run : Run
    """
    if not (longer := [c for c in candidates if c.epochs > best.epochs]):
        return best.epochs
    before, *after = right([best, *longer], T, run)
    gains = np.array([of_rows - before for of_rows in after])
    k = gains.mean(axis=1).argmax()
    is_better = gains[k].mean() > _LEAST_GAIN * gains[k].std() / len(before) ** 0.5
    return longer[k].epochs if is_better else best.epochs


def right(candidates: Sequence[Candidate], T: NDArray, run: Run) -> list[NDArray[np.float64]]:
    """Whether each network is right on its held-out noisy rows, without bias under T: the mean is its accuracy.

    Backward correction (Natarajan et al., 2013; Patrini et al., 2017) of the 0-1 loss: over the noisy labels of a true
    class, rows of the inverse of T have the mean 1 at that class and 0 elsewhere. A network's own posteriors would hold
    its decisions to be right.
    """
    inverse = np.linalg.pinv(T)
    return [inverse[c.labels(run)[0], c.posteriors[0].argmax(axis=1)] for c in candidates]


class CrossFit(NamedTuple):
    """Posteriors of all rows, by networks that were not trained on them.

    Attributes
    ----------
    candidates : list of Candidate
        One for each number of epochs, by rising number.
    fine_tuned : Candidate or None
        After the last epoch, and training on the clean rows alone.
    """

    candidates: list[Candidate]
    fine_tuned: Candidate | None


class _Part(NamedTuple):
    """What one training gives: for each number of epochs, and fine-tuned, posteriors of its noisy and clean rows."""

    posteriors: list[tuple[NDArray, NDArray]]
    fine_tuned: tuple[NDArray, NDArray] | None


def cross_fit(
    run: Run,
    joint: JointTraining,
    *,
    cv: int | None = N_FOLDS,
    epochs: Sequence[int],
    aside: Sequence[int] = (),
    n_jobs: int | None = None,
    prefix: str = "",
    fine_tune: bool = False,
) -> CrossFit:
    """Train without each fold in turn; return the posteriors of all rows, by networks that were not trained on them.

    Parameters
    ----------
    run : Run
    joint : JointTraining
    cv : int or None
        Folds of the noisy rows and of the clean ones. None: one training, without a third of the noisy rows and half
        of the clean ones; posteriors are of these alone.
    epochs : sequence of int
        After how many epochs.
    aside : sequence of int, default=()
        After how many too, with no effect on the trainings.
    n_jobs : int, optional
        Folds that are trained at the same time, by joblib.
    prefix : str, default=""
        Of the stages' names.
    fine_tune : bool, default=False
        Whether to go on with the clean rows alone after each training.

    Returns
    -------
    CrossFit
    """
    parts = held_out_rows(run, cv)
    task = partial(_train_without, joint=joint, epochs=epochs, aside=aside, fine_tune=fine_tune)
    tasks = {f"{prefix}fold_{k}": partial(task, held_out=rows) for k, rows in enumerate(parts)}
    done, rows = train_parts(run, tasks, n_jobs), _joined(parts)
    by_epochs = zip(sorted({*epochs, *aside}), *(part.posteriors for part in done), strict=True)
    candidates = [Candidate(n, _joined(posteriors), rows) for n, *posteriors in by_epochs]
    after = [part.fine_tuned for part in done if part.fine_tuned is not None]
    return CrossFit(candidates, Candidate(max(epochs), _joined(after), rows) if after else None)


def _train_without(
    run: Run,
    stage: str,
    *,
    joint: JointTraining,
    held_out: tuple[NDArray, NDArray],
    epochs: Sequence[int],
    aside: Sequence[int],
    fine_tune: bool,
) -> _Part:
    """Train without some noisy and some clean rows, and on with the clean ones; give the posteriors of the others."""
    noisy, clean = (
        r.take(np.delete(np.arange(len(r)), out)) for r, out in zip((run.noisy, run.clean), held_out, strict=True)
    )
    out = [run.noisy.take(held_out[0]), run.clean.take(held_out[1])]
    watched = HeldOutPosteriors(out, epochs, aside)
    net = joint.train_with_transition(run, stage, noisy, clean, watched)
    posteriors = [(proba, proba_meta) for proba, proba_meta in map(watched.after, sorted({*epochs, *aside}))]
    if not fine_tune:
        return _Part(posteriors, None)
    net = fine_tuned(run, stage, net, clean)
    return _Part(posteriors, (net.predict_proba(out[0]), net.predict_proba(out[1])))


def _joined(parts: Sequence[tuple[NDArray, NDArray]]) -> tuple[NDArray, NDArray]:
    """What belongs to the noisy rows of all parts, and to their clean rows."""
    noisy, clean = zip(*parts, strict=True)
    return np.concatenate(noisy), np.concatenate(clean)


def held_out_rows(run: Run, cv: int | None) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Draw the noisy and the clean rows of each part that is held out in turn."""
    random, (n_noisy, n_clean) = np.random.default_rng(run.seed), n_folds(cv)
    noisy, clean = fold_of_rows(run.noisy.label, n_noisy, random), fold_of_rows(run.clean.label, n_clean, random)
    return [(np.flatnonzero(noisy == k), np.flatnonzero(clean == k)) for k in range(cv or 1)]


def n_folds(cv: int | None) -> tuple[int, int]:
    """Folds of the noisy rows and of the clean ones."""
    return (cv, cv) if cv else _SPLIT
