"""Measure T, its error bars and P(true | x, label) of `LabelNoiseModel` on the small problems of the zoo.

    pip install ".[benchmarks,features]"
    python examples/benchmarks/noise_model.py                  # the design half
    python examples/benchmarks/noise_model.py --half check     # the check half, at the end
    python examples/benchmarks/noise_model.py --report         # only write the page

The out-of-fold probabilities are those of `EMTransitionClassifier` with the network of each problem, three seeds. With
"pairs", the clean samples keep their noisy labels. "one T" is the posterior by Bayes' rule with the same T for all
samples, for comparison. "ranking" is the average precision of wrong labels, by their posterior. All measures are of
noisy samples, which are not verified.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from scipy.stats import binom
from shared import RESULTS, markdown, publish, read_rows, run_all, spread, versions
from sklearn.metrics import average_precision_score
from zoo.catalogue import of_half
from zoo.run import available

from noisytransition import EMTransitionClassifier, LabelNoiseModel, transition_error
from noisytransition.transition import label_posterior

LEVEL = 0.9  # confidence level of intervals
LOW = 0.85  # coverage of a problem that the page names
SEEDS = range(3)
MEASURES = ("error of T", "coverage", "half width", "log-loss", "log-loss, one T", "ranking", "ranking, one T")


def measures(model, T, y):
    """Return the measures of a fitted noise model, given T and the true labels of its noisy samples."""
    given, n = model.out_of_fold_.noisy, np.arange(len(y))
    low, high = model.transition_interval(LEVEL)
    found = [transition_error(T, model.transition_matrix_), ((low <= T + 1e-9) & (high + 1e-9 >= T)).mean()]
    found.append((high - low).mean() / 2)
    posterior = model.posterior_of_fit()
    one_T = label_posterior(model.calibrate(model.out_of_fold_.candidates[0].proba), given, model.transition_matrix_)
    posteriors = posterior, one_T
    found += [-np.log(np.maximum(p[n, y], 1e-9)).mean() for p in posteriors]
    wrong = given != y
    found += [average_precision_score(wrong, 1 - p[n, given]) if wrong.any() else np.nan for p in posteriors]
    return dict(zip(MEASURES, map(float, found), strict=True))


def run(problem, seed):
    """Fit one problem; return its measures with and without pairs."""
    data = problem.make(seed)
    clf = EMTransitionClassifier(**problem.params(data), random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean), y_clean_noisy=data.y_clean_noisy)
    model = clf.noise_model_
    of = model.out_of_fold_
    unpaired = of._replace(noisy_of_clean=np.full(len(of.clean), -1), pairs=np.zeros_like(of.pairs))
    without = LabelNoiseModel()
    without._fit_candidates(unpaired, model.labels_, len(model.classes_), clf.transition_init_)
    y = data.y_true[of.rows]
    found = {"pairs": measures(model, data.transition_matrix, y)}
    found["no pairs"] = measures(without, data.transition_matrix, y)
    about = {"problem": problem.name, "kind": problem.kind, "seed": seed, "classes": len(data.transition_matrix)}
    return about | found


def report(half, rows):
    """Write the page: means over problems of each kind, and problems with short error bars."""
    lines, short = [], []
    for labels in ("pairs", "no pairs"):
        for kind in dict.fromkeys(row["kind"] for row in rows):
            here = [row for row in rows if row["kind"] == kind]
            names = dict.fromkeys(row["problem"] for row in here)
            lines.append((f"{kind}, {labels} ({len(names)} problems)", [_mean(here, labels, m) for m in MEASURES]))
        names = dict.fromkeys(row["problem"] for row in rows)
        covered = {name: np.mean([r[labels]["coverage"] for r in rows if r["problem"] == name]) for name in names}
        low = [f"{name} {value:.2f}" for name, value in covered.items() if value < LOW]
        short.append(f"Coverage below {LOW}, {labels}, in {len(low)} problems: {', '.join(low) or 'none'}.")
    expected = sum(_chance_of_low(classes) for _, classes in {(row["problem"], row["classes"]) for row in rows})
    short.append(f"With exact and independent intervals, {expected:.1f} problems would be below {LOW} by chance.")
    about = f"Mean ± standard deviation over seeds of the mean over problems. {versions()}."
    parts = [f"# The noise model, {half} half", " ".join(__doc__.split("\n\n")[2].split()), about]
    publish(f"noise_model_{half}.md", [*parts, markdown(MEASURES, lines), *short])


def _chance_of_low(classes):
    """Probability that exact intervals of all seeds have a low coverage; entries of T are free but for one of a row."""
    n = len(SEEDS) * classes * (classes - 1)
    return binom(n, LEVEL).cdf(np.ceil(LOW * n) - 1)


def _mean(rows, labels, measure):
    return spread([np.nanmean([r[labels][measure] for r in rows if r["seed"] == seed]) for seed in SEEDS])


def main():
    """Run the missing fits, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=("design", "check"), default="design")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", action="store_true", help="only write the page")
    args = parser.parse_args()
    out = RESULTS / f"noise_model_{args.half}.jsonl"
    done = {(row["problem"], row["seed"]) for row in read_rows(out)}
    if not args.report:
        problems = available(of_half(args.half), folder=None)
        run_all(run, [(p, s) for s in SEEDS for p in problems if (p.name, s) not in done], out, args.jobs)
    report(args.half, read_rows(out))


if __name__ == "__main__":
    main()
