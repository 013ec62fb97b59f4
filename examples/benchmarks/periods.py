"""Measure T along time, and the test of new batches.

    python examples/benchmarks/periods.py --jobs 2     # all repeats; each result is written immediately
    python examples/benchmarks/periods.py --report     # only write the page

T along time: 3,600 samples of twelve months, two classes with one feature, of which 100 or 300 are verified. The
probability of a right label falls linearly from 0.9 by 0, 0.2 or 0.4. `LabelNoiseModel` gets the probabilities of the
true label, and the months as periods, or as sources without an order.

New batches: three classes, 2,000 samples of which 200 are verified, then twelve batches of 1,000 samples like them, and
three in which labels are right with a probability of 0.7 in place of 0.8.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.special import expit
from shared import RESULTS, markdown, publish, read_rows, run_all
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from noisytransition import EMTransitionClassifier, LabelNoiseModel, TransitionClassifierCV

ROWS = RESULTS / "periods.jsonl"
N_MONTHS = 12
FALLS = (0.0, 0.2, 0.4)
VERIFIED = (100, 300)
ALARMS = ("false alarm", "in the first", "in three")
CLASSIFIERS = {
    "logistic regression": lambda: TransitionClassifierCV(LogisticRegression()),
    "random forest": lambda: TransitionClassifierCV(RandomForestClassifier(min_samples_leaf=3, random_state=0)),
    "EM, linear": lambda: EMTransitionClassifier("linear", max_epochs=15, random_state=0),
}


def along_time(fall, n_verified, seed, n=3600):
    """Error and coverage of the share of right labels of each month, with and without an order."""
    rng = np.random.default_rng(seed)
    month = np.arange(n) * N_MONTHS // n
    y = rng.integers(2, size=n)
    proba = expit(2.4 * (rng.normal(size=n) + 1.2 * (2 * y - 1)))
    probability = 0.9 - fall * month / (N_MONTHS - 1)
    noisy = np.where(rng.random(n) < probability, y, 1 - y)
    verified = np.full(n, -1)
    rows = rng.choice(n, n_verified, replace=False)
    verified[rows] = y[rows]
    dates = pd.Series(pd.period_range("2025-01", periods=N_MONTHS, freq="M")[month])
    right = pd.Series(noisy == y).groupby(month).mean().to_numpy()
    row = {"fall": fall, "n_verified": n_verified, "seed": seed}
    for name, sources in {"periods": dates, "no order": dates.astype(str)}.items():
        found = LabelNoiseModel().fit(np.column_stack([1 - proba, proba]), noisy, y_verified=verified, sources=sources)
        table = found.source_summary()
        row[f"error, {name}"] = float(np.abs(table.right - right).mean())
        row[f"covered, {name}"] = float(((table.lower <= right) & (right <= table.upper)).mean())
    return row


def batch(rng, n, right):
    """Features, classes and labels of three classes."""
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 6)).astype(np.float32)
    X[np.arange(n), y] += 2.2
    return X, y, np.where(rng.random(n) < right, y, (y + rng.integers(1, 3, size=n)) % 3)


def monitor(classifier, seed):
    """Whether twelve batches without a change give a reason, and the first of three worse batches that does."""
    rng = np.random.default_rng(seed)
    X, y, noisy = batch(rng, 2000, 0.8)
    verified = np.where(np.isin(np.arange(2000), rng.choice(2000, 200, replace=False)), y, -1)
    clf = CLASSIFIERS[classifier]().fit(X, noisy, y_verified=verified)
    usual = [batch(rng, 1000, 0.8) for _ in range(12)]
    worse = [batch(rng, 1000, 0.7) for _ in range(3)]
    found = ["labels" in clf.needs_verification(X, noisy) for X, _, noisy in worse]
    return {
        "classifier": classifier,
        "seed": seed,
        "false alarm": any(clf.needs_verification(X, noisy) for X, _, noisy in usual),
        "in the first": found[0],
        "in three": any(found),
    }


def run(function, *given):
    """Run one repeat."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*given)


def share(values):
    """Mean of booleans with its standard error."""
    mean = np.mean(values)
    return f"{mean:.2f} ± {(mean * (1 - mean) / len(values)) ** 0.5:.2f}"


def report(machine):
    """Write and print the page."""
    rows = read_rows(ROWS)
    names = ("periods", "no order")
    heads = [*(f"{what}, {name}" for what in ("error", "coverage") for name in names)]
    lines = []
    for fall in FALLS:
        for m in VERIFIED:
            of = [r for r in rows if r.get("fall") == fall and r.get("n_verified") == m]
            errors = [[r[f"error, {name}"] for r in of] for name in names]
            cells = [f"{np.mean(v):.3f} ± {np.std(v, ddof=1) / len(v) ** 0.5:.3f}" for v in errors]
            cells += [f"{np.mean([r[f'covered, {name}'] for r in of]):.2f}" for name in names]
            lines.append((f"falls by {fall:g}, {m} verified", cells))
    batches = []
    for name in CLASSIFIERS:
        of = [r for r in rows if r.get("classifier") == name]
        batches.append((f"{name} ({len(of)} fits)", [share([r[key] for r in of]) for key in ALARMS]))
    n = sum("fall" in r for r in rows) // len(lines)
    parts = [
        "# Periods and new batches",
        f"Generated data; {machine}. See `periods.py`.",
        f"## Share of right labels of twelve months\n\nMean absolute error with its standard error, and coverage of "
        f"90 % intervals; {n} repeats.\n\n{markdown(heads, lines)}",
        "## `needs_verification`\n\nShare of fits with a reason in any of twelve batches without a change; and with "
        'the reason "labels" in the first of three batches with ten points fewer right labels, and in any of them.\n\n'
        + markdown(["false alarm in twelve", "found in the first", "found in three"], batches),
    ]
    publish("periods.md", parts)


def main():
    """Add missing repeats and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20, help="repeats of each row of the first table")
    parser.add_argument("--fits", type=int, default=100, help="fits of logistic regression; a fifth of the others")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--machine", default="two CPU cores", help="machine to name on the page")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    todo = [(along_time, fall, m, seed) for seed in range(args.repeats) for fall in FALLS for m in VERIFIED]
    for name in CLASSIFIERS:
        n_fits = args.fits if name == "logistic regression" else args.fits // 5
        todo += [(monitor, name, seed) for seed in range(n_fits)]
    rows = read_rows(ROWS)
    done = {(r["fall"], r["n_verified"], r["seed"]) for r in rows if "fall" in r}
    done |= {(r["classifier"], r["seed"]) for r in rows if "classifier" in r}
    if not args.report:
        run_all(run, [task for task in todo if task[1:] not in done], ROWS, args.jobs)
    report(args.machine)


if __name__ == "__main__":
    main()
