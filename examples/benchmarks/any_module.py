"""Compare the defaults of `MetaTransitionClassifier` with cross-entropy and GLC on ten modules, five draws of each.

    python examples/benchmarks/any_module.py --jobs 2
    python examples/benchmarks/any_module.py --report    # only write the page

All methods have the library's defaults, and the same module and samples. A draw has its own samples, noise and initial
weights. "T fixed" is `MetaTransitionClassifier` with ``transition_lr=0``: the initial T, and the number of epochs with
the lowest clean loss (two draws). Inputs of "digits" are 0 to 16, without scaling. Test labels and the true T are only
used in the table.
"""

import argparse
import os
import sys
from collections import Counter
from functools import partial
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from sklearn.feature_extraction.text import CountVectorizer
from torch import nn

from examples.benchmarks import problems
from examples.benchmarks.shared import RESULTS, markdown, paired_difference, points, publish, read_rows, run_all, spread
from examples.benchmarks.shared import versions as installed
from examples.benchmarks.zoo.bundled import docstring_texts
from noisytransition import (
    ComparisonData,
    CrossEntropyClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    flip_labels,
    transition_error,
)
from noisytransition.transition import digits_noise, pair_noise, symmetric_noise

OUT = RESULTS / "any_module.jsonl"
# "T fixed" has the first two draws only
DRAWS, DRAWS_FIXED = range(5), range(2)
RATE = 0.4
META, FIXED = "meta-transition", "T fixed"
METHODS = {
    "cross-entropy": CrossEntropyClassifier,
    "GLC": GLCClassifier,
    META: MetaTransitionClassifier,
    FIXED: partial(MetaTransitionClassifier, transition_lr=0.0),
}


# ---------------------------------------------------------------------------- modules
def layers(widths, activation=nn.ReLU, norm=None):
    """Return a function of the numbers of inputs and classes that creates an MLP."""

    def create(n_in, n_classes):
        parts = []
        for n_out in widths:
            parts += [nn.Linear(n_in, n_out), *([norm(n_out)] if norm else []), activation()]
            n_in = n_out
        return nn.Sequential(*parts, nn.Linear(n_in, n_classes))

    return create


def convolutions(_, n_classes):
    """Create a network of two convolutions for images of 8 x 8 pixels."""
    shape, pool = nn.Unflatten(1, (1, 8, 8)), nn.AdaptiveAvgPool2d(2)
    first, second = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 32, 3, padding=1)
    return nn.Sequential(shape, first, nn.ReLU(), second, nn.ReLU(), pool, nn.Flatten(), nn.Linear(128, n_classes))


class Transformer(nn.Module):
    """Network of two attention layers, for images as sequences of eight rows."""

    def __init__(self, n_classes):
        super().__init__()
        self.embed, self.places = nn.Linear(8, 32), nn.Parameter(0.02 * torch.randn(8, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, n_classes)

    def forward(self, x):
        """Compute logits from the mean of the outputs."""
        return self.head(self.body(self.embed(x.unflatten(1, (8, 8))) + self.places).mean(1))


class Words(nn.Module):
    """Mean of word embeddings, and one hidden layer; word 0 is padding."""

    def __init__(self, n_words, n_classes):
        super().__init__()
        self.embed = nn.EmbeddingBag(n_words, 32, padding_idx=0)
        self.body = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, n_classes))

    def forward(self, x):
        """Compute logits of sequences of word numbers."""
        return self.body(self.embed(x))


N_WORDS, LENGTH = 2000, 60
MODULES = {
    "linear": nn.Linear,
    "1 hidden layer": layers([64]),
    "2 hidden layers": layers([64, 64]),
    "3 hidden layers, tanh": layers([64] * 3, nn.Tanh),
    "4 hidden layers": layers([128] * 4),
    "batch norm": layers([64, 64], norm=nn.BatchNorm1d),
    "wide": layers([1024]),
    "convolutions": convolutions,
    "transformer": lambda _, n_classes: Transformer(n_classes),
    "words": lambda _, n_classes: Words(N_WORDS, n_classes),
}


# ---------------------------------------------------------------------------- data
def digits(kind, seed, scale=16.0):
    """Load scikit-learn's digits with 100 clean samples; values from 0 to `scale`."""
    data = problems.digits(f"{kind}-{RATE}", seed)
    return data._replace(**{name: scale * getattr(data, name) for name in ("X", "X_clean", "X_test")})


def generated(make, n_clean, kind, seed):
    """Draw 3,000 noisy samples of a generated data set."""
    return make(f"{kind}-{RATE}", seed, n=3000, n_clean=n_clean, n_test=3000)


def texts(kind, seed):
    """Load SciPy's docstrings as numbers of words; the class is the module."""
    texts, y = docstring_texts()
    words = CountVectorizer(max_features=N_WORDS - 1)
    analyse, number = words.fit(texts).build_analyzer(), words.vocabulary_
    tokens = [[1 + number[word] for word in analyse(text) if word in number][:LENGTH] for text in texts]
    X = np.array([t + [0] * (LENGTH - len(t)) for t in tokens])
    rows = np.random.default_rng(seed).permutation(len(y))
    return noisy(X, y, rows[:600], rows[600:675], rows[675:], TRANSITIONS[kind](5), seed)


def noisy(X, y, train, clean, test, T, seed):
    """Flip the labels of the training samples."""
    given = flip_labels(y[train], T, random_state=seed)
    return ComparisonData(X[train], given, X[clean], y[clean], X[test], y[test], T, y[train])


TRANSITIONS = {
    "pair": lambda n: pair_noise(n, RATE),
    "symmetric": lambda n: symmetric_noise(n, RATE),
    "asymmetric": lambda _: digits_noise(RATE),
}
ALL, NO_NAMES = ("symmetric", "pair", "asymmetric"), ("symmetric", "pair")
# data set -> how to load it, noises and modules
DATA = {
    "digits": (digits, ALL, [name for name in MODULES if name not in ("linear", "words")]),
    "digits, scaled": (partial(digits, scale=1.0), ALL, ["2 hidden layers", "4 hidden layers"]),
    "Gaussians": (partial(generated, problems.gaussians, 150), NO_NAMES, ["linear", "2 hidden layers", "batch norm"]),
    "table": (partial(generated, problems.table, 100), NO_NAMES, ["1 hidden layer", "3 hidden layers, tanh"]),
    "docstrings": (texts, NO_NAMES, ["words"]),
}


# ---------------------------------------------------------------------------- fits
def cells():
    """List the cells: data set, noise, module and draw."""
    return [
        (data, kind, module, draw)
        for draw, (data, (_, kinds, modules)) in product(DRAWS, DATA.items())
        for kind, module in product(kinds, modules)
    ]


def run(data, kind, module, draw):
    """Fit all methods to one draw."""
    torch.set_num_threads(1)
    samples = DATA[data][0](kind, draw)
    T = samples.transition_matrix
    torch.manual_seed(draw)
    net = MODULES[module](samples.X.shape[1], len(T))
    row = {"data": data, "noise": kind, "module": module, "draw": draw}
    X, X_clean, X_test = (a if a.dtype.kind == "i" else a.astype(np.float32) for a in (samples.X, *samples[2:5:2]))
    for name in METHODS if draw in DRAWS_FIXED else [m for m in METHODS if m != FIXED]:
        clf = METHODS[name](net, random_state=draw).fit(X, samples.y, meta=(X_clean, samples.y_clean))
        row[name] = float(clf.score(X_test, samples.y_test))
        if hasattr(clf, "transition_matrix_"):
            row[f"T, {name}"] = transition_error(T, clf.transition_matrix_)
    return row


# ---------------------------------------------------------------------------- page
def report(rows):
    """Write the table: accuracies, errors of T, and differences to the better of cross-entropy and GLC."""
    lines, misses, gains = [], [], []
    for cell in dict.fromkeys((row["data"], row["noise"], row["module"]) for row in rows):
        here = [row for row in rows if (row["data"], row["noise"], row["module"]) == cell]
        of = {name: [row[name] for row in here if name in row] for name in METHODS}
        better = max(("cross-entropy", "GLC"), key=lambda name: np.mean(of[name]))
        mean, low, high, error = paired_difference(of[META], of[better])
        gains.append(mean)
        misses += [", ".join(cell)] if mean < -0.01 - 2 * error else []
        errors = [[row[f"T, {name}"] for row in here] for name in ("GLC", META)]
        difference = points({"mean": mean, "low": low, "high": high})
        lines.append((", ".join(cell), [*(spread(of[name]) for name in METHODS), difference, *map(spread, errors)]))
    heads = [*METHODS, "meta-transition - the better of the first two", "error of T, GLC", "meta-transition"]
    both = [row for row in rows if FIXED in row]
    counts = Counter((row["data"], row["noise"], row["module"]) for row in rows).values()
    sizes = sorted({min(counts), max(counts)})
    means = {name: 100 * np.mean([row[name] for row in both]) for name in METHODS}
    parts = [
        "# The meta-gradient on any module",
        " ".join(__doc__.split("\n\n")[2].split()),
        f"Mean ± standard deviation over {' to '.join(map(str, sizes))} draws of {len(lines)} cells; differences in "
        f"points, with 95 % intervals. {installed()}.",
        markdown(heads, lines),
        f"Mean difference of the {len(lines)} cells: {100 * np.mean(gains):+.1f} points. Mean accuracies of the first "
        f"{len(DRAWS_FIXED)} draws: "
        + ", ".join(f"{name} {value:.1f}" for name, value in means.items())
        + ". More than a point and twice the standard error below the better of cross-entropy and GLC: "
        + ("; ".join(misses) or "no cell")
        + ".",
    ]
    publish("any_module.md", parts)


def main():
    """Run the missing cells, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    if not args.report:
        done = {(row["data"], row["noise"], row["module"], row["draw"]) for row in read_rows(OUT)}
        run_all(run, [cell for cell in cells() if cell not in done], OUT, args.jobs)
    report(read_rows(OUT))


if __name__ == "__main__":
    from examples.benchmarks.any_module import main  # so that worker processes can import its functions

    main()
