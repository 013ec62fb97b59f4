"""Error of T against the number of clean samples of each class, for two initial T of EM.

    python -m examples.paper.few_clean_rows --data-root DIR --features-dir DIR2 --jobs 2

Linear heads on frozen features, 20 superclasses of CIFAR-100, 20,000 noisy samples, the settings of scale `features`.
"EM from gold" starts each training from GLC's T; by default EM shrinks this T towards symmetric noise.
"""

import time
import warnings

import numpy as np
import torch

from examples.benchmarks.shared import markdown, read_rows, run_all, spread
from examples.paper.data import LOADERS, folder_of, with_features
from examples.paper.networks import parameters
from examples.paper.run import RESULTS, measures
from examples.paper.study import options, plot_errors, write_page
from examples.paper.tables import make, settings
from noisytransition.transition import pair_noise, symmetric_noise

NOISES = {"pair 0.4": pair_noise(20, 0.4), "symmetric 0.4": symmetric_noise(20, 0.4)}
PER_CLASS, SEEDS, LIMIT = (1, 2, 3, 5, 10), range(3), "sampling limit"
CLASSIFIERS = {
    "ignoring the noise": ("cross-entropy", {}),
    "GLC": ("GLC", {}),
    "EM from gold": ("EM", {"transition_init": "gold"}),
    "EM": ("EM", {}),
}
OUT = RESULTS / "few_clean_rows.jsonl"


def run(noise, per_class, seed, name, data_root, features_dir):
    """Fit a method and return its result row, with the sampling limit."""
    torch.set_num_threads(1)
    started, given = time.perf_counter(), {"n_noisy": 20_000, "n_clean": 20 * per_class, "random_state": seed}
    data = LOADERS["cifar100"](folder_of(data_root, "cifar100"), labels="coarse", noise=NOISES[noise], **given)
    data = with_features(data, "cifar100", features_dir)
    method, own = CLASSIFIERS[name]
    params = parameters("linear", data.X.shape[1], 20, None) | settings("cifar100", "features", "linear", method) | own
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = make(method, **params, random_state=seed).fit(data.X, data.y, meta=(data.X_clean, data.y_clean))
    row = {"noise": noise, "per_class": per_class, "seed": seed, "method": name}
    return row | measures(clf, data, time.perf_counter() - started)


def main():
    """Run the missing fits, and write the tables and the plot."""
    args = options(__doc__)
    done = {tuple(row[k] for k in ("noise", "per_class", "seed", "method")) for row in read_rows(OUT)}
    wanted = [(noise, n, seed, name) for seed in SEEDS for n in PER_CLASS for noise in NOISES for name in CLASSIFIERS]
    run_all(run, [(*cell, args.data_root, args.features_dir) for cell in wanted if cell not in done], OUT, args.jobs)
    report(read_rows(OUT))


def values(rows, noise, name, column):
    """Return the values of a method by number of clean samples of each class, a value for each seed."""
    mine = [row for row in rows if (row["noise"], row["method"]) == (noise, name)]
    return {n: [row[column] for row in mine if row["per_class"] == n] for n in PER_CLASS}


def report(rows):
    """Write the tables for each noise, and the plot."""
    parts, header = [f"# Few clean samples of a class\n\n{' '.join(__doc__.splitlines()[4:])}"], [*map(str, PER_CLASS)]
    for noise in NOISES:
        limit, identity = (np.mean(values(rows, noise, "GLC", name)[1]) for name in ("limit", "identity"))
        parts.append(f"## {noise} (sampling limit {limit:.3f}, identity {identity:.3f})")
        for title, column, names in (
            ("Error of T", "transition_error", list(CLASSIFIERS)[1:]),
            ("Test accuracy", "accuracy", CLASSIFIERS),
        ):
            lines = [(name, [spread(v) for v in values(rows, noise, name, column).values()]) for name in names]
            parts.append(f"{title}:\n\n" + markdown(header, lines))
    write_page(OUT, parts)
    curves = {
        noise: {name: values(rows, noise, name, "transition_error") for name in list(CLASSIFIERS)[1:]}
        | {LIMIT: values(rows, noise, "GLC", "limit")}
        for noise in NOISES
    }
    plot_errors(OUT, "clean samples of each class", curves)


if __name__ == "__main__":
    from examples.paper.few_clean_rows import main

    main()
