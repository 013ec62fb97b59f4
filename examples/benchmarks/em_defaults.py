"""EM with its choices by clean rows beside EM without, on the cells of `em_transition.py`.

    python examples/benchmarks/em_defaults.py            # every result is written when it comes
    python examples/benchmarks/em_defaults.py --report   # the page of what is there

In these cells one T is true for all rows. With the defaults, held-out clean rows choose how much a clean row counts
behind T (`calibration_weight`) and which classifier is the last (`select_classifier`); both can only lose a little
here. The plain EM and the others are those of `results/em_transition.jsonl`, with the same rows and seeds.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from em_transition import CELLS, CLASSES, LARGE, LOADERS, NET, SMALL, current, name_of
from shared import RESULTS, markdown, paired_difference, points, publish, read_rows, run_all, spread, versions

from noisytransition import EMTransitionClassifier, transition_error

ROWS = RESULTS / "em_defaults.jsonl"
LEVEL = 0.9


def run(cell, seed):
    """EM at its defaults on one seed of a cell."""
    kind, noise, per_class = cell
    data = LOADERS[kind](noise, seed, n_clean=per_class * CLASSES[kind])
    params = NET | (LARGE if kind in ("Gaussians", "table") else SMALL) | {"random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reasons are in the row
        em = EMTransitionClassifier(**params).fit(data.X, data.y, meta=(data.X_meta, data.y_meta))
    T, (low, high) = data.transition_matrix, em.transition_interval(LEVEL)
    return {
        "cell": name_of(cell),
        "seed": seed,
        "error": transition_error(T, em.transition_matrix_),
        "accuracy": float(em.score(data.X_test, data.y_test)),
        "covered": float(np.mean((low <= T + 1e-12) & (high >= T - 1e-12))),
        "calibration_weight": em.calibration_weight_,
        "final": em.final_,
        "diagnostics": sorted(em.diagnostics_),
    }


def fill(seeds):
    """Run what is missing, seed by seed, and write each row when it comes."""
    done = {(row["cell"], row["seed"]) for row in read_rows(ROWS)}
    todo = [(cell, seed) for seed in range(seeds) for cell in CELLS if (name_of(cell), seed) not in done]
    run_all(run, todo, ROWS)


# ---------------------------------------------------------------------------- the page
def cell_line(rows, plain):
    """Cells of a line, and whether error and accuracy are worse than those of the plain method."""
    error = [np.array([row["error"] for row in rows]), np.array([row["error"]["EM"] for row in plain])]
    accuracy = [np.array([row["accuracy"] for row in rows]), np.array([row["accuracy"]["EM"] for row in plain])]
    d, _, _, sem = paired_difference(*error)
    mean, low, high, _ = paired_difference(*accuracy)
    worse = bool(d > 2 * sem and d > 0), bool(high < -0.01)
    texts = [
        spread(error[1]),
        spread(error[0]),
        f"{d:+.4f} ± {sem:.4f}" + " *" * worse[0],
        points({"mean": mean, "low": low, "high": high}) + " *" * worse[1],
        f"{np.mean([row['covered'] for row in rows]):.2f}",
        f"{np.mean([bool(row['diagnostics']) for row in rows]):.2f}",
    ]
    return texts, worse


def report():
    """Write and print the page."""
    plain, ours = current(), {(row["cell"], row["seed"]): row for row in read_rows(ROWS)}
    lines, worse, rows = [], [], list(ours.values())
    for name in map(name_of, CELLS):
        keys = sorted(key for key in ours if key[0] == name and key in plain)
        if len(keys) > 2:
            texts, of_cell = cell_line([ours[k] for k in keys], [plain[k] for k in keys])
            lines.append((name, texts))
            worse.append(of_cell)
    above, below = np.sum(worse, axis=0)
    weights = np.mean([row["calibration_weight"] > 1 for row in rows])
    own = np.mean([row["final"] == "own" for row in rows])
    heads = ["T: plain", "T: defaults", "T: difference ± standard error", "accuracy: difference", "covered", "warned"]
    parts = [
        "# EM at its defaults where one T is true",
        f"Mean ± standard deviation over {len({row['seed'] for row in rows})} seeds; accuracy in points, with paired "
        f"95 % intervals. Covered: share of entries in their {LEVEL:.0%} intervals. {versions()}, 2 processes. See "
        "`em_defaults.py`.",
        f"Of {len(lines)} cells, T is worse than that of the plain method by more than 2 standard errors in {above}, "
        f"accuracy by more than a point (the whole interval) in {below}. Clean rows counted more in {weights:.0%} of "
        f"the fits; the method's own network was kept in {own:.0%}.",
        markdown(heads, lines),
    ]
    publish("em_defaults.md", parts)


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--report", action="store_true", help="only write the page of what is there")
    args = parser.parse_args()
    if not args.report:
        fill(args.seeds)
    report()


if __name__ == "__main__":
    main()
