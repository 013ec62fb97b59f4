"""Common functions of the benchmark scripts: result files, tables and pages, command line, cleanlab, posteriors."""

import argparse
import csv
import json
import os
import platform
import warnings
from pathlib import Path

import joblib
import numpy as np
import torch
from scipy import stats
from sklearn.model_selection import cross_val_predict

from noisytransition import CrossEntropyClassifier, __version__

RESULTS = Path(__file__).parent / "results"
# learning rate of T in the published meta-gradient, selected with version 0.2.0 on other noise
META_STEP = {"transition_lr": 3.0}
# names in result files, and the words that pages show
SHOWN = {
    "clean rows only": "clean samples only",
    "verified rows alone": "verified samples only",
    "1 hidden layers": "1 hidden layer",
    "throughput / that of a loop": "throughput / throughput of a loop",
    "images a second": "images per second",
}


# ---------------------------------------------------------------------------- result files
def read_rows(path):
    """Read a file of JSON lines, without a first line with a format; return an empty list if there is no file.

    A line with {"each": values} has several rows (`packed`). An incomplete last line (the process was killed while it
    wrote) is skipped.
    """
    text = path.read_text() if path.exists() else ""
    rows = []
    for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), start=1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise SystemExit(
                f"{path}, line {number} is not valid JSON ({error}). Remove the line to run its fit again."
            ) from None
    return [row for line in rows if "format" not in line for row in unpacked(line)]


def pack(path):
    """Write a file of JSON lines again, with one line for all rows that have the same texts and columns."""
    groups = {}
    for row in read_rows(path):
        groups.setdefault(json.dumps([list(row), {k: v for k, v in row.items() if _has_text(v)}]), []).append(row)
    lines = [line for rows in groups.values() for line in ([packed(rows)] if rows[0] != rows[-1] else rows)]
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


def _has_text(value):
    return isinstance(value, str) or (isinstance(value, dict) and any(map(_has_text, value.values())))


def packed(values):
    """Return values as one: equal values once, dicts with the same keys as one dict, others as {"each": values}."""
    first = values[0]
    if len({json.dumps(value) for value in values}) == 1:
        return first
    if isinstance(first, dict) and all(isinstance(v, dict) and list(v) == list(first) for v in values):
        return {key: packed([v[key] for v in values]) for key in first}
    return {"each": values}


def unpacked(line):
    """Return the rows of a line."""
    n = _length(line)
    return [line] if n is None else [_nth(line, i) for i in range(n)]


def _length(value):
    """Return the number of values in the first {"each": values}, or None."""
    if not isinstance(value, dict):
        return None
    if "each" in value:
        return len(value["each"])
    return next((n for item in value.values() if (n := _length(item))), None)


def _nth(value, i):
    if not isinstance(value, dict):
        return value
    return value["each"][i] if "each" in value else {key: _nth(item, i) for key, item in value.items()}


def add_row(path, row):
    """Append a result, with the version of the package, to a file of JSON lines; replace an incomplete last line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(row | {"version": __version__}).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def run_all(run, todo, out, jobs=2):
    """Call `run` with each tuple of arguments in `jobs` processes, and write each result immediately."""
    tasks = (joblib.delayed(run)(*arguments) for arguments in todo)
    for i, row in enumerate(joblib.Parallel(jobs, return_as="generator_unordered")(tasks), 1):
        add_row(out, row)
        print(f"[{i}/{len(todo)}] {row}", flush=True)


# ---------------------------------------------------------------------------- tables and pages
def markdown(heads, lines):
    """Return a Markdown table from column headings and lines of a name and its cells."""
    rows = ["| | " + " | ".join(heads) + " |", "| --- |" + " --- |" * len(heads)]
    return "\n".join(rows + [f"| {name} | " + " | ".join(cells) + " |" for name, cells in lines])


def spread(values):
    """Format the mean and standard deviation over seeds; a single value has no deviation."""
    return f"{np.mean(values):.3f}" + (f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else "")


def points(difference):
    """Format a difference of accuracy in points, with its interval."""
    mean, low, high = (100 * difference[k] for k in ("mean", "low", "high"))
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def paired_difference(ours, theirs):
    """Return the mean of ours - theirs over seeds, its 95 % interval (nan for one seed) and its standard error."""
    d = np.asarray(ours) - np.asarray(theirs)
    if len(d) < 2:
        return d.mean() if len(d) else np.nan, np.nan, np.nan, np.nan
    error = stats.sem(d)
    half = stats.t.ppf(0.975, len(d) - 1) * error
    return d.mean(), d.mean() - half, d.mean() + half, error


def write_csv(path, heads, lines, corner=""):
    """Write a table of the docs as a CSV file."""
    rows = [[corner, *heads], *([name, *cells] for name, cells in lines)]
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([[in_words(cell) for cell in row] for row in rows])


class Results:
    """Results of fits: `methods` come first, the other methods in the order of the file."""

    def __init__(self, rows, methods=()):
        self.of = {}
        for row in rows:
            self.of.setdefault(row["method"], {})[row["seed"]] = row
        self.methods = [name for name in dict.fromkeys([*methods, *self.of]) if name in self.of]

    def values(self, method, column):
        """Return one measure of a method, by seed."""
        return {seed: row[column] for seed, row in self.of.get(method, {}).items() if column in row}

    def differences(self, to):
        """Return differences of accuracy to one method, paired by seed, with 95 % intervals."""
        base, found = self.values(to, "accuracy"), {}
        for method in self.methods:
            own = self.values(method, "accuracy")
            seeds = [seed for seed in base if seed in own]
            if method != to and len(seeds) > 1:
                mean, low, high, _ = paired_difference([own[s] for s in seeds], [base[s] for s in seeds])
                found[method] = {"mean": mean, "low": low, "high": high}
        return found


def overview(tables, column):
    """Return lines of a table from a dict of `Results`: a line for each method, a column for each result set."""
    names = dict.fromkeys(name for table in tables.values() for name in table.methods)
    values = {name: [list(table.values(name, column).values()) for table in tables.values()] for name in names}
    return [(name, [spread(v) if v else "" for v in own]) for name, own in values.items() if any(own)]


def paired(tables, to):
    """Return lines of a table: differences of accuracy to one method, in points, with 95 % intervals."""
    found = [table.differences(to) for table in tables.values()]
    names = dict.fromkeys(name for differences in found for name in differences)
    return [(name, [points(own[name]) if name in own else "" for own in found]) for name in names]


def versions():
    """Return the versions of torch and Python, and the processor."""
    return f"torch {torch.__version__}, Python {platform.python_version()}, {platform.machine()} CPU"


def in_words(text):
    """Replace names of result files by the words that pages show."""
    for name, words in SHOWN.items():
        text = text.replace(name, words)
    return text


def publish(name, parts):
    """Write and print a page of results."""
    text = in_words("\n\n".join(parts) + "\n")
    (RESULTS / name).write_text(text)
    print(text)


# ---------------------------------------------------------------------------- images
def crop_and_flip(x):
    """Crop images (n, height, width, 3) at random, with a margin of 1/8 of their height, and flip half of them."""
    size, device = x.shape[1], x.device
    margin = size // 8
    padded = torch.nn.functional.pad(x, (0, 0, margin, margin, margin, margin))
    top, left = torch.randint(2 * margin + 1, (2, len(x), 1), device=device)
    rows, columns = ((start + torch.arange(size, device=device)) for start in (top, left))
    columns = torch.where(torch.rand(len(x), 1, device=device) < 0.5, columns, columns.flip(1))
    return padded[torch.arange(len(x), device=device)[:, None, None], rows[:, :, None], columns[:, None, :]]


def crop_flip_and_cut_out(x, side=8):
    """Crop and flip images, and make a random square grey (cutout: DeVries and Taylor, 2017)."""
    at = torch.arange(x.shape[1], device=x.device)
    start = torch.randint(len(at) - side + 1, (2, len(x), 1), device=x.device)
    rows, columns = (start <= at) & (at < start + side)
    return crop_and_flip(x).masked_fill((rows[:, :, None] & columns[:, None])[..., None], 120)  # grey


# ---------------------------------------------------------------------------- command line
def run_on_images(doc, run, tasks, report):
    """Run a script's tasks on a folder of images in two processes, and report; --report reports existing results."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the arrays")
    parser.add_argument("--report", action="store_true", help="only write the table of the existing results")
    args = parser.parse_args()
    if not args.report:
        if args.data is None:
            parser.error("--data is missing. Give the folder of the images.")
        joblib.Parallel(2)(joblib.delayed(run)(args.data, *task) for task in tasks)
    report()


# ---------------------------------------------------------------------------- posteriors and cleanlab
def out_of_fold(params, X, y):
    """Return out-of-fold posteriors of a network trained with cross-entropy."""
    return cross_val_predict(CrossEntropyClassifier(**params), X, y, cv=3, method="predict_proba")


def confident_joint(proba, y):
    """Estimate T by cleanlab's confident joint of out-of-fold posteriors of the noisy label."""
    from cleanlab.count import compute_confident_joint, estimate_latent

    return estimate_latent(compute_confident_joint(y, proba), y)[1].T


def fit_cleanlab(base, data, seed):
    """Fit cleanlab's classifier; return it and its T (transposed, since columns of cleanlab's matrix sum to 1)."""
    from cleanlab.classification import CleanLearning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = CleanLearning(base, seed=seed, find_label_issues_kwargs={"n_jobs": 1}).fit(data.X, data.y)
    return clf, np.asarray(clf.noise_matrix).T
