"""Bad arguments of folds, comparisons, plots and scorers."""

import numpy as np
from attacks.of_data import MASKS, masked
from attacks.problem import TRUE, X_META, X_TEST, Y_META, Y_TEST, Case, T, X, Y, changed
from sklearn.linear_model import LogisticRegression

from noisytransition import ComparisonData, CrossEntropyClassifier

NAN = float("nan")
NAMES = np.array(["ant", "bee", "cat"])

FOLDS = [
    *(Case(f"folds: {name}", "folds", {"groups": mask}, words) for name, mask, words in MASKS if "row" not in name),
    Case("folds: indices of trusted rows", "folds", {"groups": np.flatnonzero(Y == 0)}, "boolean mask"),
    Case("folds: no mask", "folds", {"groups": None}, "needs y, and the mask"),
    Case("folds: no labels", "folds", {"y": None}, "needs y, and the mask"),
    Case("folds: no trusted row", "folds", {"groups": np.zeros(60, bool)}, "0 trusted rows"),
    Case("folds: labels of two axes", "folds", {"y": Y[:, None]}, "one label per row"),
    Case("folds: short labels", "folds", {"y": Y[:-1]}, "boolean mask"),
    Case("folds: masked labels", "folds", {"y": masked(Y)}, "masked"),
    Case("folds: one fold", "folds", {"n_splits": 1}, "n_splits=1; give at least 2"),
    Case("folds: folds as text", "folds", {"n_splits": "3"}, "give an integer"),
    Case("folds: half a fold", "folds", {"n_splits": 2.5}, "give an integer"),
    Case("folds: a seed as text", "folds", {"shuffle": True, "random_state": "a"}, "seed"),
]
DATA = ComparisonData(X, Y, X_META, Y_META, X_TEST, Y_TEST, T, TRUE)
_GENERATOR = np.random.default_rng(0)


def _drawn(seed):
    """Other data for every call."""
    return DATA._replace(y=_GENERATOR.permutation(Y))


def _drawn_rows(seed):
    return DATA._replace(X=_GENERATOR.normal(size=X.shape))


COMPARE = [
    Case(f"compare: {name}", "compare", {"args": (data, [CrossEntropyClassifier()]), "verbose": 0, **given}, words)
    for name, data, given, words in [
        *(
            (f"seeds={seeds!r}", DATA, {"seeds": seeds}, words)
            for seeds, words in [
                ([0.5, 0.9], "give an integer"),
                ([1, 1], "distinct"),
                ([], "empty"),
                (["0"], "give an integer"),
                ("012", "several integers"),
                (3, "several integers"),
                ([-1], "at least 0"),
                ([True], "give an integer"),
                ([2**32], "below 2"),
                (None, "several integers"),
                ([None], "give an integer"),
            ]
        ),
        ("no data", None, {}, "give ComparisonData"),
        ("a tuple", tuple(DATA[:6]), {}, "give ComparisonData"),
        ("a dict", DATA._asdict(), {}, "give ComparisonData"),
        ("a function of None", lambda seed: None, {}, "give ComparisonData"),
        ("other labels in every call", _drawn, {}, r"data\(0\) gave other y when it was called again"),
        ("other rows in every call", _drawn_rows, {}, r"data\(0\) gave other X when it was called again"),
        ("test labels of another class", DATA._replace(y_test=Y_TEST + 1), {}, r"y_test has the classes \[3\]"),
        ("test labels as names", DATA._replace(y_test=NAMES[Y_TEST]), {}, "y_test has the classes"),
        ("short true labels", DATA._replace(y_true=TRUE[:-1]), {}, "y_true has 59 labels for 60 rows"),
        ("short labels", DATA._replace(y=Y[:-1]), {}, "y has 59 labels for 60 rows"),
        ("short clean labels", DATA._replace(y_meta=Y_META[:-1]), {}, "y_meta has 17 labels"),
        ("short test labels", DATA._replace(y_test=Y_TEST[:-1]), {}, "y_test has 11 labels"),
        ("no test rows", DATA._replace(X_test=None), {}, "X_test of the data is None"),
        ("no test labels", DATA._replace(y_test=None), {}, "y_test of the data is None"),
        ("clean rows as test rows", DATA._replace(X_test=X_META, y_test=Y_META), {}, "rows of X_meta"),
        ("a T of two classes", DATA._replace(transition_matrix=np.eye(2)), {}, "classes"),
        ("a T of counts", DATA._replace(transition_matrix=T * 10), {}, "sum to 1"),
        ("a complex T", DATA._replace(transition_matrix=T + 0j), {}, "complex"),
        ("an unknown parameter", DATA, {"max_epoch": 3}, "Did you mean 'max_epochs'"),
    ]
] + [
    Case(f"compare: {name}", "compare", {"args": (DATA, methods), "verbose": 0}, words)
    for name, methods, words in [
        ("a method twice", [CrossEntropyClassifier(), CrossEntropyClassifier()], "not distinct"),
        ("a name that is taken", {"identity": CrossEntropyClassifier()}, "adds itself"),
        ("a class", [CrossEntropyClassifier], "instance|classifier"),
        ("another estimator", [LogisticRegression()], "give .*classifiers of this library|classifier"),
        ("text", "GLC", "classifier"),
        ("a number", 3, "classifier"),
    ]
]
HISTORY = np.stack([T, T])
PLOTS = [
    Case(f"{target}: {name}", target, {"args": args, **given}, words)
    for target, name, args, given, words in [
        ("TransitionMatrixDisplay", "true matrix of counts", (T,), {"true_matrix": T * 10}, "sum to 1"),
        ("TransitionMatrixDisplay", "another true matrix", (T,), {"true_matrix": np.eye(2)}, "classes"),
        ("TransitionMatrixDisplay", "two names", (T,), {"display_labels": ["a", "b"]}, "one label per class"),
        ("TransitionMatrixDisplay.from_estimator", "not fitted", (CrossEntropyClassifier(),), {}, "not fitted"),
        ("TransitionMatrixDisplay.from_estimator", "no T", (3,), {}, "has no transition_matrix_"),
        ("plot_transition_history", "one matrix", (T,), {}, "shape"),
        ("plot_transition_history", "counts", (HISTORY * 10,), {}, "sum to 1"),
        ("plot_transition_history", "complex numbers", (HISTORY + 0j,), {}, "complex"),
        ("plot_transition_history", "masked entries", (masked(HISTORY),), {}, "masked"),
        ("plot_transition_history", "text", (HISTORY.astype(str),), {}, "not an array of numbers"),
        ("plot_transition_history", "NaN", (changed(HISTORY, (0, 0, 0), NAN),), {}, "finite"),
        ("plot_transition_history", "an unknown class", (HISTORY,), {"classes": ["a"]}, "classes names"),
        ("plot_transition_history", "no entry", (HISTORY,), {"top": 0}, "top=0"),
        ("plot_transition_history", "top as text", (HISTORY,), {"top": "3"}, "top"),
        ("plot_transition_history", "not fitted", (CrossEntropyClassifier(),), {}, "not fitted"),
        ("make_transition_scorer", "two names", (T,), {"labels": [0, 1]}, "each of the 3 classes"),
        ("make_transition_scorer", "a name twice", (T,), {"labels": [0, 1, 1]}, "each of the 3 classes"),
        ("make_transition_scorer", "complex names", (T,), {"labels": [0j, 1j, 2]}, "complex"),
    ]
]
CASES = [*FOLDS, *COMPARE, *PLOTS]
