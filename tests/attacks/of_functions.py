"""Bad arrays and numbers given to functions."""

import numpy as np
import pandas as pd
from attacks.of_data import masked
from attacks.problem import PROBA, TRUE, X_META, X_TEST, Y_META, Y_TEST, Case, T, X, Y, changed

from noisytransition import ComparisonData, CrossEntropyClassifier

NAN, INF = float("nan"), float("inf")


def home_of(function):
    """Module of a function."""
    return "likelihood" if function in ("em_transition_matrix", "transition_uncertainty") else "transition"


# ---------------------------------------------------------------------------- arrays
MATRICES = [
    ("complex numbers", T + 0j, "complex"),
    ("masked entries", masked(T), "masked"),
    ("text", T.astype(str), "not an array of numbers"),
    ("a number", 0.5, "square|has shape"),
    ("three axes", T[None], "square|has shape"),
    ("ragged rows", [[1.0], [0.5, 0.5]], "not an array of numbers"),
    ("NaN", changed(T, (0, 0), NAN), "NaN|not finite"),
    ("a negative entry", changed(changed(T, (0, 0), -0.2), (0, 1), 1.2), "negative"),
    ("counts", T * 10, "sum to 1"),
    ("the transpose", [[0.9, 0.3, 0], [0.1, 0.7, 0], [0, 0, 1]], "transpose"),
]
PROBABILITIES = [
    ("complex numbers", PROBA + 0j, "complex"),
    ("masked entries", masked(PROBA), "masked"),
    ("text", PROBA.astype(str), "not an array of numbers"),
    ("one axis", PROBA[:, 0], "2-d"),
    ("logits", PROBA * 3 - 1, "negative|softmax"),
    ("counts", PROBA * 10, "softmax"),
    ("NaN", changed(PROBA, (3, 1), NAN), "NaN"),
    ("ragged rows", [[1.0], [0.5, 0.5]], "not an array of numbers"),
]
INDICES = [
    ("complex numbers", Y + 0j, "complex"),
    ("masked entries", masked(Y), "masked"),
    ("names of four classes", np.array(["a", "b", "c", "d"])[np.arange(60) % 4], "class indices|different labels|text"),
    ("floats", Y.astype(float), "integer class indices"),
    ("a number", 3, "1-d"),
    ("two axes", np.stack([Y, Y], axis=1), "1-d"),
    ("ragged lists", [[0], [0, 1]], "equally long"),
]
MATRIX_ARGUMENTS = {
    "transition.flip_labels": (Y, None),
    "transition.label_posterior": (PROBA, Y, None),
    "transition.denoise_proba": (PROBA, None),
    "transition.transition_error": (None, T),
    "transition.transition_error ": (T, None),
    "transition.sampling_limit": (None, 10),
    "likelihood.transition_uncertainty": (PROBA, Y, None),
    "make_transition_scorer": (None,),
}
PROBA_ARGUMENTS = {
    "transition.gold_transition_matrix": (None, TRUE),
    "transition.anchor_transition_matrix": (None,),
    "transition.confusion_transition_matrix": (None, Y),
    "likelihood.em_transition_matrix": (None, Y),
    "transition.label_posterior": (None, Y, T),
    "transition.denoise_proba": (None, T),
    "likelihood.transition_uncertainty": (None, Y, T),
}
INDEX_ARGUMENTS = {
    "transition.gold_transition_matrix": (PROBA, None),
    "transition.count_transition_matrix": (None, Y),
    "transition.count_transition_matrix ": (Y, None),
    "transition.confusion_transition_matrix": (PROBA, None),
    "likelihood.em_transition_matrix": (PROBA, None),
    "transition.label_posterior": (PROBA, None, T),
    "likelihood.transition_uncertainty": (PROBA, None, T),
    "transition.class_conditional_test": (None, Y),
    "transition.class_conditional_test ": (TRUE, None),
}


def _arrays(functions, values):
    for function, args in functions.items():
        at = next(i for i, arg in enumerate(args) if arg is None)
        for name, value, words in values:
            given = (*args[:at], value, *args[at + 1 :])
            yield Case(f"{function}: {name} as argument {at}", function.strip(), {"args": given}, words)


# ---------------------------------------------------------------------------- numbers
RATES = [("text", "0.5"), ("above 1", 1.5), ("negative", -0.1), ("NaN", NAN), ("complex", 1j), ("truth value", True)]
COUNTS = [("text", "3"), ("zero", 0), ("fraction", 2.5), ("complex", 1j), ("truth value", True), ("a list", [3])]
VALUES = [("text", "high"), ("negative", -0.5), ("NaN", NAN), ("complex", 1j), ("a list", [0.1])]

# function, its argument, good arguments before it, bad values, words of the message
NUMBERS = [
    ("transition.symmetric_noise", "rate", (3,), RATES, "pass a probability"),
    ("transition.pair_noise", "rate", (3,), RATES, "pass a probability"),
    ("transition.cifar10_noise", "rate", (), RATES, "pass a probability"),
    ("transition.digits_noise", "rate", (), RATES, "pass a probability"),
    ("transition.superclass_noise", "rate", ([0, 0, 1],), RATES, "pass a probability"),
    ("transition.symmetric_noise", "n_classes", (), COUNTS, "pass an integer|at least"),
    ("transition.pair_noise", "n_classes", (), COUNTS, "pass an integer|at least"),
    ("transition.denoise_proba", "n_iter", (PROBA, T), COUNTS, "integer|at least"),
    ("likelihood.em_transition_matrix", "max_iter", (PROBA, Y), COUNTS, "integer|at least"),
    ("transition.class_conditional_test", "n_permutations", (TRUE, Y), COUNTS, "integer|at least"),
    ("likelihood.em_transition_matrix", "tol", (PROBA, Y), VALUES, "tol="),
    ("likelihood.em_transition_matrix", "clean_weight", (PROBA, Y), VALUES, "clean_weight="),
    ("transition.count_transition_matrix", "smoothing", (TRUE, Y), VALUES, "smoothing="),
    ("transition.anchor_transition_matrix", "percentile", (PROBA,), VALUES, "percentile="),
    ("transition.sampling_limit", "n_per_class", (T,), COUNTS[:4], "positive integer|complex"),
]
NEEDED = {"n_classes": {"rate": 0.2}, "n_permutations": {"groups": Y}}


def _numbers():
    for function, argument, args, values, words in NUMBERS:
        for name, value in values:
            given = {"args": args, argument: value} | NEEDED.get(argument, {})
            yield Case(f"{function}: {argument}, {name}", function, given, words)


# ---------------------------------------------------------------------------- other arguments
OTHERS = [
    Case(f"{target}: {name}", f"{home_of(target)}.{target}", {"args": args, **given}, words)
    for target, name, args, given, words in [
        ("flip_noise", "no pairs", ({0: 1}, 2), {}, "unpack"),
        ("flip_noise", "too much", ({(0, 1): 0.7, (0, 2): 0.7}, 3), {}, "must sum to 1"),
        ("superclass_noise", "two axes", ([[0, 1]], 0.2), {}, "1-d"),
        ("flip_labels", "two axes", (Y[:, None], T), {}, "1-d"),
        ("flip_labels", "two classes", (Y % 2 + 5, T), {}, "different labels"),
        ("flip_labels", "an unknown label", (Y, T), {"classes": [0, 1, 5]}, "has the label"),
        ("flip_labels", "missing names", ([None, "a", "b"], T), {}, "missing"),
        ("flip_labels", "seed", (Y, T), {"random_state": "a"}, "expects int"),
        ("transition_error", "shapes", (T, np.eye(2)), {}, "classes"),
        ("em_transition_matrix", "counts", (PROBA, Y), {"counts": np.eye(2)}, "counts"),
        ("em_transition_matrix", "clean rows alone", (PROBA, Y), {"proba_clean": PROBA}, "pass both"),
        ("em_transition_matrix", "init", (PROBA, Y), {"init": np.eye(2)}, "classes"),
        ("em_transition_matrix", "prior", (PROBA, Y), {"prior": "flat"}, "prior="),
        ("em_transition_matrix", "NaN superclass", (PROBA, Y), {"prior": [0, 1, NAN]}, "NaN"),
        ("em_transition_matrix", "one class", (np.ones((3, 1)), [0, 0, 0]), {}, "two columns"),
        ("gold_transition_matrix", "a class without rows", (PROBA, Y % 2), {}, "class"),
        ("count_transition_matrix", "lengths", (Y, Y[:-1]), {}, "one label per sample"),
        ("transition_uncertainty", "no rows", (PROBA[:0], Y[:0], T), {}, "no rows"),
        ("transition_uncertainty", "clean rows", (PROBA, Y, T), {"proba_clean": PROBA[:0]}, "no rows"),
        ("transition_uncertainty", "many classes", (np.full((60, 51), 1 / 51), Y, np.eye(51)), {}, "51 classes"),
        ("transition_uncertainty", "impossible labels", (PROBA, Y, [[1, 0, 0]] * 3), {}, "no probability"),
        ("class_conditional_test", "nothing", (TRUE, Y), {}, "pass groups="),
        ("class_conditional_test", "groups", (TRUE, Y), {"groups": Y[:-1]}, "one entry"),
        ("class_conditional_test", "NaN features", (TRUE, Y), {"features": changed(X, (0, 0), NAN)}, "NaN"),
        ("class_conditional_test", "probabilities", (TRUE, Y), {"proba": PROBA * 2}, "sums? to"),
        ("class_conditional_test", "no noise", (TRUE, TRUE), {"groups": np.arange(60) % 2}, "two rows|differ|noise"),
        ("label_posterior", "lengths", (PROBA, Y[:-1], T), {}, "one label per sample"),
    ]
]


# ---------------------------------------------------------------------------- folds and comparisons
FOLDS = [
    Case("folds: few groups", "folds", {"groups": [0] * 60}, "samples of 1 groups"),
    Case("folds: short groups", "folds", {"groups": Y[:-1]}, "59 labels for 60 samples"),
    Case("folds: no verified labels", "folds", {"y_verified": None}, "'verified'"),
    Case("folds: no verified row", "folds", {"y_verified": [None] * 60}, "0 sample"),
    Case("folds: one verified row", "folds", {"y_verified": [1] + [None] * 59}, "n_samples=1"),
    Case("folds: short labels", "folds", {"y": Y[:-1]}, "59 labels for 60 samples"),
    Case("folds: twice", "folds", {"y": pd.DataFrame({"label": Y, "verified": Y})}, "given twice"),
]
DATA = ComparisonData(X, Y, X_META, Y_META, X_TEST, Y_TEST, T, TRUE)
ONE = {"cross-entropy": CrossEntropyClassifier()}
COMPARE = [
    Case(f"compare: {name}", "compare", {"args": (data, methods), **given}, words)
    for name, data, methods, given, words in [
        ("seeds are fractions", DATA, ONE, {"seeds": [0.5, 0.9]}, "random_state"),
        ("no data", None, ONE, {}, "ComparisonData"),
        ("a function of None", lambda seed: None, ONE, {}, "ComparisonData"),
        ("test labels of another class", DATA._replace(y_test=Y_TEST + 1), ONE, {}, "y_test"),
        ("short labels", DATA._replace(y=Y[:-1]), ONE, {}, "inconsistent"),
        ("no test rows", DATA._replace(X_test=None), ONE, {}, "None"),
        ("a T of counts", DATA._replace(transition_matrix=T * 10), ONE, {}, "sum to 1"),
        ("a class", DATA, {"cross-entropy": CrossEntropyClassifier}, {}, "instance"),
    ]
]
CASES = [
    *_arrays(MATRIX_ARGUMENTS, MATRICES),
    *_arrays(PROBA_ARGUMENTS, PROBABILITIES),
    *_arrays(INDEX_ARGUMENTS, INDICES),
    *_numbers(),
    *OTHERS,
    *FOLDS,
    *COMPARE,
]
