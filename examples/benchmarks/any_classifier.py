"""Compare TransitionClassifierCV with scikit-learn classifiers, on tables and texts with simulated and real noise.

    python examples/benchmarks/any_classifier.py --data DIR --jobs 2
    python examples/benchmarks/any_classifier.py --report   # only write the page

Other methods: the estimator on all noisy labels; the estimator on the verified samples; cleanlab's CleanLearning with
the same estimator and the true labels of the verified samples; the network of EMTransitionClassifier, on TF-IDF and
one-hot categories. Hard labels, the calibration and the first T were selected on the design half. DIR contains the
folder "real" (see `zoo/folder.py`) and "cifar10n.npz" (X: 50 principal components of the features of
`examples/paper/features.py`, y, and the annotators' labels "worse" and "aggregate"). Each result is written
immediately; a second call adds missing results.
"""

import argparse
import os
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
import pandas as pd
import sklearn
from shared import RESULTS, markdown, publish, read_rows, run_all, spread, write_csv
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from zoo import bundled, folder, generated
from zoo.noise import answers, asymmetric, flips, hard_rows, in_a_part, neighbours, pair, small_model, symmetric
from zoo.rows import Rows, split

from noisytransition import EMTransitionClassifier, TransitionClassifierCV, count_transition_matrix, transition_error

ROWS = RESULTS / "any_classifier.jsonl"
SEEDS = range(3)
IGNORING, VERIFIED, CLEANLAB, OURS, BESIDE, EM = (
    "noise ignored",
    "verified rows alone",
    "CleanLearning",
    "TransitionClassifierCV",
    "the same, without pairs",
    "EM's network",
)


# ---------------------------------------------------------------------------- data sets
def two_classes(seed, n=4000):
    """Draw two overlapping classes that depend on products, squares and steps of twelve columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 2000, 12))
    score = X[:, 0] * X[:, 1] + X[:, 2] + 0.7 * X[:, 3] ** 2 - 1.3 + (X[:, 4] > 0.5) * X[:, 5]
    y = (score + 0.8 * rng.logistic(size=len(X)) > 0).astype(int)
    return Rows(X[:n], y[:n], X[n:], y[n:], part=X[:n, 6] > 0)


def customer_frame(seed, n=1500):
    """Return the customers of `zoo/generated.py` as a data frame with categories and missing values."""
    frame, y = generated._customers(np.random.default_rng(seed), n + 2000)
    frame = frame.astype({"plan": "category", "city": "category"})
    frame.loc[np.random.default_rng(seed + 9).random(len(frame)) < 0.1, "tenure"] = np.nan
    return Rows(frame[:n], y[:n], frame[n:], y[n:])


def docstrings(seed, n=500):
    """Return the first paragraphs of SciPy's docstrings as texts; the class is the module."""
    texts, y = bundled.docstring_texts()
    return split(texts, y, n, None, seed)


def cifar10n(labels, seed, data):
    """Return features of 2,000 images, with labels of annotators."""
    with np.load(data / "cifar10n.npz") as kept:
        X, y, given = kept["X"], kept["y"], kept[labels]
    return split(X, y, 2000, 2500, seed, answers=given)


def titles(seed, data):
    return folder._titles(seed, data, 1500)


def sentences(seed, data):
    return folder._sentences(seed, data, 1200)


# ---------------------------------------------------------------------------- problems
class Problem(NamedTuple):
    """Half, samples, noise, number of verified samples and names of estimators."""

    half: str
    rows: Any
    noise: Any
    n_verified: int
    estimators: str


UNEQUAL = {(0, 1): 0.4, (1, 0): 0.1}
CHURN = {(0, 1): 0.31, (2, 1): 0.23}
CITIES = {(0, 1): 0.78, (2, 1): 0.58}
SOURCES = ({(0, 1): 0.6, (2, 0): 0.1}, {(0, 2): 0.1, (1, 2): 0.4})
B, G = bundled, generated
PROBLEMS = {
    "digits, pair 0.4": Problem("design", B.digits, pair(0.4), 100, "boosting linear neighbours"),
    "digits, symmetric 0.5": Problem("design", B.digits, symmetric(0.5), 100, "forest"),
    "breast cancer, 0.4 and 0.1": Problem("design", B.breast_cancer, flips(UNEQUAL), 100, "boosting linear"),
    "wine, pair 0.3": Problem("design", B.wine, pair(0.3), 50, "linear forest"),
    "affairs, 0.2 and 0.3": Problem(
        "design", B.affairs, flips({(0, 1): 0.2, (1, 0): 0.3}), 200, "boosting linear forest"
    ),
    "party, pair 0.3": Problem("design", B.party, pair(0.3), 100, "boosting forest"),
    "customers, frame": Problem("design", customer_frame, flips(CHURN), 200, "boosting"),
    "customers, two cities": Problem("design", G.customers, in_a_part(CITIES), 200, "boosting linear"),
    "customers, no noise": Problem("design", G.customers, symmetric(0.0), 100, "boosting linear"),
    "five ordered classes, hard rows 0.3": Problem("design", G.ordered(5), hard_rows(0.3), 100, "linear forest"),
    "four classes, pair 0.4": Problem("design", G.mixed(4), pair(0.4), 100, "boosting linear"),
    "moons, 0.4 and 0.1": Problem("design", G.moons, flips(UNEQUAL), 100, "boosting neighbours"),
    "products, labels of a small model": Problem("design", G.quadratic, small_model(), 100, "forest"),
    "two classes, 0.4 and 0.1": Problem("design", two_classes, flips(UNEQUAL), 200, "boosting forest"),
    "two classes, symmetric 0.3": Problem("design", two_classes, symmetric(0.3), 200, "boosting"),
    "rare class, 0.05 and 0.3": Problem("design", G.rare, flips({(0, 1): 0.05, (1, 0): 0.3}), 100, "boosting linear"),
    "topics, symmetric 0.4": Problem("design", G.topics(5, 800), symmetric(0.4), 100, "sparse"),
    "docstrings, pair 0.4": Problem("design", docstrings, pair(0.4), 100, "words word-neighbours"),
    "Hausa titles, labels of rules": Problem("design", titles, answers, 100, "words"),
    "global warming, labels of a language model": Problem("design", sentences, answers, 100, "words"),
    "LabelMe, a person's answer": Problem("design", folder.labelme, answers, 100, "linear forest"),
    "CIFAR-10N, worst label": Problem("design", partial(cifar10n, "worse"), answers, 200, "linear forest"),
    # ---- evaluated once, at the end
    "MNIST, pair 0.35": Problem("check", B.mnist, pair(0.35), 100, "linear forest"),
    "digits, look-alikes 0.4": Problem("check", B.digits, asymmetric(0.4), 100, "boosting linear"),
    "breast cancer, hard rows 0.25": Problem("check", B.breast_cancer, hard_rows(0.25), 100, "boosting linear"),
    "wine, symmetric 0.4": Problem("check", B.wine, symmetric(0.4), 50, "linear forest"),
    "affairs, hard rows 0.2": Problem("check", B.affairs, hard_rows(0.2), 200, "boosting linear"),
    "party, hard rows 0.25": Problem("check", B.party, hard_rows(0.25), 100, "linear forest"),
    "300 customers, as measured": Problem("check", G.unscaled_customers, flips(CHURN), 100, "boosting forest"),
    "three classes, two sources": Problem("check", G.mixed(3), in_a_part(*SOURCES), 100, "boosting linear"),
    "three ordered classes, neighbours 0.3": Problem("check", G.ordered(3), neighbours(0.3), 100, "boosting linear"),
    "products, symmetric 0.4": Problem("check", G.quadratic, symmetric(0.4), 100, "boosting forest"),
    "four clouds, symmetric 0.3": Problem("check", G.gaussians(4, 2.0), symmetric(0.3), 100, "forest neighbours"),
    "12 clouds, pair 0.3": Problem("check", G.gaussians(12, 3.0, 20, n=1500), pair(0.3), 120, "linear forest"),
    "two classes, hard rows 0.2": Problem("check", two_classes, hard_rows(0.2), 200, "boosting"),
    "embeddings, pair 0.3": Problem("check", G.embeddings(5, 600), pair(0.3), 100, "linear neighbours"),
    "topics, pair 0.4": Problem("check", G.topics(8, 1200), pair(0.4), 100, "sparse"),
    "docstrings, symmetric 0.4": Problem("check", docstrings, symmetric(0.4), 100, "words word-forest"),
    "CIFAR-10N, majority of three": Problem("check", partial(cifar10n, "aggregate"), answers, 200, "linear forest"),
}


def estimator(name, seed):
    """Return a scikit-learn estimator with parameters near its defaults."""

    def words():
        return TfidfVectorizer(sublinear_tf=True)

    return {
        "boosting": lambda: HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed),
        "linear": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "forest": lambda: RandomForestClassifier(random_state=seed),
        "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
        "sparse": lambda: LogisticRegression(C=10, max_iter=500),
        "words": lambda: make_pipeline(words(), LogisticRegression(C=10, max_iter=500)),
        "word-forest": lambda: make_pipeline(words(), RandomForestClassifier(random_state=seed)),
        "word-neighbours": lambda: make_pipeline(words(), KNeighborsClassifier(15, metric="cosine")),
    }[name]()


class Drawn(NamedTuple):
    """Samples of a seed with noisy labels, a mask of the verified samples, and T of the other samples."""

    rows: Rows
    given: np.ndarray
    verified: np.ndarray
    transition_matrix: np.ndarray


def draw(name, seed, data):
    """Draw the samples of a seed, and verified samples at random, at least one of each class."""
    problem = PROBLEMS[name]
    needs_folder = problem.noise is answers
    rows = problem.rows(seed, data) if needs_folder else problem.rows(seed)
    given, T = problem.noise(rows, seed + 2000)
    rng = np.random.default_rng(seed + 1000)
    chosen = rng.permutation(len(rows.y))[: problem.n_verified]
    absent = np.setdiff1d(rows.y, rows.y[chosen])
    chosen = [*chosen, *(rng.choice(np.flatnonzero(rows.y == i)) for i in absent)]
    verified = np.isin(np.arange(len(rows.y)), chosen)
    if T is None:
        T = count_transition_matrix(rows.y[~verified], given[~verified], max(rows.y.max(), given.max()) + 1)
    return Drawn(rows, given, verified, T)


# ---------------------------------------------------------------------------- fits
def fit(name, kind, seed, method, data):
    """Fit a method; return its accuracy, and the error of its T if it estimates one."""
    drawn = draw(name, seed, data)
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    accuracy, T = _network(drawn, seed) if method == EM else _found(estimator(kind, seed), method, drawn, seed)
    row = {"problem": name, "estimator": kind, "seed": seed, "method": method, "accuracy": accuracy}
    if T is not None:
        row["error"] = transition_error(drawn.transition_matrix, T)
    identity = transition_error(drawn.transition_matrix, np.eye(len(drawn.transition_matrix)))
    return row | {"identity": identity, "seconds": round(time.perf_counter() - started, 2)}


def _found(base, method, drawn, seed):
    """Return the accuracy and T with a scikit-learn estimator."""
    (X, y, X_test, y_test, *_), given, verified, _ = drawn
    of = [np.flatnonzero(verified == is_verified) for is_verified in (False, True)]
    if method == IGNORING:
        clf = clone(base).fit(X, given)
    elif method == VERIFIED:
        clf = clone(base).fit(_safe_indexing(X, of[1]), y[verified])
    elif method == CLEANLAB:
        from cleanlab.classification import CleanLearning

        clf = CleanLearning(clone(base), seed=seed, find_label_issues_kwargs={"n_jobs": 1})
        clf.fit(X, np.where(verified, y, given))
    else:
        clf = TransitionClassifierCV(base, random_state=seed)
        noisy, clean = (_safe_indexing(X, rows) for rows in of)
        if method == BESIDE:
            clf.fit(noisy, given[~verified], meta=(clean, y[verified]))
        else:
            clf.fit(X, given, y_verified=_verified(y, verified))
    T = np.asarray(clf.noise_matrix).T if method == CLEANLAB else getattr(clf, "transition_matrix_", None)
    return float((np.asarray(clf.predict(X_test)) == y_test).mean()), T


def _verified(y, verified):
    """Return the true labels of verified samples, None for other samples."""
    return np.where(verified, np.asarray(y).astype(object), None)


def _network(drawn, seed):
    """Return the accuracy and T of EM with default parameters."""
    import torch

    torch.set_num_threads(1)
    rows, given, verified, _ = drawn
    X, X_test = (part.astype(np.float32) for part in _numbers(rows.X, rows.X_test))
    clf = EMTransitionClassifier(random_state=seed).fit(X, given, y_verified=_verified(rows.y, verified))
    return float(clf.score(X_test, rows.y_test)), clf.transition_matrix_


def _numbers(X, X_test):
    """Convert data frames and texts to numeric input of a network."""
    if isinstance(X, pd.DataFrame):
        both = pd.get_dummies(pd.concat([X, X_test]), dtype=float)
        both = both.fillna(both.mean())
        both = ((both - both.mean()) / both.std()).to_numpy()
        return both[: len(X)], both[len(X) :]
    if X.dtype == object:
        words = TfidfVectorizer().fit(X)
        return words.transform(X), words.transform(X_test)
    return X, X_test


# ---------------------------------------------------------------------------- the page
def table(rows, half, column, methods):
    """Return the table of a half: mean and standard deviation over seeds of each problem and estimator."""
    lines = []
    for name, kind in _cells(half):
        of = {m: _values(rows, name, kind, m, column) for m in methods}
        if not of[OURS]:
            continue
        ours = np.mean(of[OURS])
        others = [m for m in methods if m not in (OURS, BESIDE) and of[m]]
        better = [m for m in others if np.mean(of[m]) != ours and (np.mean(of[m]) > ours) == (column == "accuracy")]
        identity = np.mean(_values(rows, name, kind, OURS, "identity"))
        cells = [spread(of[m]) if of[m] else "" for m in methods]
        lines.append((f"{name}: {kind}", [f"{identity:.2f}", *cells, ", ".join(better)]))
    return markdown(["error of T: identity", *methods, "better than TransitionClassifierCV"], lines)


def _cells(half):
    return [(n, kind) for n, p in PROBLEMS.items() if half in (p.half, "all") for kind in p.estimators.split()]


def _values(rows, name, kind, method, column):
    kind = "network" if method == EM else kind
    own = [r for r in rows if (r["problem"], r["estimator"], r["method"]) == (name, kind, method) and column in r]
    return [r[column] for r in sorted(own, key=lambda r: r["seed"])]


def summary(rows):
    """Return a table of means over problems, and of the worst difference to ignoring the noise."""
    lines = []
    for half in ("design", "check", "all"):
        cells = [cell for cell in _cells(half) if _values(rows, *cell, OURS, "accuracy")]
        accuracy = {
            m: [np.mean(v) if (v := _values(rows, *cell, m, "accuracy")) else np.nan for cell in cells] for m in METHODS
        }
        errors = {m: [np.mean(_values(rows, *cell, m, "error")) for cell in cells] for m in (OURS, BESIDE, EM)}
        worst = [f"{100 * min(np.subtract(accuracy[m], accuracy[IGNORING])):+.1f}" for m in (OURS, BESIDE)]
        means = [f"{np.nanmean(accuracy[m]):.3f}" for m in METHODS]
        lines.append((f"{half}, {len(cells)}", [*means, *worst, *(f"{np.mean(e):.3f}" for e in errors.values())]))
    heads = [*METHODS, "worst difference to noise ignored, points", "the same, without pairs"]
    heads += ["error of T", "error of T, without pairs", f"error of T, {EM}"]
    return markdown(heads, lines)


METHODS = (IGNORING, VERIFIED, CLEANLAB, OURS, BESIDE, EM)


def means(rows):
    """Return headings and lines of means over problems and estimators, a line for each method."""
    halves = {half: [c for c in _cells(half) if _values(rows, *c, OURS, "accuracy")] for half in ("design", "check")}
    columns = [(column, half) for column in ("accuracy", "error") for half in halves]
    lines = []
    for method in METHODS:
        of = [[_values(rows, *cell, method, column) for cell in halves[half]] for column, half in columns]
        cells = [f"{np.mean([np.mean(own) for own in found if own]):.3f}" if any(found) else "" for found in of]
        lines.append((method, cells))
    names = {"accuracy": "test accuracy", "error": "error of T"}
    return [f"{names[column]}, {half} ({len(halves[half])})" for column, half in columns], lines


def report(machine):
    """Write and print the page."""
    rows = read_rows(ROWS)
    seeds = sorted({row["seed"] for row in rows})
    parts = [
        "# TransitionClassifierCV with scikit-learn classifiers",
        f"Mean ± standard deviation, seeds {seeds[0]} to {seeds[-1]}; scikit-learn {sklearn.__version__}, {machine}. "
        "See `any_classifier.py`.",
        "## Means over problems and estimators\n\n" + summary(rows),
    ]
    for half, title in ("check", "Check half, evaluated once"), ("design", "Design half"):
        parts.append(f"## {title}: test accuracy\n\n" + table(rows, half, "accuracy", METHODS))
        parts.append(f"## {title}: error of T\n\n" + table(rows, half, "error", (CLEANLAB, OURS, BESIDE, EM)))
    publish("any_classifier.md", parts)
    write_csv(RESULTS / "any_classifier.csv", *means(rows), corner="method")


def main():
    """Add missing results and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the data sets with real noisy labels; default: skip them")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--machine", default="two CPU cores", help="machine to name on the page")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    done = {(r["problem"], r["estimator"], r["seed"], r["method"]) for r in read_rows(ROWS)}
    tasks = [
        (name, "network" if method == EM else kind, seed, method)
        for seed in SEEDS
        for name, problem in PROBLEMS.items()
        if problem.noise is not answers or args.data
        for method in METHODS
        for kind in (problem.estimators.split() if method != EM else ["network"])
    ]
    if not args.report:
        run_all(fit, [(*task, args.data) for task in tasks if task not in done], ROWS, args.jobs)
    report(args.machine)


if __name__ == "__main__":
    main()
