"""Compare samples to verify: from `suggest_samples`, at random, and with the lowest label quality.

    python examples/benchmarks/which_rows.py --data DIR           # 15 splits; each result is written immediately
    python examples/benchmarks/which_rows.py --report             # only write the page

Each split starts with 50 random verified samples. Three rounds verify 50, 100 and 100 more; each round fits
`LabelNoiseModel` again. All use the same probabilities: logistic regression on noisy labels, out-of-fold with five
folds. The measures of each target are the half width of its 90 % intervals, the error relative to the true labels of
all samples, and the coverage of the intervals.

Cells: the 1,797 digits with asymmetric noise of 0.4; 5,000 samples of a generated table of four classes with pair noise
of 0.3; 2,045 Hausa news titles with labels from rules; 4,000 images of CIFAR-10 with human labels ("worse") and 50
principal components of the features of `image_features.py`. DIR contains the folders "real" with the files of
`examples/real_labels/hausa.py`, "cifar10" with y_train.npy and cifar10n_worse.npy, and "features" with
cifar10_train.npy. The random part of the suggestions (a half; also tried: a fifth) was selected on splits 0 to 5 of
digits, so splits start at 100 here.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from problems import noise, table
from shared import RESULTS, markdown, publish, read_rows, run_all, versions, write_csv
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from noisytransition import LabelNoiseModel, count_transition_matrix, flip_labels, transition_error

ROWS = RESULTS / "which_rows.jsonl"
START, WAVES = 50, (50, 100, 100)
RANDOM, SUSPICIOUS, TARGETS = "random", "most suspicious", ("transition", "shares", "accuracy")
NAMES = {"transition": "T", "shares": "class shares", "accuracy": "accuracy of the classifier"}


# ---------------------------------------------------------------------------- data
def digits(seed, data):
    X, y = load_digits(return_X_y=True)
    return X / 16, y, flip_labels(y, noise("asymmetric-0.4", 10), random_state=seed)


def generated(seed, data):
    of = table("pair-0.3", seed, n=5000, n_test=1)
    return of.X, of.y_true, of.y


def hausa(seed, data):
    sys.path.append(str(Path(__file__).parents[2]))
    from examples.real_labels.hausa import read

    X, _, y, y_noisy, _ = read(data / "real")
    return X, y, y_noisy


def cifar10n(seed, data):
    y, given = (np.load(data / "cifar10" / name).astype(int) for name in ("y_train.npy", "cifar10n_worse.npy"))
    rows = np.sort(np.random.default_rng(seed).choice(len(y), 4000, replace=False))
    X = np.load(data / "features" / "cifar10_train.npy", mmap_mode="r")[rows].astype(float)
    return PCA(50, random_state=0).fit_transform(X), y[rows], given[rows]


CELLS = {"digits": digits, "table": generated, "Hausa": hausa, "CIFAR-10N": cifar10n}


def probabilities(X, y_noisy):
    """Return out-of-fold probabilities of the noisy label."""
    dense = isinstance(X, np.ndarray)
    scaled = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300))
    clf = scaled if dense else LogisticRegression(C=3.0, max_iter=300)
    return cross_val_predict(clf, X, y_noisy, cv=5, method="predict_proba")


# ---------------------------------------------------------------------------- loop
def fitted(proba, y_noisy, y, rows, probability):
    verified = np.full(len(y), -1)
    verified[rows] = y[rows]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="T may be wrong")
        classes = np.arange(proba.shape[1])
        return LabelNoiseModel().fit(
            proba, y_noisy, y_verified=verified, classes=classes, verified_probability=probability
        )


def next_rows(model, n, draw, proba, y_noisy, rows, rng):
    """Return the positions of the samples of a round, and their relative probabilities of selection."""
    left = np.setdiff1d(np.arange(len(y_noisy)), rows)
    if draw == RANDOM:
        return rng.choice(left, n, replace=False), np.ones(n)
    if draw == SUSPICIOUS:
        quality = model.label_quality(proba, y_noisy)
        return left[np.argsort(quality[left], kind="stable")[:n]], np.ones(n)
    found = model.suggest_samples(n, draw, random_state=rng)
    return found.position.to_numpy(), found.probability.to_numpy()


def measured(model, target, proba, y_noisy, y):
    """Return the mean half width of the intervals, the error, and the coverage."""
    T = count_transition_matrix(y, y_noisy, proba.shape[1])
    if target == "transition":
        low, high = (of.diagonal() for of in model.transition_interval())
        error, truth = transition_error(model.transition_matrix_, T), T.diagonal()
    elif target == "shares":
        found = model.class_shares()
        low, high, truth = found.lower, found.upper, np.bincount(y, minlength=len(T)) / len(y)
        error = np.sqrt(((found.share - truth) ** 2).mean())
    else:
        estimate, low, high = model.accuracy_interval()
        truth = (model.calibrate(proba).argmax(axis=1) == y).mean()
        error = abs(estimate - truth)
    held = np.mean((low <= truth) & (truth <= high))
    return {"width": round(float(np.mean(high - low) / 2), 5), "error": round(float(error), 5), "held": float(held)}


def run(cell, draw, seed, data):
    """Return the results after each round."""
    X, y, y_noisy = CELLS[cell](seed, data)
    proba, rng = probabilities(X, y_noisy), np.random.default_rng(seed + 1000)
    rows, probability = rng.choice(len(y), START, replace=False), np.ones(len(y))
    model, waves = fitted(proba, y_noisy, y, rows, probability), []
    for n in WAVES:
        more, relative = next_rows(model, n, draw, proba, y_noisy, rows, rng)
        probability[more], rows = relative, np.append(rows, more)
        model = fitted(proba, y_noisy, y, rows, probability)
        of = {RANDOM: TARGETS, SUSPICIOUS: TARGETS[:1]}.get(draw, (draw,))
        waves.append({"n": len(rows)} | {target: measured(model, target, proba, y_noisy, y) for target in of})
    return {"cell": cell, "draw": draw, "seed": seed, "waves": waves}


# ---------------------------------------------------------------------------- page
def rows_for(width, n, widths):
    """Interpolate the number of verified samples for a width, as a share of the last number."""
    best = np.minimum.accumulate(widths)
    if best[0] <= width or best[-1] > width:
        return f"at most {n[0] / n[-1]:.2f}" if best[0] <= width else "over 1"
    at = int(np.argmax(best <= width))
    share = np.log(best[at - 1] / width) / np.log(best[at - 1] / best[at])
    return f"{n[at - 1] * (n[at] / n[at - 1]) ** share / n[-1]:.2f}"


def mean(rows, target, key):
    """Return the mean over splits after each round."""
    return np.mean([[wave[target][key] for wave in row["waves"]] for row in rows], axis=0)


def error(rows, target):
    """Format the mean error after the last round, with its standard error over splits."""
    errors = [row["waves"][-1][target]["error"] for row in rows]
    return f"{np.mean(errors):.4f} ± {np.std(errors, ddof=1) / len(errors) ** 0.5:.4f}"


def needed(rows, at_random, target):
    """Return the number of verified samples for the last width of random samples, as a share of their number."""
    n = [wave["n"] for wave in rows[0]["waves"]]
    return rows_for(mean(at_random, target, "width")[-1], n, mean(rows, target, "width"))


def line(target, draw, rows, at_random):
    """Return a line: widths after each round, last error, last coverage, and the share of samples that is needed."""
    widths, held = (mean(rows, target, key) for key in ("width", "held"))
    cells = [*(f"{w:.4f}" for w in widths), error(rows, target), f"{held[-1]:.2f}"]
    name = draw if draw in (RANDOM, SUSPICIOUS) else "`suggest_samples`"
    return name, [*cells, "1" if draw == RANDOM else needed(rows, at_random, target)]


def short_line(target, cell, found):
    """Return a shorter line for the docs."""
    random, suggested = found[cell, RANDOM], found[cell, target]
    widths = [f"{mean(rows, target, 'width')[-1]:.4f}" for rows in (random, suggested)]
    errors = [error(rows, target) for rows in (random, suggested)]
    return f"{NAMES[target]}: {cell}", [*widths, needed(suggested, random, target), *errors]


def report():
    """Write and print the page, and the table of the docs."""
    found = {}
    for row in read_rows(ROWS):
        found.setdefault((row["cell"], row["draw"]), []).append(row)
    parts = [
        "# Selection of samples to verify",
        f"Mean half widths of 90 % intervals over 15 splits. {versions()}. See `which_rows.py`.",
        '"error": `transition_error` of T, root mean squared error of class shares, absolute error of the accuracy; ± '
        'standard error. "coverage": share of intervals that contain the true value for all samples. "samples needed": '
        'verified samples for the half width of 300 random samples, as a share of 300. "most suspicious" has no class '
        "shares or accuracies: `class_shares` raises an error, since the probability of selection is 0 or 1. Where one "
        "T holds, intervals of T become little shorter, since noisy labels already determine most of T.",
    ]
    heads = ["100 samples", "200", "300", "error at 300", "coverage", "samples needed"]
    for target, name in NAMES.items():
        draws = (RANDOM, SUSPICIOUS, target) if target == "transition" else (RANDOM, target)
        for cell in CELLS:
            lines = [line(target, draw, found[cell, draw], found[cell, RANDOM]) for draw in draws]
            parts += [f"## {name[0].upper()}{name[1:]}, {cell}", markdown(heads, lines)]
    heads = [
        "± of 300 random samples",
        "± of 300 suggested",
        "suggested samples for the same ±",
        "error, random",
        "error, suggested",
    ]
    lines = [short_line(target, cell, found) for target in NAMES for cell in CELLS]
    write_csv(RESULTS / "which_rows.csv", heads, lines)
    publish("which_rows.md", parts)


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="*", help=f"cells of {list(CELLS)}; default: all")
    parser.add_argument("--data", type=Path, help="folder of the data sets")
    parser.add_argument("--splits", type=int, default=15, help="number of splits")
    parser.add_argument("--processes", type=int, default=2, help="number of processes")
    parser.add_argument("--report", action="store_true", help="only write the tables of the existing results")
    args = parser.parse_args()
    if not args.report:
        done = {(row["cell"], row["draw"], row["seed"]) for row in read_rows(ROWS)}
        jobs = [
            (cell, draw, seed)
            for seed in range(100, 100 + args.splits)
            for cell in args.cells or CELLS
            for draw in (RANDOM, SUSPICIOUS, *TARGETS)
        ]
        run_all(run, [(*job, args.data) for job in jobs if job not in done], ROWS, args.processes)
    report()


if __name__ == "__main__":
    main()
