"""Out-of-sample posteriors with all known labels, and the selection of the last network by them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._calibration import tempered_log_loss
from ._checks import check_probabilities, checked_probabilities
from ._class_offset import is_balanced, shift_class_prior, weights_of_clean_rows
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
    check_unverified,
    classes_of_columns,
    complete_labels,
    encode_all,
    given_and_verified,
    has_minus_one,
    in_class_order,
    known_labels,
    labels_of_samples,
    warn_of_order,
    warn_of_true_labels,
)

# Standard errors by which fine-tuning must lower the loss (0 to 2 are equally good on the design half of
# examples/benchmarks/zoo), and by which a longer training must raise the accuracy (with 10,000 samples, 2 points of
# accuracy are 1.2 to 2.6 standard errors)
_LEAST_GAIN = 1.0
# Above this number of classes, inverting T takes too long for the selection of the last network
_MOST_CLASSES_TO_INVERT = 1000


class Candidate(NamedTuple):
    """Posteriors of held-out noisy and clean samples by networks after a number of epochs."""

    epochs: int
    proba: NDArray
    proba_meta: NDArray


class HeldOut(NamedTuple):
    """Out-of-sample posteriors of samples, and their labels as class indices.

    Attributes
    ----------
    candidates : sequence of Candidate
        Posteriors of the same samples, in ascending order of epochs.
    noisy : ndarray of int, shape (n,)
        Noisy labels; with several sources, the most frequent label.
    clean : ndarray of int, shape (n_meta,)
        True labels of clean samples, possibly none.
    noisy_of_clean : ndarray of int, shape (n_meta,)
        Noisy labels of clean samples; -1 if unknown.
    pairs : ndarray of shape (c, c)
        Number of clean samples of each true (i) and noisy (j) label, including samples without posteriors.
    n_clean : ndarray of int, shape (c,)
        Number of clean samples of each class, including samples without posteriors.
    n_noisy : int
        Number of noisy samples, including samples without posteriors.
    rows, rows_of_clean : ndarray of int, shape (n,) and (n_meta,)
        Positions in X; -1 for separate clean samples.
    sources : SourceLabels or None
        Labels of all samples of X by several sources.
    drawn : ndarray of shape (n_meta,) or None
        Probabilities of the draw of clean samples, relative to a draw at random; None if unknown.
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
        """Number of all samples by given label, of shape (c,)."""
        c = len(self.pairs)
        return np.bincount(self.noisy, minlength=c) * (self.n_noisy / len(self.noisy)) + self.pairs.sum(axis=0)

    def in_order(self, of_noisy: NDArray, of_clean: NDArray) -> NDArray:
        """Values of noisy samples and of clean samples of X, in the order of X."""
        among = self.rows_of_clean >= 0
        order = np.argsort(np.concatenate([self.rows, self.rows_of_clean[among]]))
        return np.concatenate([of_noisy, of_clean[among]])[order]

    def without(self, out: NDArray[np.bool_]) -> "HeldOut":
        """Omit some of the clean samples."""
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
        """How the clean samples were drawn, according to known probabilities or tests of their given labels.

        Equal numbers of each true class are treated as stratified, which the tests cannot identify.
        """
        has_noisy = at_random = self.noisy_of_clean >= 0
        if self.drawn is not None:
            at_random = has_noisy & (self.drawn == 1)
        if at_random.any() and not is_balanced(self.n_clean):
            _, proba, proba_meta = self.candidates[-1]
            others, noisy = has_noisy & ~at_random, self.noisy_of_clean
            rest = np.concatenate([proba, proba_meta[others]]), np.concatenate([self.noisy, noisy[others]])
            if is_chosen_by_suspicion(proba_meta[at_random], noisy[at_random], *rest):
                return Draw(by_suspicion=True)
        if self.drawn is not None:
            return Draw(by_probability=True)
        if not has_noisy.any() or is_balanced(self.n_clean):
            return Draw()
        return Draw(by_label=is_drawn_by_label(self.pairs.sum(axis=0), self.given_labels))

    def weights_of_clean(self, offset: NDArray) -> NDArray[np.float64]:
        """Weights, of mean 1, that make clean samples representative: by class with an offset, else by draw."""
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
    """Validate the arguments of `LabelNoiseModel.fit`; return held-out samples, labels and the number of classes.

    Verified samples become clean samples. Labels that are no classes get probability 0.
    """
    warn_of_order(proba, y_noisy, y_verified, sources, verified_probability)
    n, c = checked_probabilities(proba).shape
    if not n:
        raise ValueError("proba has no rows; pass the probabilities of at least one sample that is not verified.")
    if (proba_clean is None) != (y_clean is None) or (proba_clean is None and y_clean_noisy is not None):
        raise ValueError("proba_clean and y_clean go together. Pass both or none; y_clean_noisy requires both.")
    m = 0 if proba_clean is None else len(checked_probabilities(proba_clean, c, "proba_clean"))
    y_noisy, y_verified, by_source, probability = given_and_verified(y_noisy, y_verified, "y_noisy", sources)
    if probability is not None and verified_probability is not None:
        raise ValueError("verified_probability was given twice, as an argument and as a column of y_noisy. Pass one.")
    has_given, all_given, is_verified, verified = labels_of_samples(y_noisy, y_verified, n, "y_noisy", classes)
    check_unverified(has_given, is_verified, verified, "y_noisy")
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
            raise ValueError(
                f"{name} has the label {names.tolist()[codes[name].max()]!r}, but proba has no column for it. Add "
                "the column, from a classifier trained on this class, or set the label to missing."
            )
    if not np.ptp(codes["y_noisy"]):
        raise ValueError("y_noisy has only one class; at least two are required.")
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
    warn_of_true_labels(clean, noisy_of_clean, stacklevel=4)
    candidate = Candidate(0, of_rows[~is_verified], of_clean)
    rows = np.flatnonzero(~is_verified), np.append(np.flatnonzero(is_verified), np.full(m, -1))
    held_out = one_candidate(candidate, all_noisy[rows[0]], clean, noisy_of_clean, rows)
    probability = verified_probability if probability is None else probability
    drawn = relative_probabilities(probability, is_verified, m)
    by_source = None if by_source is None else by_source.of_classes(names)
    return held_out._replace(sources=by_source, drawn=drawn), names, c


def one_candidate(
    candidate: Candidate, noisy: NDArray, clean: NDArray, noisy_of_clean: NDArray, rows: tuple[NDArray, NDArray]
) -> HeldOut:
    """Held-out samples with one candidate; `rows` contains `HeldOut.rows` and `HeldOut.rows_of_clean`."""
    c, known = candidate.proba.shape[1], noisy_of_clean >= 0
    pairs, n_clean = pair_counts(clean[known], noisy_of_clean[known], c), np.bincount(clean, minlength=c)
    return HeldOut([candidate], noisy, clean, noisy_of_clean, pairs, n_clean, len(noisy), *rows)


def select_epochs(held_out: HeldOut, best: int, T: NDArray) -> Candidate:
    """Select the number of epochs of the last network: the best by the evidence, or a later one that is more accurate.

    Calibration corrects a bias towards some classes, for example before the end of a learning-rate schedule, so that
    the evidence hardly detects it. The last network is not calibrated.

    Accuracy is estimated from noisy labels, without bias under T, by backward correction (Natarajan et al., 2013;
    Patrini et al., 2017) of the 0-1 loss: given a true class, the rows of the inverse of T at the noisy labels have
    mean 1 at that class and 0 elsewhere.
    """
    y, (first, *later) = held_out.noisy, held_out.candidates[best:]
    if not later or len(T) > _MOST_CLASSES_TO_INVERT:
        return first
    inverse = np.linalg.pinv(T)
    # unbiased estimates of whether each network is right on each sample
    right, *right_later = (inverse[y, candidate.proba.argmax(axis=1)] for candidate in (first, *later))
    gains = np.array([of_later - right for of_later in right_later])
    k = gains.mean(axis=1).argmax()
    return later[k] if gains[k].mean() > _LEAST_GAIN * gains[k].std() / len(y) ** 0.5 else first


def fine_tuning_helps(
    own: NDArray, fine_tuned: NDArray, y: NDArray, offset: NDArray, weights: NDArray
) -> tuple[bool, dict[str, float]]:
    """Whether fine-tuning lowers the log-loss of held-out clean samples, at the best temperatures.

    `own` and `fine_tuned` are posteriors of shape (n, c) with labels y. Fine-tuned networks have the class prior of the
    clean samples, which `offset` corrects. Also return the mean losses, "own" and "fine-tuned".
    """
    before, after = (tempered_log_loss(proba, y, weights) for proba in (own, shift_class_prior(fine_tuned, -offset)))
    gain = before - after
    helps = gain.mean() > _LEAST_GAIN * gain.std(ddof=1) / len(y) ** 0.5
    return bool(helps), {"own": float(before.mean()), "fine-tuned": float(after.mean())}
