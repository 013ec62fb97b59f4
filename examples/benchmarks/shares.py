"""Measure the coverage and width of intervals of class shares and accuracies, with new samples in each repeat.

    python examples/benchmarks/shares.py [--repeats 1000] [--jobs 2]    # a second call adds missing results
    python examples/benchmarks/shares.py --report                       # only write the page

Each repeat draws 2,000 samples of three overlapping Gaussian classes with the shares 0.50, 0.35 and 0.15, noisy labels
of all samples and true labels of some, and fits `LabelNoiseModel` to out-of-fold probabilities of logistic regression.
The 90 % intervals should contain the class shares of the population, and the accuracies of the classifier and of the
labels on all samples.

Methods besides `class_shares`: the verified samples alone (Jeffreys' interval), prediction-powered inference with the
noisy label as the prediction, and the inverse of T counted from the verified pairs (bootstrap of 200). "shift": class
shares of a second batch of 2,000 samples, without labels or with noisy labels, where the shares are 0.25, 0.25 and
0.50; the verified samples alone contain no information about them.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.stats import beta
from shared import RESULTS, markdown, publish, read_rows, run_all, versions, write_csv
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel, flip_labels
from noisytransition.noise_model._shares import Population, prediction_powered
from noisytransition.transition import pair_noise, symmetric_noise

OUT = RESULTS / "shares.jsonl"
LEVEL, N = 0.9, 2000
SHARES, OTHERS = np.array([0.50, 0.35, 0.15]), np.array([0.25, 0.25, 0.50])
MEANS = np.random.default_rng(3).normal(size=(3, 4))
MEANS *= 1.8 / np.linalg.norm(MEANS, axis=1, keepdims=True)
PEOPLE = [symmetric_noise(3, 0.1), symmetric_noise(3, 0.3), pair_noise(3, 0.3), pair_noise(3, 0.5)]


def samples(shares, rng, n=N):
    """Draw true classes and features."""
    y = rng.choice(3, p=shares, size=n)
    return y, MEANS[y] + rng.normal(size=(n, 4))


# ---------------------------------------------------------------------------- noise
def of_class(y, X, rng):
    """Give 30 % of each class the label of the next class."""
    return flip_labels(y, pair_noise(3, 0.3), random_state=int(rng.integers(2**31)))


def of_features(y, X, rng):
    """Flip labels of samples near another class more often."""
    proba = np.exp(-((X[:, None] - MEANS) ** 2).sum(axis=2) / 2) * SHARES
    proba /= proba.sum(axis=1, keepdims=True)
    of_true = proba[np.arange(len(y)), y].copy()
    proba[np.arange(len(y)), y] = 0
    return np.where(rng.random(len(y)) < np.minimum(2 * (1 - of_true), 0.9), proba.argmax(axis=1), y)


def of_a_rule(y, X, rng):
    """Label all samples by two thresholds on two features."""
    return (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def of_people(y, X, rng):
    """Return the labels of four people, each sample labelled by three of them."""
    labels = np.column_stack([flip_labels(y, T, random_state=int(rng.integers(2**31))) for T in PEOPLE]).astype(float)
    labels[np.argsort(rng.random(labels.shape), axis=1) == 3] = np.nan
    return labels


def at_random(noisy, m, rng):
    """Draw m samples to verify at random."""
    return rng.choice(len(noisy), m, replace=False)


def by_label(noisy, m, rng):
    """Draw the same number of samples to verify for each given label."""
    return np.concatenate([rng.choice(np.flatnonzero(noisy == j), m // 3, replace=False) for j in range(3)])


PROBLEMS = {
    "noise of the class, 40 verified": (of_class, at_random, 40),
    "noise of the class, 100 verified": (of_class, at_random, 100),
    "noise of the class, 300 verified": (of_class, at_random, 300),
    "noise of the features, 100 verified": (of_features, at_random, 100),
    "labels of a rule, 100 verified": (of_a_rule, at_random, 100),
    "three of four people, 100 verified": (of_people, at_random, 100),
    "noise of the class, 40 of each label": (of_class, by_label, 120),
}
SHIFTS = {"shift, no labels, 100 verified": False, "shift, noisy labels, 100 verified": True}


# ---------------------------------------------------------------------------- one repeat
def run(problem, seed):
    """Return the coverage and half widths of all methods."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    label, draw, m = PROBLEMS.get(problem, PROBLEMS["noise of the class, 100 verified"])
    y, X = samples(SHARES, rng)
    labels = label(y, X, rng)
    table = pd.DataFrame(labels, columns=[f"person {k}" for k in range(4)] if labels.ndim > 1 else ["label"])
    given = table.mode(axis=1)[0].to_numpy(dtype=int)
    verified = draw(given, m, rng)
    table["verified"] = pd.Series(y[verified], index=verified)
    proba = cross_val_predict(LogisticRegression(), X, given, cv=3, method="predict_proba")
    model, found = LabelNoiseModel().fit(proba, table), {}
    if problem in SHIFTS:
        y, X_batch = samples(OTHERS, rng)
        batch = {"proba": LogisticRegression().fit(X, given).predict_proba(X_batch)}
        if SHIFTS[problem]:
            batch["y_noisy"] = label(y, X_batch, rng)
        shares = model.class_shares(LEVEL, **batch)
        found["class_shares"] = judged(OTHERS, shares.lower, shares.upper)
        return {"problem": problem, "seed": seed, **found}
    population = Population(model)  # `class_shares` and `accuracy_interval` would fit again
    found["class_shares"] = judged(SHARES, *population.class_shares(population.everywhere).interval(LEVEL))
    found["verified alone"] = judged(SHARES, *alone(y[verified], given[verified], given, draw))
    if draw is at_random:
        one_hot, rest = np.eye(3), np.setdiff1d(np.arange(N), verified)
        powered = prediction_powered(one_hot[given[rest]], one_hot[given[verified]], one_hot[y[verified]])
        found["noisy label"] = judged(SHARES, *powered.interval(LEVEL))
        found["T inverted"] = judged(SHARES, *inverted(given, y[verified], given[verified], rng))
    of_labels, of_classifier = (population.accuracy(of, population.everywhere).interval(LEVEL) for of in (True, False))
    right = (model.calibrate(proba).argmax(axis=1) == y).mean()
    found["accuracy of the labels"] = judged((given == y).mean(), *of_labels)
    found["accuracy of the classifier"] = judged(right, *of_classifier)
    return {"problem": problem, "seed": seed, **found}


def judged(truth, lower, upper):
    """Return whether each interval contains the true value, and its half width."""
    lower, upper = np.atleast_1d(lower), np.atleast_1d(upper)
    covered = (lower <= truth) & (truth <= upper)
    return {"covered": covered.astype(int).tolist(), "half": np.round((upper - lower) / 2, 4).tolist()}


def alone(y, of_verified, given, draw):
    """Return intervals from verified samples alone; stratified if they were drawn by label."""
    if draw is at_random:
        k = np.bincount(y, minlength=3)
        return beta.ppf((1 - LEVEL) / 2, k + 0.5, len(y) - k + 0.5), beta.ppf(
            (1 + LEVEL) / 2, k + 0.5, len(y) - k + 0.5
        )
    parts = [(np.mean(given == j), np.eye(3)[y[of_verified == j]]) for j in range(3)]
    mean = sum(share * of.mean(axis=0) for share, of in parts)
    error = np.sqrt(sum(share**2 * of.var(axis=0, ddof=1) / len(of) for share, of in parts))
    return mean - 1.645 * error, mean + 1.645 * error


def inverted(given, y, of_verified, rng):
    """Solve noisy shares = T^T x class shares with T of the verified pairs; return quantiles of a bootstrap."""
    found = []
    for _ in range(200):
        rows = rng.integers(len(y), size=len(y))
        T = np.full((3, 3), 1e-3)
        np.add.at(T, (y[rows], of_verified[rows]), 1)
        noisy = np.bincount(given[rng.integers(N, size=N)], minlength=3) / N
        found.append(np.linalg.pinv((T / T.sum(axis=1, keepdims=True)).T) @ noisy)
    return np.clip(np.quantile(found, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0), 0, 1)


# ---------------------------------------------------------------------------- the page
METHODS = ["class_shares", "verified alone", "noisy label", "T inverted"]
ACCURACIES = ["accuracy of the labels", "accuracy of the classifier"]


def cell(rows, method):
    """Format the coverage with its standard error, and the mean half width."""
    own = [row[method] for row in rows if method in row]
    if not own:
        return ""
    covered = np.array([row["covered"] for row in own]).mean(axis=1)
    half = np.mean([row["half"] for row in own])
    return f"{covered.mean():.3f} ± {covered.std(ddof=1) / len(own) ** 0.5:.3f}, {half:.3f}"


def report():
    """Write and print the page."""
    rows = {}
    for row in read_rows(OUT):
        rows.setdefault(row["problem"], []).append(row)
    problems = [name for name in [*PROBLEMS, *SHIFTS] if name in rows]
    counts = sorted({len(rows[name]) for name in problems})
    lines = [(name, [cell(rows[name], of) for of in METHODS]) for name in problems]
    accuracies = [(n, [cell(rows[n], of) for of in ACCURACIES]) for n in problems if n not in SHIFTS]
    write_csv(RESULTS / "shares.csv", METHODS, lines)
    write_csv(RESULTS / "shares_accuracies.csv", ACCURACIES, accuracies)
    publish(
        "shares.md",
        [
            "# Class shares and accuracies",
            f"Coverage of 90 % intervals ± standard error, and mean half width; "
            f"{' or '.join(map(str, counts))} repeats. {versions()}. See `shares.py`.",
            markdown(METHODS, lines),
            markdown(ACCURACIES, accuracies),
        ],
    )


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1000, help="number of repeats of each cell")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    if not args.report:
        done = {(row["problem"], row["seed"]) for row in read_rows(OUT)}
        todo = [(name, seed) for seed in range(args.repeats) for name in [*PROBLEMS, *SHIFTS]]
        run_all(run, [key for key in todo if key not in done], OUT, args.jobs)
    report()


if __name__ == "__main__":
    main()
