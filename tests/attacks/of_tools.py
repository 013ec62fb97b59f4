"""Bad arguments of folds and comparisons."""

import numpy as np
import pandas as pd
from attacks.problem import TRUE, X_META, X_TEST, Y_META, Y_TEST, Case, T, X, Y
from sklearn.linear_model import LogisticRegression

from noisytransition import ComparisonData, CrossEntropyClassifier

NAMES = np.array(["ant", "bee", "cat"])

FOLDS = [
    Case("folds: few groups", "folds", {"groups": [0] * 60}, "samples of 1 groups"),
    Case("folds: short groups", "folds", {"groups": Y[:-1]}, "59 labels for 60 samples"),
    Case("folds: no verified labels", "folds", {"y_verified": None}, "'verified'"),
    Case("folds: no verified row", "folds", {"y_verified": [None] * 60}, "0 sample"),
    Case("folds: short labels", "folds", {"y": Y[:-1]}, "59 labels for 60 samples"),
    Case("folds: twice", "folds", {"y": pd.DataFrame({"label": Y, "verified": Y})}, "given twice"),
    Case("folds: one fold", "folds", {"n_splits": 1}, "n_splits=2 or more"),
    Case("folds: half a fold", "folds", {"n_splits": 2.5}, "must be of Integral type"),
    Case("folds: a seed as text", "folds", {"shuffle": True, "random_state": "a"}, "seed"),
]
DATA = ComparisonData(X, Y, X_META, Y_META, X_TEST, Y_TEST, T, TRUE)

ONE = {"cross-entropy": CrossEntropyClassifier()}
COMPARE = [
    Case(f"compare: {name}", "compare", {"args": (data, methods), **given}, words)
    for name, data, methods, given, words in [
        ("seeds are fractions", DATA, ONE, {"seeds": [0.5, 0.9]}, "random_state"),
        ("negative seeds", DATA, ONE, {"seeds": [-1]}, "random_state"),
        ("no data", None, ONE, {}, "ComparisonData"),
        ("a function of None", lambda seed: None, ONE, {}, "ComparisonData"),
        ("test labels of another class", DATA._replace(y_test=Y_TEST + 1), ONE, {}, "y_test"),
        ("short labels", DATA._replace(y=Y[:-1]), ONE, {}, "inconsistent"),
        ("short clean labels", DATA._replace(y_clean=Y_META[:-1]), ONE, {}, "inconsistent"),
        ("no test rows", DATA._replace(X_test=None), ONE, {}, "None"),
        ("a T of counts", DATA._replace(transition_matrix=T * 10), ONE, {}, "sum to 1"),
        ("a class", DATA, {"cross-entropy": CrossEntropyClassifier}, {}, "instance"),
        ("another estimator", DATA, {"sklearn": LogisticRegression()}, {}, "unexpected keyword argument"),
    ]
]
CASES = [*FOLDS, *COMPARE]
