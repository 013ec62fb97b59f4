"""Bad data given to `fit` and to the methods of a fitted classifier."""

import numpy as np
import pandas as pd
import scipy.sparse
import torch
from attacks.problem import TRUE, X_META, Y_META, Case, X, Y, changed
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

NAN, INF = float("nan"), float("inf")


class Stream(IterableDataset):
    def __iter__(self):
        yield from X


def masked(array):
    return np.ma.array(array, mask=np.arange(np.size(array)).reshape(np.shape(array)) == 1)


NAMES = np.array(["ant", "bee", "cat"])
FRAME = pd.DataFrame(X, columns=list("abcd"))
RAGGED = [np.zeros(4 + i % 2, np.float32) for i in range(60)]

# what is bad, in place of an array of 4 columns, and the words of the message
ROWS = [
    ("NaN", changed(X, (3, 1), NAN), "NaN"),
    ("masked entries", masked(X), "masked"),
    ("sparse rows with NaN", scipy.sparse.csr_matrix(changed(X, (3, 1), NAN)), "NaN"),
    ("a sparse array of one axis", scipy.sparse.coo_array(X[:, 0]), "Expected 2D"),
    ("one axis", X[:, 0], "1D array|Expected 2D"),
    ("None", None, "None|NoneType|dtype|scalar"),
    ("a dict", {"a": X, "b": X}, "have the shape|unexpected keyword argument"),
    ("an empty array", X[:0], "0 sample|minimum of 1|inconsistent"),
    ("long doubles that float64 cannot hold", X.astype(np.longdouble) * np.longdouble("1e4000"), "infinity"),
    ("a stream", Stream(), "Stream without samples or __len__"),
    ("an empty Dataset", Subset([], []), "without samples"),
    ("a Dataset of text", Subset(["a word"] * 60, range(60)), "have the shape|data type 'str'"),
    ("a Dataset of ragged samples", Subset(RAGGED, range(60)), "equal size"),
    ("a Dataset of another length", TensorDataset(torch.zeros(50, 4)), "60 labels for 50 samples|50"),
]
CLEAN_ROWS = [
    *(row for row in ROWS if row[0] != "None" and not isinstance(row[1], Dataset)),
    ("a column less", X[:, :3], "features"),
    ("rows of another length", X[:7], "60 labels for 7 samples"),
]
MISSING = ("NaN", changed(Y, 3, NAN), "missing")  # an error where each sample needs a label
LABELS = [
    ("None", None, "None"),
    ("a number", 3, "1d array|shape|singleton|scalar|Expected|array-like"),
    ("a label less", Y[:-1], "inconsistent|labels for 60"),
    ("two columns", np.stack([Y, Y], 1), "1d array|shape"),
    ("infinity", changed(Y, 3, INF), "infinity"),
    ("numbers and names", np.array([0, *NAMES[Y[1:]]], object), "several kinds"),
    ("bytes", np.array([b"a", b"b", b"c"])[Y], "bytes"),
    ("fractions", Y + 0.5, "[Uu]nknown label"),
    ("masked entries", masked(Y), "masked"),
    ("one class", np.zeros(60, int), "at least 2 classes"),
    ("a sparse column", scipy.sparse.csr_matrix(Y[:, None]), "[Ss]parse"),
    ("ragged lists", [[0], [0, 1]] * 30, "inhomogeneous|equally long"),
]
# the first 18 rows are verified, and y keeps their noisy labels
VERIFIED = [*TRUE[:18].tolist(), *[None] * 42]
# verified labels; they are read as others
CHECKED = [
    ("labels of verified rows alone", TRUE[:18], "18 labels for 60 samples.*cross-validation"),
    ("all rows", TRUE, "all samples are verified"),
    ("a mask", np.arange(60) < 18, "instead of a mask"),
    ("NaN alone", np.full(60, NAN), "no sample is verified"),
]


FIT = [
    *(Case(f"X: {name}", "fit", {"X": value, "y": Y}, words) for name, value, words in ROWS),
    *(Case(f"meta: {name}", "fit", {"meta": (value, Y)}, words) for name, value, words in CLEAN_ROWS),
    *(Case(f"y: {name}", "fit", {"y": value}, words) for name, value, words in LABELS),
    *(
        Case(f"y_clean: {name}", "fit", {"X_clean": X, "y_clean": value}, words.replace("inconsistent", "labels"))
        for name, value, words in [*LABELS, MISSING]
        if name not in ("None", "one class")
    ),
    *(Case(f"y_verified: {name}", "fit", {"y_verified": value}, words) for name, value, words in CHECKED),
    Case("clean rows twice", "fit", {"meta": (X_META, Y_META), "y_verified": VERIFIED}, "given 2 times"),
    Case("a table of other names", "fit", {"y": pd.DataFrame({"y": Y, "checked": VERIFIED})}, "'verified'"),
    Case("clean rows without labels", "fit", {"X_clean": X_META}, "go together"),
    Case("columns in another order", "fit", {"X": FRAME, "meta": (FRAME[list("dcba")], Y)}, "feature names"),
    Case("short weights", "fit", {"sample_weight": np.ones(59)}, "sample_weight.shape"),
    Case("weights of 0", "fit", {"sample_weight": np.zeros(60)}, "zero"),
    Case("negative weights", "fit", {"sample_weight": np.full(60, -1.0)}, "Negative"),
    Case("clean rows alone", "fit", {"meta": X_META}, "must be a pair"),
    Case("names beside numbers", "fit", {"meta": (X_META, NAMES[Y_META])}, "number labels.*text labels"),
    Case("large floats", "fit", {"y": 2.0**53 + Y}, "cannot represent"),
    Case("labels beside a pair", "fit", {"meta": (X_META, Y_META), "y_clean": Y_META}, "go together"),
    Case("numbers in a list of names", "fit", {"y": [0, *NAMES[Y[1:]].tolist()]}, "several kinds"),
    Case("noisy labels of no clean row", "fit", {"y_clean_noisy": Y_META, "meta": None}, "without meta"),
    Case("short noisy labels of clean rows", "fit", {"y_clean_noisy": Y_META[:-1]}, "y_clean_noisy has 17 labels"),
    Case("noisy labels of no class", "fit", {"y_clean_noisy": Y_META + 1}, r"y_clean_noisy has labels \[3\]"),
]
_SKIPPED = {"a Dataset of another length", "None", "an empty Dataset"}
PREDICT = [
    Case(f"{target}: {name}", target, {"X": value}, words)
    for target in ("predict", "predict_proba")
    for name, value, words in [*ROWS, ("a column less", X[:, :3], "features"), ("a tuple", (X, Y), "inhomogeneous|dim")]
    if name not in _SKIPPED
]
LABEL_ISSUES = [
    Case(
        f"{target}: {name}",
        target,
        {"y_noisy": value},
        words + "|not among classes_|text|missing|for 60|the label|another kind",
    )
    for target in ("label_posterior", "label_quality", "find_label_issues", "relabel", "sample_weights")
    for name, value, words in [
        *(row for row in LABELS if row[0] != "one class"),
        ("an unknown class", Y + 1, "not among classes_"),
    ]
]
THRESHOLDS = [
    Case(f"{target}: threshold={value!r}", target, {"threshold": value}, "pass a probability")
    for target in ("find_label_issues", "relabel")
    for value in (-0.1, 1.1, "0.5", NAN, 1j, None, True)
]
CASES = [*FIT, *PREDICT, *LABEL_ISSUES, *THRESHOLDS]
