"""Measure the cost of EM's training and of the meta-gradient, as ratios within one process.

    python examples/benchmarks/cost.py [--classes | --growth]

``--classes`` only measures problems with many classes again. ``--growth`` measures T from held-out probabilities
against the numbers of classes and samples, which the full run omits. Timings are interleaved; results are medians over
turns of the CPU time of the single-threaded process.
"""

import os
import sys
import time
from unittest.mock import patch

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from problems import digits, gaussians
from scipy.special import softmax
from shared import RESULTS, markdown, publish, versions
from torch import nn

from noisytransition import CrossEntropyClassifier, LabelNoiseModel, MetaTransitionClassifier, MWNetClassifier
from noisytransition.losses import ForwardLoss, GoldCorrectionLoss
from noisytransition.meta_gradient import look_ahead
from noisytransition.nets import MLP, NoisyLabelNet, Rows
from noisytransition.nets._rows import noisy_and_clean
from noisytransition.transition import flip_labels, pair_noise, symmetric_noise, transition_error
from noisytransition.updates import PosteriorCounts

METHODS = ["factored", "dual", "double-vjp", "difference"]

TURNS = 15
META_TURNS = 51
SEEDS = range(5)
LOOK_AHEAD_LR = 0.05
# small, since a network that fits its batch perfectly has slow denormal gradients
LR = 1e-6


def cnn(channels, norm=nn.BatchNorm2d):
    """Return a small convolutional network for images of 3 x 32 x 32."""
    return nn.Sequential(
        nn.Conv2d(3, channels, 3, stride=2, padding=1),
        norm(channels),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1),
        norm(2 * channels),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * channels * 64, 10),
    )


# ---------------------------------------------------------------------------- EM
# name: module, shape of a sample, number of samples, batch size
CASES = {
    "MLP of 64 units, 64 features, batches of 64": (MLP(64, 10, hidden=64), (64,), 6400, 64),
    "MLP of 512 and 512 units, 64 features, batches of 128": (MLP(64, 10, hidden=(512, 512)), (64,), 6400, 128),
    "CNN of 16 and 32 channels, images of 32 x 32, batches of 128": (cnn(16), (3, 32, 32), 1280, 128),
}


def em_ratio(module, shape, n, batch_size):
    """Return the median and quartiles of the ratios, and the milliseconds of a plain step."""
    rng = np.random.default_rng(0)
    noisy, clean = (
        Rows(rng.normal(size=(k, *shape)).astype(np.float32), rng.integers(10, size=k)) for k in (n, n // 20)
    )
    shared = {"classes": np.arange(10), "lr": 0.01, "batch_size": batch_size, "verbose": 0}
    loss = GoldCorrectionLoss(pair_noise(10, 0.3))
    em = NoisyLabelNet(module, criterion=loss, update=PosteriorCounts(0.05), **shared).initialize()
    pairs = [(NoisyLabelNet(module, **shared).initialize(), noisy), (em, noisy_and_clean(noisy, clean))]
    times = np.array([[seconds(*pair) for pair in pairs] for _ in range(TURNS + 1)])[1:]  # the first warms up
    quotients = times[:, 1] / times[:, 0]
    return np.median(quotients), np.percentile(quotients, [25, 75]), 1e3 * np.median(times[:, 0]) * batch_size / n


def seconds(net, rows):
    """Return the CPU time of one epoch."""
    started = time.process_time()
    net.partial_fit(rows, rows.label, epochs=1)
    return time.process_time() - started


def em_table():
    """Return a table of the cost of an epoch of EM's training."""
    lines = []
    for name, case in CASES.items():
        middle, (low, high), step = em_ratio(*case)
        lines.append((name, [f"{middle:.2f} [{low:.2f}, {high:.2f}]", f"{step:.2f}"]))
    return markdown(["EM / plain", "milliseconds of a plain step"], lines)


# ---------------------------------------------------------------------------- one meta step
def meta_step(module, loss, optimizer, noisy, clean, method):
    """Look ahead, update T, and update the network through the new T."""
    rates = {name: LOOK_AHEAD_LR for name, _ in module.named_parameters()}
    ahead = look_ahead(module, noisy[0], lambda z: loss.cotangent(z, noisy[1]), clean, rates, methods=(method,))
    (gradient,) = loss.meta_gradients(ahead.logits.detach(), noisy[1], ahead.tangent)
    loss.transition_logits -= LR * gradient
    optimizer.zero_grad()
    loss(ahead.logits, noisy[1]).backward()
    optimizer.step()


def step_times(module, shape, batch_size):
    """Return the milliseconds of a step in each turn, for all methods that support the module."""
    torch.manual_seed(0)
    batches = [(torch.randn(batch_size, *shape), torch.randint(10, (batch_size,))) for _ in range(2)]
    loss, optimizer = ForwardLoss(pair_noise(10, 0.3)), torch.optim.SGD(module.parameters(), lr=LR, momentum=0.9)
    steps = {name: lambda name=name: meta_step(module, loss, optimizer, *batches, name) for name in METHODS}
    times = {name: [] for name in steps if possible(steps[name])}
    for _ in range(META_TURNS):
        for name, taken in times.items():
            started = time.process_time()
            steps[name]()
            taken.append(1e3 * (time.process_time() - started))
    return {name: np.array(taken) for name, taken in times.items()}


def possible(step):
    """Return whether a method supports the module; the steps also warm it up."""
    try:
        for _ in range(3):
            step()
    except NotImplementedError:
        return False
    return True


def step_table():
    """Return a table of the milliseconds of a meta step, for MLPs with one hidden layer and small CNNs."""
    cases = {
        f"MLP of {width} units, {n_features} features, batches of {batch_size}": (
            MLP(n_features, 10, hidden=width),
            (n_features,),
            batch_size,
        )
        for n_features in (10, 64, 800)
        for width in (32, 128, 512)
        for batch_size in (32, 128)
    }
    cases["CNN with batch normalisation, batches of 64"] = (cnn(16), (3, 32, 32), 64)
    cases["CNN without normalisation, batches of 64"] = (cnn(16, nn.Identity), (3, 32, 32), 64)
    lines = []
    for name, case in cases.items():
        times = step_times(*case)
        lines.append((name, [f"{np.median(times[m]):.2f}" if m in times else "" for m in METHODS]))
        print(lines[-1], flush=True)
    return markdown(list(METHODS), lines)


# ---------------------------------------------------------------------------- whole fits
FITS = {
    "MetaTransitionClassifier, digits": (MetaTransitionClassifier, lambda seed: digits("pair-0.4", seed)),
    "MetaTransitionClassifier, 2000 Gaussians of 10 features": (
        MetaTransitionClassifier,
        lambda seed: gaussians("pair-0.4", seed, n=2000, n_clean=100),
    ),
    "MWNetClassifier, digits": (MWNetClassifier, lambda seed: digits("pair-0.4", seed)),
}
FIT_METHODS = ["factored", "double-vjp", "dual"]


def fit_seconds(cls, data, method, seed):
    """Return the CPU time of one fit with the default network and parameters."""
    clf = cls.as_published(random_state=seed)
    started = time.process_time()
    with patch("noisytransition.meta_gradient._methods.candidate_methods", lambda module: (method,)):
        clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean))
    return time.process_time() - started


def fit_table():
    """Return a table of the seconds of fits by each method, and of ratios to the first method."""
    lines = []
    for name, (cls, load) in FITS.items():
        fit_seconds(cls, load(0), FIT_METHODS[0], 0)  # the first warms up
        times = np.array([[fit_seconds(cls, load(seed), m, seed) for m in FIT_METHODS] for seed in SEEDS])
        ratios = times[:, 1:] / times[:, :1]
        cells = [f"{middle:.2f}" for middle in np.median(times, axis=0)]
        cells += [f"{np.median(r):.2f} [{r.min():.2f}, {r.max():.2f}]" for r in ratios.T]
        lines.append((name, cells))
        print(lines[-1], flush=True)
    return markdown([*FIT_METHODS, *(f"{name} / {FIT_METHODS[0]}" for name in FIT_METHODS[1:])], lines)


# ---------------------------------------------------------------------------- many classes
# classes and noisy samples; five clean samples of each class
CLASSES = [(100, 1500), (200, 3000), (400, 6000), (1000, 12000)]
MANY = "## Many classes"


def held_out(c, n, kind, seed, per_class=5):
    """Draw over-confident probabilities, noisy labels, probabilities of clean samples and their labels, and T."""
    rng, T = np.random.default_rng(seed), (pair_noise(c, 0.3) if kind == "pair" else symmetric_noise(c, 0.4))
    y = np.concatenate([rng.integers(c, size=n), np.repeat(np.arange(c), per_class)])
    spread = 1.15 * np.sqrt(2 * np.log(c))
    logits = spread * (rng.normal(size=(len(y), c)) + spread * np.eye(c)[y])
    proba = softmax(1.6 * logits + 0.5 * rng.normal(size=c), axis=1)
    return proba[:n], flip_labels(y[:n], T, random_state=seed), proba[n:], y[n:], T


def many_classes(c, n, kind):
    """Return for each seed: seconds of one training, seconds of T from held-out probabilities, error of T."""
    rows = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        y = rng.integers(c, size=n)
        X = (rng.normal(size=(c, 64))[y] + rng.normal(size=(n, 64))).astype(np.float32)
        proba, noisy, proba_clean, y_clean, T = held_out(c, n, kind, seed)
        times = [time.process_time()]
        CrossEntropyClassifier(random_state=seed).fit(X, flip_labels(y, T, random_state=seed))
        times.append(time.process_time())
        model = LabelNoiseModel().fit(proba, noisy, proba_clean=proba_clean, y_clean=y_clean, classes=np.arange(c))
        times.append(time.process_time())
        rows.append([*np.diff(times), transition_error(model.transition_matrix_, T)])
    return np.array(rows)


def classes_table():
    """Return a table of the time of T from held-out probabilities, relative to one training of the network."""
    lines = []
    for c, n in CLASSES:
        for kind in ("pair", "symmetric"):
            training, of_T, error = many_classes(c, n, kind).T
            cells = [f"{np.median(training):.1f}", f"{np.median(of_T):.1f}", f"{np.median(of_T / training):.2f}"]
            lines.append((f"{c} classes, {n:,} samples, {kind}", [*cells, f"{error.mean():.3f} ± {error.std():.3f}"]))
            print(lines[-1], flush=True)
    return markdown(["one training, seconds", "T, seconds", "T / training", "error of T"], lines)


def classes_parts():
    """Return the part of the page on many classes."""
    return [
        MANY,
        "CPU time of `LabelNoiseModel.fit`, and of one training of the default network on as many samples and classes "
        "with 64 features, interleaved; medians of seeds 0 to 2. Pair noise 0.3, symmetric noise 0.4, five clean "
        "samples of each class.",
        classes_table(),
    ]


# ---------------------------------------------------------------------------- growth with classes and samples
# classes and samples of each line of the plot; all fits take less than a minute
GROWTH = {
    "10,000 samples, 10 to 50 classes": [(c, 10_000) for c in (10, 20, 50)],
    "10,000 samples, 100 to 2,000 classes": [(c, 10_000) for c in (100, 200, 500, 1000, 2000)],
    "10 classes": [(10, n) for n in (1000, 10_000, 100_000, 1_000_000)],
    "100 classes": [(100, n) for n in (1000, 10_000, 100_000)],
}


def seconds_of_noise_model(c, n, seed):
    """Return the CPU time of T from held-out probabilities, and its error."""
    proba, noisy, proba_clean, y_clean, T = held_out(c, n, "pair", seed, max(5, n // (20 * c)))
    started = time.process_time()
    model = LabelNoiseModel().fit(proba, noisy, proba_clean=proba_clean, y_clean=y_clean, classes=np.arange(c))
    return time.process_time() - started, transition_error(model.transition_matrix_, T)


def growth_page():
    """Measure the time of T against the numbers of classes and samples, and write a page."""
    lines, exponents = {}, []
    for i, (name, points) in enumerate(GROWTH.items()):
        medians = []
        for c, n in points:
            n_seeds = 1 if c * n >= 10**6 else 3
            found = np.median([seconds_of_noise_model(c, n, seed) for seed in range(n_seeds)], axis=0)
            lines[f"{c:,} classes, {n:,} samples"] = [f"{found[0]:.2f}", f"{found[1]:.3f}"]
            print(c, n, found, flush=True)
            medians.append(found[0])
        x = [point[i // 2] for point in points]
        slope, _ = np.polyfit(np.log(x), np.log(medians), 1)
        exponents.append((name, [("classes", "samples")[i // 2], f"{slope:.2f}"]))
    parts = [
        "# Time of T against classes and samples",
        f"See `cost.py --growth`. {versions()}, {os.cpu_count()} CPUs, one thread. CPU time of `LabelNoiseModel.fit` "
        "for held-out probabilities. Pair noise 0.3; clean samples: 5 % of the samples, at least five of each class. "
        "Medians of seeds 0 to 2; seed 0 if classes times samples are at least one million. 100 classes with 1,000,000 "
        "samples were left out: their probabilities have 0.8 GB.",
        markdown(["seconds", "error of T"], lines.items()),
        "## Fitted exponents",
        "Seconds grow as this power of the number of classes or samples. Up to 20 classes, the calibration is matrix "
        "scaling, and T is also fitted under feature-dependent noise; up to 50 classes, T has error bars.",
        markdown(["number of", "exponent"], exponents),
    ]
    publish("cost_growth.md", parts)


def main():
    """Measure, write and print."""
    torch.set_num_threads(1)
    if "--growth" in sys.argv:
        growth_page()
        return
    if "--classes" in sys.argv:
        others = (RESULTS / "cost.md").read_text().split(MANY)[0].strip()
        publish("cost.md", [others, *classes_parts()])
        return
    parts = [
        "# Cost of EM's training and of the meta-gradient",
        f"See `cost.py`. {versions()}, {os.cpu_count()} CPUs, one thread; CPU time.",
        "## EM",
        f"Time of an epoch of EM relative to a plain epoch; median [quartiles] of {TURNS} turns. Seed 0.",
        em_table(),
        "## A step with the meta-gradient, by method",
        f"Milliseconds of a whole step (look-ahead, update of T, update of the network); medians of {META_TURNS} "
        "turns. Ten classes, random data, seed 0. Empty cells: the method does not support this module.",
        step_table(),
        "## Whole fits, by method",
        f"Seconds of a fit with the default network and parameters, pair noise 0.4; medians of seeds {SEEDS[0]} to "
        f"{SEEDS[-1]}, and ratios within a seed: median [smallest, largest].",
        fit_table(),
        *classes_parts(),
    ]
    publish("cost.md", parts)


if __name__ == "__main__":
    main()
