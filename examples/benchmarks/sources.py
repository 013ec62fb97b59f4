"""Compare ways to combine labels of several sources: majority, other libraries, `LabelNoiseModel`.

    pip install ".[benchmarks]" crowd-kit
    python examples/benchmarks/sources.py [--data DIR]        # a second call adds missing results
    python examples/benchmarks/sources.py --report            # only write the page

Each method labels the samples that are not verified; the measure is the share of correct labels. 40, 90 or 100 random
samples are verified; only `LabelNoiseModel` and "best source" (the most accurate source on the verified samples) use
them. `LabelNoiseModel` and cleanlab get out-of-fold probabilities of logistic regression on the most frequent labels;
Dawid-Skene and GLAD (crowd-kit) use labels only. "independent" is `LabelNoiseModel` with weight 1 for each source.

Problems: digits labelled by six people of different skill, three for each sample; the same with samples where all six
give the same wrong label; three or five small models, trained on a few samples each, with correlated errors, on digits
and a table; rules with abstentions on a table. With --data: LabelMe (59 people, `labelme_*` of fmenat/PyLearningCrowds)
and CIFAR-10H (three labels per sample, drawn from annotators' counts).
"""

import argparse
import os
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from shared import RESULTS, markdown, publish, read_rows, run_all, spread, versions, write_csv
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from noisytransition import LabelNoiseModel, flip_labels
from noisytransition.likelihood._sources import log_likelihood
from noisytransition.transition import pair_noise, symmetric_noise

OUT = RESULTS / "sources.jsonl"
SEEDS = 5


# ---------------------------------------------------------------------------- problems: X, y, labels (-1: none)
def people(rng, data, asked, copied=0.0):
    """Return digits with labels of six people of different skill; `asked` people label each image."""
    X, y = load_digits(return_X_y=True)
    noises = [symmetric_noise(10, rate) for rate in (0.1, 0.3, 0.5)] + [
        pair_noise(10, rate) for rate in (0.2, 0.4, 0.6)
    ]
    labels = np.column_stack([flip_labels(y, T, random_state=int(rng.integers(2**31))) for T in noises])
    wrong = (y + rng.integers(1, 10, size=len(y))) % 10
    labels = np.where((rng.random(len(y)) < copied)[:, None], wrong[:, None], labels)
    labels[np.argsort(rng.random(labels.shape), axis=1) >= asked] = -1
    return X / 16, y, labels


def models(rng, data, load, n_models, n_rows):
    """Return labels of small models, each trained on a few samples, which partly overlap."""
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    kinds = [
        KNeighborsClassifier(1),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=4, random_state=0),
        LogisticRegression(C=0.01),
    ]
    kinds += [KNeighborsClassifier(5)]
    seen, labels = rng.permutation(len(y))[: 2 * n_rows], []
    for model in kinds[:n_models]:
        rows = rng.choice(seen, n_rows, replace=False)
        labels.append(model.fit(X[rows], y[rows]).predict(X))
    rest = np.setdiff1d(np.arange(len(y)), seen)
    return X[rest], y[rest], np.column_stack(labels)[rest]


def rules(rng, data):
    """Return labels of rules: thresholds on six columns of a table, with abstentions between two thresholds."""
    X, y = load_breast_cancer(return_X_y=True)
    labels = []
    for column in (0, 1, 4, 7, 20, 27):
        low, high = np.quantile(X[:, column], rng.uniform([0.3, 0.6], [0.5, 0.8]))
        labels.append(np.where(X[:, column] < low, 1, np.where(X[:, column] > high, 0, -1)))
    labels = np.column_stack(labels)
    said = (labels >= 0).any(axis=1)
    return StandardScaler().fit_transform(X)[said], y[said], labels[said]


def labelme(rng, data):
    """Return photographs with labels of 59 people, 2.5 per image."""
    X, y = (
        np.load(data / "labelme_LabelMe_VGG_avg_train.npy"),
        np.loadtxt(data / "labelme_LabelMe_Z_train.txt", dtype=int),
    )
    return X, y, np.loadtxt(data / "labelme_answers.txt", dtype=int)


def cifar10h(rng, data):
    """Return 3,000 images with three labels each, drawn from the counts of about 50 annotators per image."""
    rows = rng.choice(10_000, 3000, replace=False)
    counts = np.load(data / "cifar10h_counts.npy")[rows]
    shares = counts / counts.sum(axis=1, keepdims=True)
    labels = np.array([rng.choice(10, 3, p=p) for p in shares])
    return np.load(data / "cifar10_test.npy")[rows], np.load(data / "y_test.npy")[rows].ravel(), labels


PROBLEMS = {
    "digits, three of six people": (lambda rng, data: people(rng, data, 3), 90),
    "digits, six people, 25 % copied": (lambda rng, data: people(rng, data, 6, 0.25), 90),
    "digits, three small models": (lambda rng, data: models(rng, data, load_digits, 3, 80), 90),
    "digits, five small models": (lambda rng, data: models(rng, data, load_digits, 5, 80), 90),
    "wine, three small models": (lambda rng, data: models(rng, data, load_wine, 3, 15), 40),
    "breast cancer, six rules": (rules, 90),
    "LabelMe, 59 people": (labelme, 100),
    "CIFAR-10H, three people": (cifar10h, 100),
}
NEED_DATA = ("LabelMe, 59 people", "CIFAR-10H, three people")


# ---------------------------------------------------------------------------- methods: labels of all samples
def dawid_skene(long):
    from crowdkit.aggregation import DawidSkene

    return DawidSkene(n_iter=100).fit_predict(long)


def glad(long):
    from crowdkit.aggregation import GLAD

    return GLAD(n_iter=20).fit_predict(long)


def cleanlab(labels, proba):
    from cleanlab.multiannotator import get_label_quality_multiannotator

    table = pd.DataFrame(np.where(labels >= 0, labels, np.nan))
    found = get_label_quality_multiannotator(table, proba, verbose=False)
    return found["label_quality"]["consensus_label"].to_numpy()


def run(problem, seed, data):
    """Return the share of correct labels of each method in one problem."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(seed)
    make, n_verified = PROBLEMS[problem]
    X, y, labels = make(rng, data)
    n, names = len(y), [f"source {k}" for k in range(labels.shape[1])]
    verified = rng.choice(n, n_verified, replace=False)
    rest = np.setdiff1d(np.arange(n), verified)
    table = pd.DataFrame(np.where(labels >= 0, labels, np.nan), columns=names)
    frequent = table.mode(axis=1)[0].to_numpy(dtype=int)
    table["verified"] = pd.Series(y[verified], index=verified)
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    proba = cross_val_predict(classifier, X, frequent, cv=3, method="predict_proba")
    columns = np.unique(frequent)
    whole = np.full((n, y.max() + 1), 1e-6)
    whole[:, columns] = proba + 1e-6
    whole /= whole.sum(axis=1, keepdims=True)
    model = LabelNoiseModel().fit(whole, table, classes=np.arange(y.max() + 1))
    posterior = model.label_posterior(whole, table.assign(verified=np.nan))
    independent = np.log(model.calibrate(whole)) + log_likelihood(labels, model.sources_.matrices, np.ones(len(names)))
    long = table[names].stack().dropna().rename("label").reset_index()
    long.columns = ["task", "worker", "label"]
    long["label"] = long["label"].astype(int)
    right = [(labels[verified, s] == y[verified])[labels[verified, s] >= 0].mean() for s in range(len(names))]
    best = labels[:, int(np.nanargmax(right))]
    found = {
        "most frequent label": frequent,
        "best source": np.where(best >= 0, best, frequent),
        "features alone": model.calibrate(whole).argmax(axis=1),
        "Dawid-Skene": dawid_skene(long).reindex(range(n)).to_numpy(),
        "GLAD": glad(long).reindex(range(n)).to_numpy(),
        "cleanlab": cleanlab(labels, whole),
        "independent": independent.argmax(axis=1),
        "LabelNoiseModel": posterior.argmax(axis=1),
    }
    row = {"problem": problem, "seed": seed, "n": n}
    row |= {name: round(float((of == y)[rest].mean()), 4) for name, of in found.items()}
    correlation, pvalue, _ = model.sources_.dependence
    return row | {
        "correlation": round(correlation, 3),
        "pvalue": round(pvalue, 6),
        "weight": round(float(model.sources_.weights.mean()), 3),
    }


# ---------------------------------------------------------------------------- the page
METHODS = ["most frequent label", "best source", "features alone", "Dawid-Skene", "GLAD", "cleanlab", "independent"]
METHODS += ["LabelNoiseModel"]


def report():
    """Write and print the page."""
    rows = {}
    for row in read_rows(OUT):
        rows.setdefault(row["problem"], []).append(row)
    names = [name for name in PROBLEMS if name in rows]
    lines = [(name, [spread([row[of] for row in rows[name]]) for of in METHODS]) for name in names]
    lines.append(("mean", [f"{np.mean([np.mean([r[of] for r in rows[n]]) for n in names]):.3f}" for of in METHODS]))
    write_csv(
        RESULTS / "sources.csv", METHODS, [(name, [cell.split(" ")[0] for cell in cells]) for name, cells in lines]
    )
    tested = ["correlation", "pvalue", "weight"]
    heads = ["correlation", "p-value", "weight"]
    publish(
        "sources.md",
        [
            "# Labels of several sources",
            f"Share of correct labels of samples that are not verified; mean ± standard deviation over seeds. "
            f"{versions()}. See `sources.py`.",
            markdown(METHODS, lines),
            "Test of independent errors, medians over seeds: correlation of two sources' errors on verified samples, "
            "p-value, mean weight of a source:",
            markdown(heads, [(n, [f"{np.median([r[of] for r in rows[n]]):.3g}" for of in tested]) for n in names]),
        ],
    )


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of LabelMe and CIFAR-10H")
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    if not args.report:
        done = {(row["problem"], row["seed"]) for row in read_rows(OUT)}
        names = [name for name in PROBLEMS if args.data or name not in NEED_DATA]
        todo = [(name, seed, args.data) for seed in range(SEEDS) for name in names if (name, seed) not in done]
        run_all(run, todo, OUT, args.jobs)
    report()


if __name__ == "__main__":
    main()
