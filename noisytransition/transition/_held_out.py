"""Out-of-sample posteriors with all labels that are known, and how a last network is chosen by them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._calibration import tempered_log_loss
from ._checks import check_probabilities, checked_probabilities
from ._class_offset import equally_many, tilted, weights_of_clean_rows
from ._draw import (
    Draw,
    inverse_probability_weights,
    is_chosen_by_suspicion,
    is_drawn_by_label,
    relative_probabilities,
    weights_by_given_label,
)
from ._estimation import pair_counts
from ._labels import (
    SourceLabels,
    classes_of_columns,
    complete_labels,
    encode_all,
    given_and_verified,
    has_minus_one,
    in_class_order,
    known_labels,
    labels_of_samples,
)

# standard errors by which a fine-tuned network must be better (0 to 2 are as good on the design half of
# examples/benchmarks/zoo), and by which a longer training must make a network right more often: with 10,000 samples 2
# points of accuracy are 1.2 to 2.6 of them
_LEAST_GAIN = 1.0
# with more, the inverse of T takes too long for the choice of the last network
_MOST_CLASSES_TO_INVERT = 1000


class Candidate(NamedTuple):
    """Posteriors of held-out noisy and clean samples; of networks after a number of epochs."""

    epochs: int
    proba: NDArray
    proba_meta: NDArray


class HeldOut(NamedTuple):
    """Posteriors of samples that the classifier was not trained on, and their labels as class indices.

    Attributes
    ----------
    candidates : sequence of Candidate
        Posteriors of the same samples, by rising number of epochs.
    noisy : ndarray of int, shape (n,)
        Noisy labels.
    clean : ndarray of int, shape (n_meta,)
        True labels of the clean samples; there may be none.
    noisy_of_clean : ndarray of int, shape (n_meta,)
        Their noisy labels; -1 where they are not known.
    pairs : ndarray of shape (c, c)
        Counts of all clean samples by true (i) and noisy (j) label, also of those without posteriors.
    n_clean : ndarray of int, shape (c,)
        Counts of all clean samples by true label.
    n_noisy : int
        Number of all noisy samples.
    rows, rows_of_clean : ndarray of int, shape (n,) and (n_meta,)
        Positions of the samples among those that the user gave together; -1 of clean samples that are not among them.
    sources : SourceLabels or None
        Labels of each source, of the samples that the user gave together, if there are several sources; noisy labels
        are then the most frequent ones.
    drawn : ndarray of shape (n_meta,) or None
        Probabilities with which clean samples were drawn, as multiples of that in a draw at random; None if they are
        not known.
    """

    candidates: Sequence[Candidate]
    noisy: NDArray[np.int64]
    clean: NDArray[np.int64]
    noisy_of_clean: NDArray[np.int64]
    pairs: NDArray[np.int64]
    n_clean: NDArray[np.int64]
    n_noisy: int
    rows: NDArray[np.intp]
    rows_of_clean: NDArray[np.intp]
    sources: SourceLabels | None = None
    drawn: NDArray[np.float64] | None = None

    @property
    def given_labels(self) -> NDArray:
        """Numbers of all samples by given label, of shape (c,)."""
        c = len(self.pairs)
        return np.bincount(self.noisy, minlength=c) * (self.n_noisy / len(self.noisy)) + self.pairs.sum(axis=0)

    def in_order(self, of_noisy: NDArray, of_clean: NDArray) -> NDArray:
        """Values of the samples that the user gave together, in their order."""
        among = self.rows_of_clean >= 0
        order = np.argsort(np.concatenate([self.rows, self.rows_of_clean[among]]))
        return np.concatenate([of_noisy, of_clean[among]])[order]

    def without(self, out: NDArray[np.bool_]) -> "HeldOut":
        """The same samples without some of the clean ones."""
        kept, c = ~out, len(self.pairs)
        known = out & (self.noisy_of_clean >= 0)
        return self._replace(
            candidates=[of._replace(proba_meta=of.proba_meta[kept]) for of in self.candidates],
            clean=self.clean[kept],
            noisy_of_clean=self.noisy_of_clean[kept],
            pairs=self.pairs - pair_counts(self.clean[known], self.noisy_of_clean[known], c),
            n_clean=self.n_clean - np.bincount(self.clean[out], minlength=c),
            rows_of_clean=self.rows_of_clean[kept],
            drawn=None if self.drawn is None else self.drawn[kept],
        )

    def draw(self) -> Draw:
        """How the clean samples were drawn, as far as their probabilities or given labels tell.

        Equally many of each true class were drawn by that, which both tests would take for something else.
        """
        has_noisy = at_random = self.noisy_of_clean >= 0
        if self.drawn is not None:
            at_random = has_noisy & (self.drawn == 1)
        if at_random.any() and not equally_many(self.n_clean):
            _, proba, proba_meta = self.candidates[-1]
            others, noisy = has_noisy & ~at_random, self.noisy_of_clean
            rest = np.concatenate([proba, proba_meta[others]]), np.concatenate([self.noisy, noisy[others]])
            if is_chosen_by_suspicion(proba_meta[at_random], noisy[at_random], *rest):
                return Draw(by_suspicion=True)
        if self.drawn is not None:
            return Draw(by_probability=True)
        if not has_noisy.any() or equally_many(self.n_clean):
            return Draw()
        return Draw(by_label=is_drawn_by_label(self.pairs.sum(axis=0), self.given_labels))

    def weights_of_clean(self, offset: NDArray) -> NDArray[np.float64]:
        """Weights, of mean 1, with which clean samples stand for all: by class if that has an offset, else by draw."""
        if offset.any():
            return weights_of_clean_rows(offset, self.clean)
        if self.drawn is not None:
            return inverse_probability_weights(self.drawn)
        return weights_by_given_label(self.noisy_of_clean, self.given_labels, self.n_clean)


def read_held_out(
    proba: ArrayLike,
    y_noisy: ArrayLike,
    y_verified: ArrayLike | None,
    proba_clean: ArrayLike | None,
    y_clean: ArrayLike | None,
    y_clean_noisy: ArrayLike | None,
    classes: ArrayLike | None,
    sources: ArrayLike | None = None,
    verified_probability: ArrayLike | None = None,
) -> tuple[HeldOut, NDArray, int]:
    """Held-out samples, with one candidate, the labels and the number of classes, from arguments of `LabelNoiseModel`.

    Verified samples become clean ones; they are not among the noisy ones. Labels that are no class have probability 0.
    """
    n, c = checked_probabilities(proba).shape
    if not n:
        raise ValueError("proba has no rows; give the probabilities of at least one sample that is not verified.")
    if (proba_clean is None) != (y_clean is None) or (proba_clean is None and y_clean_noisy is not None):
        raise ValueError("proba_clean, y_clean and y_clean_noisy go together; give proba_clean with y_clean.")
    m = 0 if proba_clean is None else len(checked_probabilities(proba_clean, c, "proba_clean"))
    y_noisy, y_verified, by_source, probability = given_and_verified(y_noisy, y_verified, "y_noisy", sources)
    if probability is not None and verified_probability is not None:
        raise ValueError("verified_probability was given twice, also as a column of y_noisy; give one.")
    has_given, all_given, is_verified, verified = labels_of_samples(y_noisy, y_verified, n, "y_noisy", classes)
    has_noisy, given_of_others = known_labels(y_clean_noisy, m, "y_clean_noisy", not has_minus_one(all_given, classes))
    others = complete_labels(y_clean, m, "y_clean") if m else verified[:0]
    given = {"y_noisy": all_given, "y_verified": verified, "y_clean": others, "y_clean_noisy": given_of_others}
    if by_source is not None:
        by_source.check(np.concatenate([verified, others]) if m else verified, "y_noisy")
        given["y_noisy of all sources"] = by_source.labels
    if classes is None:
        classes = classes_of_columns(proba, list(given.values()))
    n_others = 0 if classes is None else max(np.size(classes) - c, 0)
    names, codes = encode_all(given, c + n_others, classes)
    for name in ("y_verified", "y_clean"):
        if (codes[name] >= c).any():
            raise ValueError(f"{name} has the label {names[codes[name].max()]!r}, of which proba has no column.")
    if not (has_given & ~is_verified).any():
        raise ValueError(
            "y_verified has a true label for each sample, so that none is left to estimate T from: count them by "
            "count_transition_matrix. If y_verified is a mask, give the true labels, missing where not verified."
        )
    if not np.ptp(codes["y_noisy"]):
        raise ValueError("y_noisy holds one class alone; at least two are needed.")
    of_rows = check_probabilities(in_class_order(proba, names[:c], rows=False))
    of_others = of_rows[:0]
    if proba_clean is not None:
        of_others = check_probabilities(in_class_order(proba_clean, names[:c], rows=False), c, "proba_clean")
    of_rows, of_others = (np.pad(of, ((0, 0), (0, n_others))) for of in (of_rows, of_others))
    all_noisy, noisy_of_others = np.full(n, -1), np.full(m, -1)
    all_noisy[has_given], noisy_of_others[has_noisy] = codes["y_noisy"], codes["y_clean_noisy"]
    clean = np.concatenate([codes["y_verified"], codes["y_clean"]])
    of_clean = np.concatenate([of_rows[is_verified], of_others])
    noisy_of_clean = np.concatenate([all_noisy[is_verified], noisy_of_others])
    candidate = Candidate(0, of_rows[~is_verified], of_clean)
    rows = np.flatnonzero(~is_verified), np.append(np.flatnonzero(is_verified), np.full(m, -1))
    held_out = one_candidate(candidate, all_noisy[rows[0]], clean, noisy_of_clean, rows)
    drawn = relative_probabilities(verified_probability if probability is None else probability, is_verified, m)
    by_source = None if by_source is None else by_source.of_classes(names)
    return held_out._replace(sources=by_source, drawn=drawn), names, c


def one_candidate(
    candidate: Candidate, noisy: NDArray, clean: NDArray, noisy_of_clean: NDArray, rows: tuple[NDArray, NDArray]
) -> HeldOut:
    """Held-out samples of one candidate, which are all samples; `rows` are both arrays of that name."""
    c, known = candidate.proba.shape[1], noisy_of_clean >= 0
    pairs, n_clean = pair_counts(clean[known], noisy_of_clean[known], c), np.bincount(clean, minlength=c)
    return HeldOut([candidate], noisy, clean, noisy_of_clean, pairs, n_clean, len(noisy), *rows)


def choose_epochs(held_out: HeldOut, best: int, T: NDArray) -> Candidate:
    """Candidate whose number of epochs the last network gets: the best by the evidence, or a later one if it is better.

    T comes from calibrated posteriors, which hardly show that a step is still large, as before the end of a schedule: a
    network then prefers some classes, and its calibration makes up for it. The last network has no calibration.

    Whether a network is right on its held-out samples is found from their noisy labels, without bias under T:
    backward correction (Natarajan et al., 2013; Patrini et al., 2017) of the 0-1 loss. Over the noisy labels of a true
    class, rows of the inverse of T have the mean 1 at that class and 0 elsewhere. A network's own posteriors would hold
    its decisions to be right.
    """
    y, (first, *later) = held_out.noisy, held_out.candidates[best:]
    if not later or len(T) > _MOST_CLASSES_TO_INVERT:
        return first
    inverse = np.linalg.pinv(T)
    # estimates of whether each network is right on each sample
    right, *right_later = (inverse[y, candidate.proba.argmax(axis=1)] for candidate in (first, *later))
    gains = np.array([of_later - right for of_later in right_later])
    k = gains.mean(axis=1).argmax()
    return later[k] if gains[k].mean() > _LEAST_GAIN * gains[k].std() / len(y) ** 0.5 else first


def fine_tuning_helps(
    own: NDArray, fine_tuned: NDArray, y: NDArray, offset: NDArray, weights: NDArray
) -> tuple[bool, dict[str, float]]:
    """Find whether held-out clean samples are predicted better after a training on the others alone.

    Losses are those of both networks at their best temperatures.

    Parameters
    ----------
    own, fine_tuned : ndarray of shape (n, c)
        Posteriors of held-out clean samples.
    y : ndarray of int, shape (n,)
        Their labels.
    offset : ndarray of shape (c,)
        As `class_offset_` of `LabelNoiseModel`; the fine-tuned network has the class prior of the clean samples.
    weights : ndarray of shape (n,)
        With which these samples stand for all.

    Returns
    -------
    helps : bool
    losses : dict of str to float
        Mean losses, "own" and "fine-tuned".
    """
    before, after = (tempered_log_loss(proba, y, weights) for proba in (own, tilted(fine_tuned, -offset)))
    gain = before - after
    helps = gain.mean() > _LEAST_GAIN * gain.std(ddof=1) / len(y) ** 0.5
    return bool(helps), {"own": float(before.mean()), "fine-tuned": float(after.mean())}
