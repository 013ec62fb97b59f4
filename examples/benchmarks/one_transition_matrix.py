"""Measure the size and power of `class_conditional_test`, by simulation and on human labels of CIFAR-10.

    python examples/benchmarks/one_transition_matrix.py              # simulations
    python examples/benchmarks/one_transition_matrix.py --data DIR   # CIFAR-10N
    python examples/benchmarks/one_transition_matrix.py --report     # only write the page

Each result is written immediately; a second call adds missing results.

Simulations: five overlapping Gaussian classes in ten dimensions, 1,000 noisy samples, clean samples with both labels.
Each result has its own fit: an MLP of 32 units, 10 epochs, batches of 256. Groups are defined by the sign of the first
feature, so they depend on the class.

Size: 200 fits each, one T for all samples (0.45 to the next class), 300 clean samples.

* GLC with T counted from the pairs of the clean samples; EM, which adds the pairs to its counts. The test
  uses the clean samples of the training.
* "trained on their noisy labels": Forward, 256 units, 100 epochs (100 fits); its noisy samples are the 300 samples of
  the test. The documentation warns against this misuse.

Power: 100 data sets each, level 0.05.

* groups: noise rates 0.2 and 0.3; tested by group, without a classifier.
* boundary: the label becomes the next class with probability 0.2 + 0.6 (1 - P(y|x)); weak:
  0.2 + 0.2 (1 - P(y|x)).
* unknown group: as groups 0.2 and 0.3, but the test does not know the group.

The last two use a fit of GLC for each data set, and are tested on its clean samples and on as many other samples.

CIFAR-10N (DIR: X_train.npy, y_train.npy as in `cifar10.py`; cifar10n_worse.npy, cifar10n_aggre.npy: labels of the same
images): GLC with the small CNN of `cifar10.py`, one fit for each noise, on 9,500 images with human labels and 500 clean
images; tests on 100 random, overlapping subsets of the other 40,000 images. "drawn": labels drawn from the T of
`worse`, so that one T holds. Images have no columns, so only the posteriors are tested.
"""

import argparse
import os
from functools import partial
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cifar10 import CNN, NET
from problems import gaussians, gaussians_posterior
from scipy import stats
from shared import RESULTS, add_row, markdown, publish, read_rows, versions

from noisytransition import (
    EMTransitionClassifier,
    ForwardClassifier,
    GLCClassifier,
    class_conditional_test,
    flip_labels,
    label_posterior,
)
from noisytransition.transition import count_transition_matrix, pair_noise, symmetric_noise

ROWS = RESULTS / "one_transition_matrix.jsonl"
N_FITS, N_REPEATS, N_NOISY, SIZES = 200, 100, 1000, (300, 1000, 5000)
SMALL = {
    "module__hidden": 32,
    "max_epochs": 10,
    "batch_size": 256,
    "optimizer": "sgd",
    "lr": 0.1,
    "optimizer__momentum": 0.9,
}
# offset of the seed of the noise, which makes it independent of the samples
OTHER = 10_000
HUMAN = ("worse", "worse, drawn", "aggre")


# ---------------------------------------------------------------------------- noise
def one_T(T, seed, X, y):
    return flip_labels(y, T, random_state=seed + OTHER)


def by_group(rates, seed, X, y):
    """Flip labels with symmetric noise of two rates, by the sign of the first feature."""
    first, second = (flip_labels(y, symmetric_noise(5, rate), random_state=seed + OTHER) for rate in rates)
    return np.where(X[:, 0] > 0, second, first)


def boundary(rise, seed, X, y):
    """Flip labels to the next class, more often where the class is less certain."""
    sure = gaussians_posterior(seed, X)[np.arange(len(y)), y]
    flipped = np.random.default_rng(seed + OTHER).random(len(y)) < 0.2 + rise * (1 - sure)
    return np.where(flipped, (y + 1) % 5, y)


# name: noise, and whether the test knows the groups
ALTERNATIVES = {
    "groups, 0.2 and 0.3": (partial(by_group, (0.2, 0.3)), True),
    "boundary": (partial(boundary, 0.6), False),
    "boundary, weak": (partial(boundary, 0.2), False),
    "untold group, 0.2 and 0.3": (partial(by_group, (0.2, 0.3)), False),
}


# ---------------------------------------------------------------------------- simulations
def simulate(noise, seed, n_clean):
    """Draw noisy samples with their labels, and two sets of clean samples with both labels."""
    data = gaussians("symmetric-0", seed, n=N_NOISY, n_clean=2 * n_clean, n_test=1)
    s = noise(seed, np.concatenate([data.X, data.X_clean]), np.concatenate([data.y_true, data.y_clean]))
    first, second = slice(0, n_clean), slice(n_clean, None)
    sets = [(data.X_clean[part], data.y_clean[part], s[N_NOISY:][part]) for part in (first, second)]
    return (data.X, s[:N_NOISY]), *sets


def glc(noisy, clean, seed):
    clf = GLCClassifier(transition_init="count", random_state=seed, **SMALL)
    return clf.fit(*noisy, meta=clean[:2], y_clean_noisy=clean[2])


def em(noisy, clean, seed):
    clf = EMTransitionClassifier(transition_init="count", random_state=seed, **SMALL)
    return clf.fit(*noisy, meta=clean[:2], y_clean_noisy=clean[2])


def memorising(noisy, clean, seed):
    params = SMALL | {"module__hidden": 256, "max_epochs": 100, "random_state": seed}
    clf = ForwardClassifier(transition_init="count", **params)
    return clf.fit(clean[0], clean[2], meta=clean[:2], y_clean_noisy=clean[2])


MEMORISED = "Forward, trained on their noisy labels"
FITS = {"GLC": glc, "EM": em, MEMORISED: memorising}


def of_classifier(clf, X, y, s, seed):
    """Test with the posteriors of a classifier and the columns."""
    return class_conditional_test(y, s, proba=clf.predict_proba(X), features=X, random_state=seed)


def size(fit, seed):
    """Return p-values of one fit where one T holds."""
    noisy, clean, _ = simulate(partial(one_T, pair_noise(5, 0.45)), seed, 300)
    found = {"default": of_classifier(FITS[fit](noisy, clean, seed), *clean, seed).pvalue}
    if fit == "GLC":  # groups need no classifier
        found["groups"] = class_conditional_test(*clean[1:], groups=clean[0][:, 0] > 0, random_state=seed).pvalue
    return found


def power(alternative, n, seed):
    """Return p-values of one data set where one T does not hold: by group, or of the classifier's and other samples."""
    noise, told = ALTERNATIVES[alternative]
    noisy, clean, others = simulate(noise, seed, n)
    if told:
        found = class_conditional_test(*clean[1:], groups=clean[0][:, 0] > 0, random_state=seed)
        return {"groups": found.pvalue}
    clf = glc(noisy, clean, seed)
    return {name: of_classifier(clf, *rows, seed).pvalue for name, rows in (("trained on", clean), ("others", others))}


def fill():
    """Add missing results, seed by seed; each is written immediately."""
    done = {(row["part"], row["case"], row.get("n"), row["seed"]) for row in read_rows(ROWS) if row["part"] != "CIFAR"}
    fits = [(fit, seed) for seed in range(N_FITS) for fit in FITS if fit != MEMORISED or seed < N_REPEATS]
    jobs = [("size", fit, 300, seed, partial(size, fit)) for fit, seed in fits]
    jobs += [
        ("power", name, n, seed, partial(power, name, n))
        for seed in range(N_REPEATS)
        for n in SIZES
        for name in ALTERNATIVES
    ]
    for part, case, n, seed, run in jobs:
        if (part, case, n, seed) not in done:
            add_row(ROWS, {"part": part, "case": case, "n": n, "seed": seed, "pvalues": run(seed)})


# ---------------------------------------------------------------------------- CIFAR-10N
def human_labels(folder, noise, y):
    """Return the noisy labels of the training images."""
    s = np.load(Path(folder) / f"cifar10n_{noise.partition(',')[0]}.npy").astype(int)
    return flip_labels(y, count_transition_matrix(y, s), random_state=0) if "drawn" in noise else s


def cifar(folder, noise):
    """Fit once, and test subsets of the other images."""
    done = {(row.get("n"), row.get("seed")) for row in read_rows(ROWS) if row["case"] == noise}
    jobs = [(n, seed) for n in SIZES for seed in range(N_REPEATS) if (n, seed) not in done]
    if not jobs:
        return
    X, y = (np.load(Path(folder) / f"{name}.npy") for name in ("X_train", "y_train"))
    y = y.astype(int)
    s = human_labels(folder, noise, y)
    noisy, clean, others = np.split(np.random.default_rng(0).permutation(len(y)), [9_500, 10_000])
    clf = GLCClassifier(module=CNN, transition_init="count", random_state=0, **NET)
    clf.fit(X[noisy], s[noisy], meta=(X[clean], y[clean]), y_clean_noisy=s[clean])
    if not done:
        follows = what_follows(clf, X[others], y[others], s[others])
        found = class_conditional_test(y[clean], s[clean], proba=clf.predict_proba(X[clean]), random_state=0)
        row = {"part": "CIFAR", "case": noise, "n": "trained on", "seed": 0, "pvalues": found.pvalues}
        add_row(ROWS, row | {"follows": follows})
    proba, y, s = clf.predict_proba(X[others]), y[others], s[others]
    for n, seed in jobs:
        rows = np.random.default_rng(seed).choice(len(y), n, replace=False)
        found = class_conditional_test(y[rows], s[rows], proba=proba[rows], random_state=seed)
        add_row(ROWS, {"part": "CIFAR", "case": noise, "n": n, "seed": seed, "pvalues": found.pvalues})
    print(noise, found, sep="\n", flush=True)


def what_follows(clf, X, y, s):
    """Return the posterior of the noisy label and its accuracy, where it agrees with the classifier and elsewhere."""
    proba = clf.predict_proba(X)
    posterior = label_posterior(proba, s, clf.transition_matrix_)[np.arange(len(s)), s]
    agree = proba.argmax(axis=1) == s
    cells = {"agrees": agree, "differs": ~agree}
    return {"accuracy": float((proba.argmax(axis=1) == y).mean())} | {
        name: [float(cell.mean()), float(posterior[cell].mean()), float((s == y)[cell].mean())]
        for name, cell in cells.items()
    }


# ---------------------------------------------------------------------------- the report
def pvalues(part, case, name, n=None):
    rows = [row for row in read_rows(ROWS) if (row["part"], row["case"], row.get("n")) == (part, case, n)]
    return np.array([min(row["pvalues"].values()) if name is None else row["pvalues"][name] for row in rows])


def share(p):
    """Format the share of p-values of at most 0.05, with its standard error."""
    if not len(p):
        return ""
    rejected = (p <= 0.05).mean()
    return f"{rejected:.2f} ± {np.sqrt(rejected * (1 - rejected) / len(p)):.2f}"


def size_table():
    lines = []
    for fit in FITS:
        for name in ("default", "groups") if fit == "GLC" else ("default",):
            p = pvalues("size", fit, name, 300)
            if len(p):
                rejected = (p <= 0.05).mean()
                error = np.sqrt(rejected * (1 - rejected) / len(p))
                shown = [str(len(p)), f"{rejected:.3f} ± {error:.3f}", f"{stats.kstest(p, 'uniform').pvalue:.2g}"]
                lines.append((f"{fit}; {name}", shown))
    return markdown(["fits", "rejection rate at level 0.05", "Kolmogorov-Smirnov p"], lines)


# stored names, and the words that the page shows
WORDS = {"untold group, 0.2 and 0.3": "unknown group, 0.2 and 0.3"}
POSITIONS = {"groups": "groups", "trained on": "training samples", "others": "other samples"}


def power_table():
    lines = [
        (f"{WORDS.get(case, case)}; {POSITIONS[rows]}", [share(pvalues("power", case, rows, n)) for n in SIZES])
        for case, (_, told) in ALTERNATIVES.items()
        for rows in (["groups"] if told else ["trained on", "others"])
    ]
    return markdown([f"{n} clean samples" for n in SIZES], lines)


def cifar_tables():
    names = {"all": None, "direction only": "posteriors: direction", "labels only": "posteriors: labels"}
    lines = [
        (f"{noise}; {shown}", [share(pvalues("CIFAR", noise, name, n)) for n in SIZES])
        for noise in HUMAN
        for shown, name in names.items()
    ]
    trained = "; ".join(f"{noise} {pvalues('CIFAR', noise, None, 'trained on').min():.3g}" for noise in HUMAN)
    follows = {row["case"]: row["follows"] for row in read_rows(ROWS) if "follows" in row}
    cells = [
        (f"{noise}; {cell}", [f"{value:.3f}" for value in found[cell]])
        for noise, found in follows.items()
        for cell in ("agrees", "differs")
    ]
    accuracy = ", ".join(f"{noise} {found['accuracy']:.3f}" for noise, found in follows.items())
    return [
        "## Human labels of CIFAR-10: rejection rate at level 0.05\n\n"
        + markdown([f"{n} clean samples" for n in SIZES], lines)
        + f"\n\np-values of the 500 clean training images: {trained}. Accuracy of the CNN: {accuracy}.",
        "## Consequence: posterior of the noisy label and its accuracy\n\nGLC's label posterior with one T, for images "
        "whose noisy label agrees with the classifier's prediction, or differs from it.\n\n"
        + markdown(["share of images", "mean posterior", "correct labels"], cells),
    ]


def report():
    """Write and print the page."""
    parts = [
        "# Test whether one T is enough",
        f"Rejection rates ± standard error; p-values from 999 permutations. {versions()}. See "
        "`one_transition_matrix.py`.",
        "## Size: one T holds\n\n" + size_table(),
        "## Power: rejection rate at level 0.05\n\n" + power_table(),
    ]
    human = {row["case"] for row in read_rows(ROWS) if row["part"] == "CIFAR"}
    publish("one_transition_matrix.md", parts + (cifar_tables() if human == set(HUMAN) else []))


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of CIFAR-10 and its human labels: only run that part")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    if args.data and not args.report:
        for noise in HUMAN:
            cifar(args.data, noise)
    elif not args.report:
        fill()
    report()


if __name__ == "__main__":
    main()
