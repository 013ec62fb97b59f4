"""The reader of labels: from columns of given and verified labels to one record of class indices."""

import warnings
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arrays import ENCODE_ALL, check_spelling, encode, has_minus_one, shortened
from ._columns import Column, GivenLabels, SourceLabels, complete_column, encoded, read_column, split_columns
from ._draw import read_groups, relative_probabilities, relative_weights, weights_of_draw, weights_of_labels

# smallest number of clean samples for a warning that all their noisy labels are true: a choice, not measured
_MANY = 20


class SeparateLabels(NamedTuple):
    """True labels of separate clean samples, and their noisy labels if known."""

    n: int = 0
    true: Any = None
    given: Any = None


@dataclass
class Labels:
    """Labels of the samples of X, followed by separate clean samples, as class indices; -1 if missing."""

    classes: NDArray  # sorted, unless the reader got them
    given: NDArray[np.intp]
    true: NDArray[np.intp]
    n_X: int
    drawn: NDArray[np.float64] | None  # probabilities of clean samples, relative to a draw at random
    by_source: SourceLabels | None  # of the samples of X
    is_noisy: NDArray[np.bool_]  # samples that are not clean, also without any label, except those of weight 0
    groups: NDArray[np.intp] | None = None
    weights: NDArray[np.float64] | None = None  # of all samples, with mean 1 of noisy ones
    index: Any = None  # of the given labels, if they are a pandas object

    def __post_init__(self) -> None:
        self.is_clean: NDArray[np.bool_] = self.true >= 0
        self.noisy = self.given[self.is_noisy]
        self.clean = self.true[self.is_clean]
        self.noisy_of_clean = self.given[self.is_clean]
        # positions in X of noisy and of clean samples; -1 for separate ones
        clean = np.flatnonzero(self.is_clean)
        self.positions = np.flatnonzero(self.is_noisy), np.where(clean < self.n_X, clean, -1)

    def labelled(self) -> "Labels":
        """Ignore the samples without any label."""
        return replace(self, is_noisy=self.is_noisy & (self.given >= 0))

    def of_both(self, values: NDArray | None) -> tuple[NDArray, NDArray] | None:
        """Values of the noisy and of the clean samples, such as `groups` and `weights`."""
        return None if values is None else (values[self.is_noisy], values[self.is_clean])

    def names(self, codes: NDArray[np.intp]) -> set[Any]:
        """Distinct labels with these codes."""
        return set(self.classes[np.unique(codes[codes >= 0])].tolist())

    def weights_of_draw(self) -> NDArray[np.float64]:
        """Weights of clean samples, of mean 1, by known probabilities of their draw or by given label."""
        noisy = self.noisy_of_clean
        n_verified = np.bincount(noisy[noisy >= 0], minlength=len(self.classes))
        n_all = np.bincount(self.given[self.given >= 0], minlength=len(self.classes))
        return weights_of_draw(self.drawn, noisy, weights_of_labels(n_verified, n_all))

    def of_classes(self, classes: NDArray) -> "Labels":
        """Encode as positions in `classes`, which contain all labels."""
        place = np.append(encode(self.classes, classes), -1)
        by_source = None if self.by_source is None else self.by_source.of_classes(classes)
        return replace(self, classes=classes, given=place[self.given], true=place[self.true], by_source=by_source)


def read_labels(
    columns: GivenLabels,
    n: int,
    separate: SeparateLabels | None = None,
    sample_weight: ArrayLike | None = None,
    *,
    classes: NDArray | None = None,
    minus_one_is_label: bool = False,
) -> Labels:
    """Read the labels of n samples of X and of separate clean samples; their classes are the sorted labels by default.

    -1 is missing in true labels, unless `minus_one_is_label`, or it is a given label or one of `classes`. A sample of
    weight 0 is ignored, unless it is verified.
    """
    separate = separate or SeparateLabels()
    given = read_column(columns.given, n, columns.name)
    is_label = minus_one_is_label or has_minus_one(given.labels, classes)
    true = read_column(columns.verified, n, "y_verified", minus_one_is_missing=not is_label)
    weights = None if sample_weight is None else relative_weights(sample_weight, true.has_label, separate.n)
    is_noisy = ~true.has_label & (True if weights is None else weights[:n] > 0)
    by_name = {
        columns.name: given.only(true.has_label | is_noisy),
        "y_verified": true,
        "y_clean": complete_column(separate.true, separate.n, "y_clean"),
        "y_clean_noisy": read_column(separate.given, separate.n, "y_clean_noisy", minus_one_is_missing=not is_label),
    }
    if columns.by_source is not None:
        columns.by_source.check([*true.labels.tolist(), *by_name["y_clean"].labels.tolist()], columns.name)
        labels = columns.by_source.labels
        by_name[f"{columns.name} of all sources"] = Column(np.ones(len(labels), dtype=bool), labels)
    all_classes, codes = encoded(by_name, classes)
    if classes is None:
        check_spelling(all_classes, codes.values())
    return Labels(
        all_classes,
        np.append(codes[columns.name], codes["y_clean_noisy"]),
        np.append(codes["y_verified"], codes["y_clean"]),
        n,
        relative_probabilities(columns.probability, true.has_label, separate.n),
        None if columns.by_source is None else columns.by_source.of_classes(all_classes),
        np.append(is_noisy, np.zeros(separate.n, dtype=bool)),
        read_groups(columns.groups, n, separate.n),
        weights,
        columns.index,
    )


# ---------------------------------------------------------------------------- labels of a fit
def labels_of_fit(
    n: int,
    y: Any,
    y_verified: Any,
    separate: SeparateLabels | None,
    sources: Any,
    sample_weight: ArrayLike | None,
    groups: ArrayLike | None = None,
) -> Labels:
    """Read the labels and weights of `fit` of a classifier, for n samples of X."""
    from sklearn.utils.multiclass import check_classification_targets

    columns = split_columns(y, y_verified, sources=sources, groups=groups)
    if columns.given is None:  # ends with the words that scikit-learn's tests match
        raise ValueError(f"{columns.name} is None. Pass labels (requires y to be passed, but the target y is None).")
    if columns.verified is not None and separate is not None:
        raise ValueError("clean data was given 2 times, as verified samples of X and as meta. Pass one of them.")
    labels = read_labels(columns, n, separate, sample_weight)
    if columns.verified is not None and not len(labels.clean):
        raise ValueError("no sample is verified. Enter true labels or omit y_verified; use VerifiedKFold in searches.")
    check_classification_targets(labels.classes[labels.noisy[labels.noisy >= 0]])
    check_classification_targets(labels.classes.repeat(3))  # few clean samples of many classes are no regression target
    check_labels_of_fit(labels, columns.name, stacklevel=5)
    _check_classes(labels)
    return labels


def check_labels_of_fit(labels: Labels, name: str, stacklevel: int) -> None:
    """Raise unless there are noisy samples of two classes; warn if the noisy labels of clean samples are true."""
    if n := (labels.noisy < 0).sum():
        text = f"{n} of {labels.n_X} samples have no label in {name} and are not verified. They are not trained on."
        warnings.warn(text, stacklevel=stacklevel)
    if not (labels.noisy >= 0).any():
        why = "or have no label or a weight of 0"
        if has_minus_one(labels.classes[labels.clean]):
            why = f"since -1 is a label in {name} and therefore in y_verified"
        advice = "Pass true labels (not a mask), and NaN for missing ones, or use count_transition_matrix"
        raise ValueError(f"all samples are verified, {why}, so there is no noisy sample to learn from. {advice}.")
    names = labels.names(labels.given[: labels.n_X])
    if len(names) < 2:
        raise ValueError(f"the noisy labels need at least 2 classes, got one class: {name} only has {[*names]}.")
    is_pair = labels.noisy_of_clean >= 0
    if is_pair.sum() >= _MANY and np.array_equal(labels.clean[is_pair], labels.noisy_of_clean[is_pair]):
        fact = f"The noisy labels of all {is_pair.sum()} clean samples equal the true labels"
        warnings.warn(f"{fact}. If they were corrected there, set them to missing.", stacklevel=stacklevel)


def _check_classes(labels: Labels) -> None:
    """Raise for invalid classes, and warn of suspicious classes."""
    noisy = labels.names(labels.given[: labels.n_X])
    true = labels.names(labels.clean)
    if absent := sorted(labels.names(labels.given[labels.n_X :]) - noisy - true):
        fact = f"y_clean_noisy has labels {shortened(absent)} that are in neither y nor y_clean"
        raise ValueError(f"{fact}; y has {shortened(sorted(noisy))}. Correct them; {ENCODE_ALL}.")
    if absent := sorted(true - noisy):
        fact = f"true labels have the classes {shortened(absent)}, which no noisy label has; they are separate classes"
        advice = f"If they are spelt differently in y, correct them; {ENCODE_ALL}"
        warnings.warn(f"{fact}. {advice}.", stacklevel=5)
    if absent := sorted(set(labels.classes.tolist()) - noisy - true):
        fact = f"some sources give the labels {shortened(absent)}, which are neither verified nor most frequent"
        warnings.warn(f"{fact}. They are separate classes; correct or remove them.", stacklevel=5)
    # -1 in addition to 0, 1, 2, ... marks missing labels; -1, 0 and 1 may be classes
    c = len(labels.classes)
    if c > 2 and labels.classes.tolist() == list(range(-1, c - 1)):
        advice = "If -1 means unlabelled, drop these samples, and use NaN for verified samples without a given label"
        if c > 3:
            raise ValueError(f"the labels are -1 to {c - 2}. {advice}; if -1 is a class, rename it.")
        warnings.warn(f"The labels are -1, 0 and 1; -1 is taken as a class. {advice}.", stacklevel=5)


def complete_codes(y: ArrayLike | None, classes: NDArray, n: int, name: str = "y_noisy") -> NDArray[np.intp]:
    """Encode the labels of n samples as indices in `classes`. Raise for missing and unknown labels."""
    return complete_column(y, n, name).codes(classes, name)
