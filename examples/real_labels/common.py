"""Methods, splits and result pages of the scripts with real labels.

All methods train the built-in linear network on the same features with the library's defaults. Nothing is tuned, but
"C selected": cross-validation with the labels of the training selects C of a logistic regression.
"""

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from scipy.sparse import issparse, vstack
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV

from examples.benchmarks.shared import (
    Results,
    fit_cleanlab,
    markdown,
    paired_difference,
    points,
    read_rows,
    run_all,
    spread,
    write_csv,
)
from noisytransition import (
    ComparisonData,
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    TransitionClassifierCV,
    count_transition_matrix,
    sampling_limit,
    transition_error,
)

RESULTS = Path(__file__).parent / "results"
N_VERIFIED = 100
SPLITS = 10
BASE = "fine-tuning"


# ---------------------------------------------------------------------------- data
def split(X, y_true, y_noisy, X_test, y_test, seed, n_verified=N_VERIFIED):
    """Draw the verified samples, which keep their noisy labels; the other samples have noisy labels only."""
    order, n_classes = np.random.default_rng(seed).permutation(len(y_true)), y_true.max() + 1
    clean, noisy = order[:n_verified], order[n_verified:]
    X, X_test, T = X.astype("float32"), X_test.astype("float32"), count_transition_matrix(y_true, y_noisy, n_classes)
    return ComparisonData(
        X[noisy], y_noisy[noisy], X[clean], y_true[clean], X_test, y_test, T, y_true[noisy], y_noisy[clean]
    )


# ---------------------------------------------------------------------------- methods
def pooled(data, y_verified):
    """Join noisy and verified samples; the latter get the labels `y_verified`."""
    stacked = vstack if issparse(data.X) else np.concatenate
    return stacked([data.X, data.X_clean]), np.concatenate([data.y, y_verified])


def ignoring(clf, data):
    """Train on all noisy labels as if they were true."""
    return clf.fit(*pooled(data, data.y_clean_noisy))


def together(clf, data):
    """Train on all samples; verified labels replace the noisy labels."""
    return clf.fit(*pooled(data, data.y_clean))


def clean_only(clf, data):
    """Train on the verified samples only."""
    return clf.fit(data.X_clean, data.y_clean)


def with_clean(clf, data):
    """Train on noisy samples, with the verified samples as clean data."""
    return clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean))


def with_pairs(clf, data):
    """Train as in `with_clean`, and pass the noisy labels of the verified samples."""
    return clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean), y_clean_noisy=data.y_clean_noisy)


def cleanlab(clf, data):
    """Train cleanlab's classifier with our classifier as its base, on all noisy labels."""
    X, y = pooled(data, data.y_clean_noisy)
    fitted, T = fit_cleanlab(clf, data._replace(X=X, y=y), seed=0)
    fitted.transition_matrix_ = T
    return fitted


def network(kind, seed, **params):
    """Return one of the library's classifiers with the linear network."""
    return kind("linear", random_state=seed, **params)


def logistic_regression(seed):
    """Return logistic regression with its default C."""
    return LogisticRegression(max_iter=1000)


def logistic_regression_cv(seed):
    """Return logistic regression that selects C of 1e-4 to 1 by the labels of the training."""
    return LogisticRegressionCV(Cs=np.logspace(-4, 0, 5), cv=3, max_iter=1000)


def transition_classifier_cv(seed):
    """Return `TransitionClassifierCV` of logistic regression."""
    return TransitionClassifierCV(logistic_regression(seed), random_state=seed)


# how to fit, and the classifier for a seed
METHODS = {
    "ignoring the noise": (ignoring, partial(network, CrossEntropyClassifier)),
    "ignoring the noise, logistic regression": (ignoring, logistic_regression),
    "ignoring the noise, logistic regression, C selected": (ignoring, logistic_regression_cv),
    "clean samples only": (clean_only, partial(network, CrossEntropyClassifier)),
    "clean samples only, logistic regression": (clean_only, logistic_regression),
    "clean samples only, logistic regression, C selected": (clean_only, logistic_regression_cv),
    "both together": (together, partial(network, CrossEntropyClassifier)),
    "fine-tuning": (with_clean, partial(network, FineTuningClassifier)),
    "cleanlab": (cleanlab, partial(network, CrossEntropyClassifier)),
    "GLC": (with_clean, partial(network, GLCClassifier)),
    "meta-transition": (with_clean, partial(network, MetaTransitionClassifier)),
    "EM": (with_clean, partial(network, EMTransitionClassifier)),
    "EM, pairs": (with_pairs, partial(network, EMTransitionClassifier)),
    "TransitionClassifierCV, pairs": (with_pairs, transition_classifier_cv),
}


def measured(load, name, seed, folder):
    """Fit a method on a split and return its result row."""
    torch.set_num_threads(1)
    data = load(seed, folder)
    fit, make = METHODS[name]
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "T may be wrong": the table shows its error
        clf = fit(make(seed), data)
    row = {"seed": seed, "method": name, "seconds": round(time.perf_counter() - started, 1)}
    row["accuracy"] = float((clf.predict(data.X_test) == data.y_test).mean())
    if hasattr(clf, "transition_matrix_"):
        row["transition_error"] = transition_error(data.transition_matrix, clf.transition_matrix_)
    if name == "EM, pairs":
        row["T"] = clf.transition_matrix_.round(4).tolist()
    return row


def references(load, seed, folder):
    """Errors of T for comparison: the identity, the counted verified pairs, and the sampling limit."""
    data = load(seed, folder)
    T = data.transition_matrix
    errors = {
        "identity": transition_error(T, np.eye(len(T))),
        "verified pairs counted": transition_error(
            T, count_transition_matrix(data.y_clean, data.y_clean_noisy, len(T), smoothing=1e-9)
        ),
        "sampling limit": sampling_limit(T, np.bincount(data.y_true, minlength=len(T))),
    }
    return [{"seed": seed, "method": method, "transition_error": error} for method, error in errors.items()]


# ---------------------------------------------------------------------------- a script
def main(name, doc, load, n_splits=SPLITS, n_verified=N_VERIFIED):
    """Run the missing fits of all methods and splits, and write the page."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data files")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    args = parser.parse_args()
    out = RESULTS / f"{name}.jsonl"
    done = {(row["method"], row["seed"]) for row in read_rows(out)}
    todo = [(load, m, seed, args.data) for seed in range(n_splits) for m in METHODS if (m, seed) not in done]
    run_all(measured, todo, out, args.jobs)
    rows = [row for seed in range(n_splits) for row in references(load, seed, args.data)] + read_rows(out)
    write(name, doc, rows, n_splits, n_verified)


def write(name, doc, rows, n_splits=SPLITS, n_verified=N_VERIFIED):
    """Write the table as a Markdown page and as a .csv file for the docs."""
    table = Results(rows, [*dict.fromkeys(row["method"] for row in rows if "accuracy" not in row), *METHODS])
    heads = ["accuracy", f"difference to {BASE}, points", "error of T"]
    lines = [(method, cells(table, method)) for method in table.methods]
    about = (
        f"{n_splits} splits, {n_verified} verified samples: mean ± standard deviation, differences with 95 % "
        "intervals. Nothing is tuned but C, where it is selected."
    )
    text = f"# {doc.splitlines()[0]}\n\n{about}\n\n{markdown(heads, lines)}\n"
    (RESULTS / f"{name}.md").write_text(text)
    write_csv(RESULTS / f"{name}.csv", heads, lines)
    print(text)


def cells(table, method):
    """Format a method's accuracy, its difference to fine-tuning and its error of T."""
    accuracy, base = table.values(method, "accuracy"), table.values(BASE, "accuracy")
    error = table.values(method, "transition_error")
    ours = [accuracy[seed] for seed in accuracy]
    mean, low, high, _ = paired_difference(ours, [base[seed] for seed in accuracy])
    return [
        spread(ours) if ours else "",
        points({"mean": mean, "low": low, "high": high}) if ours and method != BASE else "",
        spread(list(error.values())) if error else "",
    ]
