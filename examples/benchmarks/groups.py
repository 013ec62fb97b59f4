"""Measure intervals and accuracy if samples come in groups, such as ten images of each patient.

    python examples/benchmarks/groups.py --jobs 2     # all repeats; each result is written immediately
    python examples/benchmarks/groups.py --report     # only write the page

Each repeat draws groups of ten samples with eight features. With correlation r, two samples of a group have the same
class and the same random flip with probability r, and features with this correlation. All samples of 20, 50 or 100 of
150, 200 or 300 groups are verified, or three of them. `LabelNoiseModel` gets out-of-fold probabilities by logistic
regression and `GroupKFold`. 90 % intervals should contain T, class shares and the accuracy of the labels in the
population. A second table has the test accuracy of classifiers on samples of new groups.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from shared import RESULTS, markdown, publish, read_rows, run_all
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from noisytransition import EMTransitionClassifier, LabelNoiseModel, TransitionClassifierCV

ROWS = RESULTS / "groups.jsonl"
SIZE, N_FEATURES = 10, 8
PRIOR = {2: [0.6, 0.4], 3: [0.5, 0.3, 0.2]}
MATRICES = {
    2: np.array([[0.8, 0.2], [0.3, 0.7]]),
    3: np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]),
}
VERIFIED = {20: 150, 50: 200, 100: 300}  # groups of which samples are verified, and all groups
CORRELATIONS = (0.0, 0.5, 1.0)
QUANTITIES = {"T": "T", "shares": "class shares", "labels": "accuracy of the labels"}


def draw(c, n_groups, correlation, seed):
    """Draw features, classes, noisy labels and groups."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), SIZE)
    n = len(groups)
    same = correlation**0.5
    y = np.where(rng.random(n) < same, rng.choice(c, n_groups, p=PRIOR[c])[groups], rng.choice(c, n, p=PRIOR[c]))
    means = 0.9 * np.random.default_rng(99).normal(size=(c, N_FEATURES))
    of_groups = rng.normal(size=(n_groups, N_FEATURES))[groups]
    X = means[y] + same * of_groups + (1 - correlation) ** 0.5 * rng.normal(size=(n, N_FEATURES))
    u = np.where(rng.random(n) < same, rng.random(n_groups)[groups], rng.random(n))
    noisy = (u[:, None] > MATRICES[c].cumsum(axis=1)[y, :-1]).sum(axis=1)
    return X, y, noisy, groups


def verified_labels(y, groups, n_verified, part, seed):
    """True labels of all samples of some groups, or of three of each; -1 for others."""
    chosen = np.random.default_rng(seed + 1000).permutation(groups[-1] + 1)[:n_verified]
    return np.where(np.isin(groups, chosen) & (not part or np.arange(len(y)) % SIZE < 3), y, -1)


def intervals(c, n_verified, part, correlation, repeat):
    """Return the share of 90 % intervals that contain the truth, and mean half widths."""
    warnings.simplefilter("ignore")
    X, y, noisy, groups = draw(c, VERIFIED[n_verified], correlation, repeat)
    verified = verified_labels(y, groups, n_verified, part, repeat)
    cv = GroupKFold(3)
    clf = LogisticRegression(C=0.1)
    proba = cross_val_predict(clf, X, noisy, cv=cv, groups=groups, method="predict_proba")
    row = {"cell": [c, n_verified, part, correlation], "repeat": repeat}
    prior, T = PRIOR[c], MATRICES[c]
    for name, given in (("groups", groups), ("no groups", None)):
        model = LabelNoiseModel().fit(proba, noisy, y_verified=verified, groups=given)
        shares = model.class_shares()
        accuracy = model.accuracy_interval(of="labels")
        found = {
            "T": (*model.transition_interval(), T),
            "shares": (shares.lower, shares.upper, prior),
            "labels": (accuracy.lower, accuracy.upper, prior @ T.diagonal()),
        }
        for quantity, (low, high, truth) in found.items():
            inside = (np.asarray(low) <= truth) & (truth <= np.asarray(high))
            row[f"{quantity}, {name}"] = [round(float(inside.mean()), 4), round(float(np.mean(high - low) / 2), 4)]
    return row


CLASSIFIERS = {
    "random forest": lambda seed: TransitionClassifierCV(RandomForestClassifier(random_state=seed), random_state=seed),
    "logistic regression": lambda seed: TransitionClassifierCV(LogisticRegression(C=0.1), random_state=seed),
    "EM, linear": lambda seed: EMTransitionClassifier("linear", random_state=seed),
}


def accuracies(name, correlation, repeat):
    """Return the accuracy on new groups, with and without groups in `fit`, and of the simple ways."""
    warnings.simplefilter("ignore")
    X, y, noisy, groups = draw(3, 200, correlation, repeat)
    verified = verified_labels(y, groups, 50, False, repeat)
    X_test, y_test, *_ = draw(3, 300, correlation, repeat + 5000)
    row = {"classifier": name, "correlation": correlation, "repeat": repeat}
    for how, given in (("groups", groups), ("no groups", None)):
        clf = CLASSIFIERS[name](repeat).fit(X, noisy, y_verified=verified, groups=given)
        row[how] = float((clf.predict(X_test) == y_test).mean())
    simple = getattr(CLASSIFIERS[name](repeat), "estimator", LogisticRegression(C=0.1))
    known = verified >= 0
    row["verified samples only"] = float(simple.fit(X[known], y[known]).score(X_test, y_test))
    row["noise ignored"] = float(simple.fit(X, noisy).score(X_test, y_test))
    return row


def run(function, *arguments):
    return function(*arguments)


# ---------------------------------------------------------------------------- the page
def coverage_table(rows):
    """Return mean coverage and half width by correlation and number of verified groups."""
    lines = []
    for n_verified in VERIFIED:
        for correlation in CORRELATIONS:
            mine = [r for r in rows if "cell" in r and r["cell"][1] == n_verified and r["cell"][3] == correlation]
            if mine:
                cells = []
                for quantity in QUANTITIES:
                    for how in ("groups", "no groups"):
                        coverage, width = np.mean([r[f"{quantity}, {how}"] for r in mine], axis=0)
                        cells.append(f"{coverage:.2f} (± {width:.2f})")
                lines.append((f"{n_verified} groups, correlation {correlation:g}", cells))
    return markdown([f"{q}, {how}" for q in QUANTITIES.values() for how in ("groups", "no groups")], lines)


def accuracy_table(rows):
    """Return mean and standard deviation of accuracies."""
    heads = ["groups", "no groups", "verified samples only", "noise ignored"]
    lines = []
    for name in CLASSIFIERS:
        for correlation in CORRELATIONS:
            mine = [r for r in rows if r.get("classifier") == name and r["correlation"] == correlation]
            if mine:
                values = {h: [r[h] for r in mine] for h in heads}
                cells = [f"{np.mean(v):.3f} ± {np.std(v, ddof=1):.3f}" for v in values.values()]
                lines.append((f"{name}, correlation {correlation:g}", cells))
    return markdown(heads, lines)


def report(machine):
    """Write and print the page."""
    rows = read_rows(ROWS)
    n = 1 + max(r["repeat"] for r in rows if "cell" in r)
    means = {
        how: [np.mean([r[f"{q}, {how}"][0] for r in rows if "cell" in r]) for q in QUANTITIES]
        for how in ("groups", "no groups")
    }
    words = [
        f"{how}: {', '.join(f'{name} {m:.2f}' for name, m in zip(QUANTITIES.values(), of, strict=True))}"
        for how, of in means.items()
    ]
    parts = [
        "# Groups of samples",
        f"Ten samples in each group; {machine}. See `groups.py`.",
        f"## Coverage of 90 % intervals (and mean half width)\n\n{n} repeats; means over two and three classes, groups "
        f"verified whole or in part. All cells: {'; '.join(words)}.\n\n{coverage_table(rows)}",
        f"## Test accuracy on new groups\n\nThree classes, 50 of 200 groups verified.\n\n{accuracy_table(rows)}",
    ]
    publish("groups.md", parts)


def main():
    """Add missing repeats and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=15, help="repeats of each cell of intervals")
    parser.add_argument("--seeds", type=int, default=10, help="repeats of each accuracy")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--machine", default="two CPU cores", help="machine to name on the page")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    rows = read_rows(ROWS)
    done = {(*r["cell"], r["repeat"]) for r in rows if "cell" in r}
    done |= {(r["classifier"], r["correlation"], r["repeat"]) for r in rows if "classifier" in r}
    todo = [
        (intervals, c, n_verified, part, correlation, repeat)
        for repeat in range(args.repeats)
        for c in PRIOR
        for n_verified in VERIFIED
        for part in (False, True)
        for correlation in CORRELATIONS
    ]
    todo += [
        (accuracies, name, correlation, repeat)
        for repeat in range(args.seeds)
        for name in CLASSIFIERS
        for correlation in CORRELATIONS
    ]
    if not args.report:
        run_all(run, [task for task in todo if task[1:] not in done], ROWS, args.jobs)
    report(args.machine)


if __name__ == "__main__":
    main()
