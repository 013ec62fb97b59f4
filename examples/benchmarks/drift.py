"""Error of T before and after the meta-gradient with selection by held-out likelihood; five seeds.

    python examples/benchmarks/drift.py --select    # choice of the step size, on held-out clean rows
    python examples/benchmarks/drift.py             # the table; every result is written when it ends
    python examples/benchmarks/drift.py --report

The cells are those of `meta_transition.py`, where T mostly moves away from a good start. Here a tenth of the noisy rows
is held out, and T is selected by the likelihood of their labels (the default of `MetaTransitionClassifier`); the
training itself is the paper's, with a new net (`as_published`). Everything else is at its default.

The step size is compared (`--select`) by the log-loss of clean rows held out of training, on seeds and noises that are
not in the table; the network, and so this score, does not depend on which T is kept. The selection rule was chosen
among about thirty by errors of T on seeds 201 to 206 with the noises of the table (Gaussians: 201 to 204; starts: gold,
EM, diagonal). Seeds 0 to 2 of the table had a part in the design: T moved away from its start there, which is why there
is a selection; and an earlier rule, the most likely T of each epoch with the network unchanged, was dropped since it
moved T away from EM's.
"""

import argparse
import os
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from meta_transition import SELECTION, TABLE, pick, run_all
from shared import RESULTS, markdown, publish, read_rows, spread, versions

from noisytransition import MetaTransitionClassifier

STEPS = (3.0, 10.0, 30.0)
# starts of T, and seeds
STARTS = ("gold",)
PATHS = {name: RESULTS / f"drift_{name}.jsonl" for name in ("selection", "table")}


def cells(grid, steps, starts):
    """Cells with the default fraction of noisy rows held out."""
    held_out = MetaTransitionClassifier().validation_fraction
    for start, ((problem, noise), (seeds, *_)), step in product(starts, grid.items(), steps):
        for seed in seeds:
            cell = {"problem": problem, "noise": noise, "seed": seed, "method": "MetaTransitionClassifier"}
            yield cell | {"transition_lr": step, "transition_init": start, "validation_fraction": held_out}


def selection():
    """Markdown: held-out log-loss of clean rows by step; no T, no test label."""
    rows = read_rows(PATHS["selection"])
    loss = {
        step: [
            np.mean([r["held_out_log_loss"] for r in pick(rows, problem=p, noise=n, transition_lr=step)])
            for p, n in SELECTION
        ]
        for step in STEPS
    }
    heads = ["mean", *(" ".join(cell) for cell in SELECTION)]
    return markdown(heads, [(f"step {s:g}", [f"{v:.3f}" for v in (np.mean(all_), *all_)]) for s, all_ in loss.items()])


def table():
    """Markdown: error of T at the start and at the end, and test accuracy."""
    lines = []
    for start, (problem, noise) in product(STARTS, TABLE):
        here = pick(read_rows(PATHS["table"]), problem=problem, noise=noise, transition_init=start)
        if len(here) < 3:
            continue
        columns = [[row[name] for row in here] for name in ("identity", "limit", "start", "end", "accuracy")]
        lines.append((f"{problem}, {noise}, from {start}", [*map(spread, columns), verdict(here)]))
    heads = ["T: identity", "sampling limit", "start", "end", "accuracy", "end less start"]
    return markdown(heads, lines)


def verdict(rows):
    """Mean change of the error of T, its standard error, and a verdict at two standard errors."""
    change = np.array([row["end"] - row["start"] for row in rows])
    mean, error = change.mean(), change.std(ddof=1) / np.sqrt(len(change))
    share = mean / np.mean([row["start"] for row in rows])
    said = "WORSE" if mean > 2 * error else "better" if mean < -2 * error else "level"
    return f"{mean:+.3f} ± {error:.3f} ({share:+.0%}): {said}"


def report():
    """Write and print the page."""
    parts = [
        "# Selection of T by held-out likelihood",
        f"Mean ± standard deviation over 5 seeds; of changes, the standard error. "
        f"{versions()}, 2 processes. See `drift.py`.",
        "## Choice of the step\n\n" + selection(),
        "## Start and end of T\n\n" + table(),
    ]
    publish("drift.md", parts)


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--select", action="store_true", help="run the choice of the step")
    parser.add_argument("--report", action="store_true", help="only print from the result files")
    args = parser.parse_args()
    if args.select:
        run_all(cells(SELECTION, STEPS, ("gold",)), PATHS["selection"])
    elif not args.report:
        run_all(cells(TABLE, [MetaTransitionClassifier().transition_lr], STARTS), PATHS["table"])
    if args.report or not args.select:
        report()


if __name__ == "__main__":
    main()
