"""Error of T of human labels as a function of the number of verified pairs.

    python -m examples.paper.pairs --data-root DIR --features-dir DIR2 --jobs 2

Linear heads on frozen features of CIFAR-10N, the settings of scale `features`; the true T is counted from all samples.
"counting" uses the pairs only. "residuals" is the mean posterior of all samples, corrected by the mean residual of the
pairs. Its posterior, ``P(i | p(x), j)`` with EM's out-of-fold probabilities p, is fitted to the true labels of all
samples. So in large samples no other estimate without assumptions about the noise is more accurate. Both are means over
draws of the pairs. EM also assumes that a posterior with few parameters describes the noise.
"""

import time
import warnings

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

from examples.benchmarks.shared import markdown, read_rows, run_all, spread
from examples.paper.data import Places, load
from examples.paper.run import RESULTS, data_of, fitted, matching
from examples.paper.study import options, plot_errors, write_page
from examples.paper.tables import cells
from noisytransition import count_transition_matrix, sampling_limit, transition_error

LABELS, N_PAIRS, SEEDS, DRAWS = ("aggre", "worse"), (100, 300, 1000, 3000, 10_000), range(3), 20
NAMES = ("counting", "residuals", "EM, pairs")
OUT = RESULTS / "pairs.jsonl"


def run(labels, n_pairs, seed, data_root, features_dir):
    """Fit EM with pairs and return its result row, with the other estimates."""
    torch.set_num_threads(1)
    started, places = time.perf_counter(), Places(data_root, features_dir)
    (cell,) = matching(cells("cifar10n", "features", [seed], ["linear"], n_pairs, ["EM, pairs"]), [labels])
    data = load(*data_of(cell), places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fitted(cell, data, places)
    T, rng = data.transition_matrix, np.random.default_rng(seed)
    drawn = [rng.choice(len(data.y), n_pairs, replace=False) for _ in range(DRAWS)]
    posterior = fitted_posterior(clf.oof_proba_, data.y, data.y_true)
    return {
        "labels": labels,
        "n_pairs": n_pairs,
        "seed": seed,
        "counting": np.mean([transition_error(T, counted(data.y_true[d], data.y[d])) for d in drawn]),
        "residuals": np.mean([transition_error(T, by_residuals(posterior, data.y, data.y_true, d)) for d in drawn]),
        "EM, pairs": transition_error(T, clf.transition_matrix_),
        "limit": sampling_limit(T, np.bincount(data.y_true)),
        "identity": transition_error(T, np.eye(len(T))),
        "accuracy": float(clf.score(data.X_test, data.y_test)),
        "seconds": round(time.perf_counter() - started, 1),
    }


def counted(y, y_noisy):
    """Count T from the pairs only."""
    return count_transition_matrix(y, y_noisy, 10, smoothing=1e-9)


def fitted_posterior(proba, y_noisy, y):
    """Fit P(true class | probabilities, noisy label) by a logistic regression for each noisy label."""
    logits, posterior = np.log(np.maximum(proba, 1e-7)), np.zeros(proba.shape)
    for label in range(10):
        rows = np.flatnonzero(y_noisy == label)
        model = LogisticRegression(C=1.0, max_iter=2000).fit(logits[rows], y[rows])
        posterior[np.ix_(rows, model.classes_)] = model.predict_proba(logits[rows])
    return posterior


def by_residuals(posterior, y_noisy, y, pairs):
    """Estimate T by the mean posterior, corrected by the mean residual of the pairs."""
    counts, residuals = np.zeros((2, 10, 10))
    np.add.at(counts.T, y_noisy, posterior)
    np.add.at(residuals.T, y_noisy[pairs], np.eye(10)[y[pairs]] - posterior[pairs])
    counts = np.maximum(counts + residuals * (len(y) / len(pairs)), 1e-9)
    return counts / counts.sum(axis=1, keepdims=True)


def main():
    """Run the missing fits, and write the tables and the plot."""
    args = options(__doc__)
    done = {tuple(row[k] for k in ("labels", "n_pairs", "seed")) for row in read_rows(OUT)}
    wanted = [(labels, n, seed) for seed in SEEDS for n in N_PAIRS for labels in LABELS]
    run_all(run, [(*cell, args.data_root, args.features_dir) for cell in wanted if cell not in done], OUT, args.jobs)
    report(read_rows(OUT))


def errors(rows, labels, name):
    """Return the errors of an estimate by number of pairs, a value for each seed."""
    return {n: [r[name] for r in rows if (r["labels"], r["n_pairs"]) == (labels, n)] for n in N_PAIRS}


def report(rows):
    """Write a table for each set of labels, and the plot."""
    parts = [f"# Error of T against the number of verified pairs\n\n{' '.join(__doc__.splitlines()[4:])}"]
    for labels in LABELS:
        lines = [(name, [spread(values) for values in errors(rows, labels, name).values()]) for name in NAMES]
        limit, identity = (np.mean(errors(rows, labels, name)[1000]) for name in ("limit", "identity"))
        title = f"## {labels} (sampling limit {limit:.3f}, identity {identity:.3f})"
        parts.append(f"{title}\n\n" + markdown([f"{n:,}" for n in N_PAIRS], lines))
    write_page(OUT, parts)
    plot(rows)


def plot(rows):
    """Plot the errors in a panel for each set of labels."""
    panels = {
        f'CIFAR-10N "{labels}"': {name: errors(rows, labels, name) for name in NAMES}
        | {"sampling limit of 49,000 samples": dict.fromkeys(N_PAIRS, errors(rows, labels, "limit")[1000])}
        for labels in LABELS
    }
    plot_errors(OUT, "verified pairs", panels)


if __name__ == "__main__":
    from examples.paper.pairs import main

    main()
