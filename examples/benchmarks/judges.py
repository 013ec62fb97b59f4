"""Compare shares from a judge's verdicts with ppi-python and the checked samples alone.

    pip install ppi-python
    python examples/benchmarks/judges.py

Samples are good with a given probability. A judge says "good" of 90 % of the good ones and of 25 % of the others; some
samples are checked, drawn at random. Coverage and half width of 90 % intervals of the share of good samples.
"""

import argparse
import os
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from ppi_py import ppi_mean_ci
from scipy.special import betaincinv
from shared import RESULTS, markdown, publish, write_csv

from noisytransition import LabelNoiseModel, flip_labels

T = [[0.75, 0.25], [0.1, 0.9]]
SHARES = (0.7, 0.1, 0.02)
CHECKED = (50, 200)
N = 2000


def intervals(share, n_checked, seed):
    """90 % intervals by method, and the share of good samples among those drawn."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(N) < share).astype(int)
    verdict = flip_labels(truth, T, random_state=rng)
    rows = rng.choice(N, n_checked, replace=False)
    checked = np.full(N, -1)
    checked[rows] = truth[rows]
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as of no good sample among those checked
        table = LabelNoiseModel().fit(None, verdict, y_verified=checked, classes=[0, 1]).class_shares()
    found["LabelNoiseModel"] = table.lower[1], table.upper[1]
    rest = verdict[checked < 0]
    low, high = ppi_mean_ci(truth[rows].astype(float), verdict[rows].astype(float), rest.astype(float), alpha=0.1)
    found["ppi-python"] = float(np.ravel(low)[0]), float(np.ravel(high)[0])
    k = truth[rows].sum()
    found["checked samples alone"] = tuple(betaincinv(k + 0.5, n_checked - k + 0.5, [0.05, 0.95]))
    return found


def main():
    """Run all repeats and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100)
    args = parser.parse_args()
    lines = []
    for share in SHARES:
        for n_checked in CHECKED:
            found = [intervals(share, n_checked, seed) for seed in range(args.repeats)]
            cells = []
            for name in found[0]:
                low, high = np.array([of[name] for of in found]).T
                cells.append(f"{np.mean((low <= share) & (share <= high)):.2f} (± {np.mean(high - low) / 2:.3f})")
            lines.append((f"{share:.0%} good, {n_checked} checked", cells))
    heads = ["LabelNoiseModel", "ppi-python 0.2.3", "checked samples alone (Jeffreys)"]
    parts = [
        "# A judge's verdicts",
        f"Coverage of 90 % intervals of the share of good samples, and mean half width; {N:,} samples, {args.repeats} "
        f"repeats. The standard error of a coverage is 0.03. See `judges.py`.\n\n{markdown(heads, lines)}",
    ]
    publish("judges.md", parts)
    write_csv(RESULTS / "judges.csv", heads, lines, corner="samples")


if __name__ == "__main__":
    main()
