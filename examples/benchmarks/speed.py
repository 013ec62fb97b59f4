"""Compare time and memory with plain training, hand-written loops and other libraries.

    python examples/benchmarks/speed.py                 # add missing results
    python examples/benchmarks/speed.py --only steps    # measure one group again
    python examples/benchmarks/speed.py --report        # only write tables and plots

Timings are interleaved in a single-threaded process and count CPU time, so other processes have little effect. Results
are medians and quartiles of the ratio of each turn. Memory is measured in a new process for each fit. `higher` and
`torchopt` are included if they are installed (``pip install higher torchopt``).
"""

import argparse
import inspect
import os
import re
import warnings
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from shared import RESULTS, add_row, markdown, publish, read_rows, versions, write_csv
from sklearn.neural_network import MLPClassifier
from skorch import NeuralNetClassifier
from speed_fits import fits
from speed_memory import disk, memory
from speed_steps import LOOPS, LR, MOMENTUM, Problem, cnn, mlp, plain, wide_cnn
from speed_turns import TURNS, ratio, turns

from noisytransition import CrossEntropyClassifier
from noisytransition.likelihood import em_transition_matrix
from noisytransition.transition import class_conditional_test, flip_labels, label_posterior, symmetric_noise

OUT = RESULTS / "speed.jsonl"


# ---------------------------------------------------------------------------- one step
def steps():
    """Time of steps of EM and of Algorithm 1, relative to plain steps and to hand-written loops of Algorithm 1."""
    cases = {
        "MLP 64-128-128-10, batch 128": (Problem(lambda: mlp(64, 128, 128, 10), (64,), 128), 2.3, 0.8, 1.5),
        "MLP 64-128-128-10, batch 32": (Problem(lambda: mlp(64, 128, 128, 10), (64,), 32), 2.3, 0.8, 1.5),
        "MLP 784-256-256-10, batch 128": (Problem(lambda: mlp(784, 256, 256, 10), (784,), 128), 2.3, 0.8, 1.5),
        "CNN, batch 128": (Problem(lambda: cnn(False), (3, 32, 32), 128, 5), 3.5, 1.0, 1.3),
        "CNN with batch normalisation, batch 128": (Problem(lambda: cnn(True), (3, 32, 32), 128, 5), 3.6, 0.8, 1.3),
        "CNN with batch normalisation, batch 32": (Problem(lambda: cnn(True), (3, 32, 32), 32, 5), 3.6, 0.8, 1.3),
    }
    for case, (problem, meta_goal, loop_goal, em_goal) in cases.items():
        loops = {name: problem.loop(step) for name, step in LOOPS.items()}
        ours = {"plain": problem.ours(), "EM": problem.em_with_clean_rows(), "Algorithm 1": problem.meta()}
        times = turns(ours | loops)
        yield ratio(case, "EM / plain", times["EM"], times["plain"], em_goal)
        yield ratio(case, "Algorithm 1 / plain", times["Algorithm 1"], times["plain"], meta_goal)
        best = min(loops, key=lambda name: np.median(times[name]))
        yield ratio(case, f"Algorithm 1 / best loop ({best})", times["Algorithm 1"], times[best], loop_goal)
        for name in loops:
            yield ratio(case, f"{name} / plain", times[name], times["plain"])


def growth():
    """Time of an epoch relative to a plain epoch, by batch size, depth and number of classes.

    Each epoch is a separate training of 5 to 128 batches (20 for each number of classes). So the fixed cost of a
    training (recording T and the history) weighs more than in most fits.
    """
    problems = {
        ("samples per batch", n): Problem(lambda: mlp(64, 128, 128, 10), (64,), n, max(5, 2048 // n))
        for n in (16, 64, 256, 1024)
    }
    problems |= {("hidden layers", d): Problem(lambda d=d: mlp(64, *[128] * d, 10), (64,), 128) for d in (1, 2, 4, 8)}
    for c in (10, 100, 1000, 10_000):
        problems["classes", c] = Problem(lambda c=c: mlp(64, 128, c), (64,), 128, n_classes=c)
    goals = {1000: {"Forward": 1.3, "EM": 1.5}, 10_000: dict.fromkeys(["Forward", "EM", "Algorithm 1"], 3.0)}
    for (axis, value), problem in problems.items():
        ours = {
            "plain": problem.ours(),
            "Forward": problem.forward(),
            "EM": problem.em(),
            "Algorithm 1": problem.meta(),
        }
        times = turns(ours, 3 if value == 10_000 else TURNS)
        for name in list(ours)[1:]:
            goal = goals.get(value, {}).get(name) if axis == "classes" else None
            yield ratio(f"{value:,} {axis}", f"{name} / plain", times[name], times["plain"], goal)


def precision():
    """Time of steps in bf16 relative to float32, with a network of five convolutions.

    Only measured on processors with bf16 units (AVX512-BF16 or AMX).
    """
    if not (torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()):
        return
    problem = Problem(wide_cnn, (3, 32, 32), 128, 2)
    kinds = {"float32": {}, "bf16": {"precision": "bf16"}}
    for name, made in {"plain": problem.ours, "EM": problem.em_with_clean_rows, "Algorithm 1": problem.meta}.items():
        times = turns({kind: made(**params) for kind, params in kinds.items()}, 5)
        yield ratio(f"{name}, batch 128", "bf16 / float32", times["bf16"], times["float32"])


# ---------------------------------------------------------------------------- epochs, prediction
def loops():
    """Throughput of an epoch, relative to a bare torch loop; also of stock skorch and scikit-learn."""
    cases = {
        "MLP 64-128-128-10, 60,000 samples, batch 128": (Problem(lambda: mlp(64, 128, 128, 10), (64,), 128, 469), 0.9),
        "MLP 64-128-128-10, 15,000 samples, batch 32": (Problem(lambda: mlp(64, 128, 128, 10), (64,), 32, 469), 0.8),
        "CNN, 2,560 samples, batch 128": (Problem(lambda: cnn(False), (3, 32, 32), 128, 20), 0.9),
    }
    for case, (problem, goal) in cases.items():
        calls = {
            "noisytransition": problem.ours(),
            "bare loop": problem.loop(plain),
            "stock skorch": stock_skorch(problem),
        }
        if case.startswith("MLP"):
            calls["scikit-learn's MLPClassifier"] = scikit_learn(problem)
        times = turns(calls, 7)
        for name in ("noisytransition", *list(calls)[2:]):
            yield ratio(case, f"throughput of {name} / bare loop", times["bare loop"], times[name], goal)
            goal = None


def stock_skorch(problem):
    """Return an epoch of skorch's own classifier."""
    net = NeuralNetClassifier(
        problem.made(),
        criterion=torch.nn.CrossEntropyLoss,
        classes=np.arange(10),
        lr=LR,
        optimizer__momentum=MOMENTUM,
        batch_size=problem.batch_size,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    ).initialize()
    return lambda: net.partial_fit(problem.noisy.X, problem.noisy.label, epochs=1)


def scikit_learn(problem):
    """Return an epoch of scikit-learn's MLP."""
    net = MLPClassifier((128, 128), solver="sgd", learning_rate_init=LR, batch_size=problem.batch_size)
    return lambda: net.partial_fit(problem.noisy.X, problem.noisy.label, classes=np.arange(10))


def prediction():
    """Time of `predict_proba`, relative to a bare forward pass with the same batch size."""
    for case, network, shape, n in (
        ("MLP 64-128-10, 20,000 samples", lambda: mlp(64, 128, 10), (64,), 20_000),
        ("CNN, 2,000 samples", lambda: cnn(False), (3, 32, 32), 2000),
    ):
        X = np.random.default_rng(0).normal(size=(n, *shape)).astype(np.float32)
        for batch_size in (32, 128):
            clf = CrossEntropyClassifier(network(), max_epochs=1, batch_size=batch_size, random_state=0)
            clf.fit(X[:256], np.arange(256) % 10)
            calls = {"predict_proba": partial(clf.predict_proba, X), "bare": bare(clf, X, batch_size)}
            times = turns(calls)
            yield ratio(
                f"{case}, batch {batch_size}", "predict_proba / bare", times["predict_proba"], times["bare"], 1.1
            )


def bare(clf, X, batch_size):
    """Return a forward pass in plain torch."""

    @torch.no_grad()
    def forward():
        module = clf.module_.eval()
        return torch.cat([torch.softmax(module(x), 1) for x in torch.from_numpy(X).split(batch_size)]).numpy()

    return forward


# ---------------------------------------------------------------------------- arrays
def arrays():
    """Seconds of functions on arrays."""
    for name, n, c, goal, function in (
        ("em_transition_matrix", 10_000, 100, 0.3, maximised),
        ("em_transition_matrix", 10_000, 1000, 5.0, maximised),
        ("class_conditional_test", 100_000, 10, 10.0, tested),
        ("label_posterior", 100_000, 100, None, posteriors),
    ):
        call = function(n, c)
        seconds = turns({name: call}, 3)[name]
        yield ratio(f"{n:,} samples, {c:,} classes", f"{name}, seconds", seconds, 1, goal)


def drawn(n, c):
    """Draw posteriors, true and noisy labels of overlapping classes, and T."""
    rng, T = np.random.default_rng(0), symmetric_noise(c, 0.4)
    y = rng.integers(c, size=n)
    logits = rng.normal(size=(n, c)).astype(np.float32)
    logits[np.arange(n), y] += 4
    proba = np.exp(logits)
    proba /= proba.sum(axis=1, keepdims=True)
    return proba, y, flip_labels(y, T, random_state=0), T


def maximised(n, c):
    """Return a call of `em_transition_matrix`."""
    proba, _, y_noisy, _ = drawn(n, c)
    return lambda: em_transition_matrix(proba, y_noisy)


def tested(n, c):
    """Return a call of `class_conditional_test`."""
    proba, y, y_noisy, _ = drawn(n, c)
    return lambda: class_conditional_test(y, y_noisy, proba=proba, random_state=0)


def posteriors(n, c):
    """Return a call of `label_posterior`."""
    proba, _, y_noisy, T = drawn(n, c)
    return lambda: label_posterior(proba, y_noisy, T)


# ---------------------------------------------------------------------------- all groups
GROUPS = {
    "steps": steps,
    "growth": growth,
    "precision": precision,
    "loops": loops,
    "prediction": prediction,
    "fits": fits,
    "arrays": arrays,
    "memory": memory,
    "disk": disk,
}


def main():
    """Add missing results, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=GROUPS, nargs="+", help="measure these groups again")
    parser.add_argument("--report", action="store_true", help="only write tables and plots")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if args.only:
        kept = [row for row in read_rows(OUT) if row["group"] not in args.only]
        OUT.unlink(missing_ok=True)
        for row in kept:
            add_row(OUT, row)
    missing = set(args.only or GROUPS) - {row["group"] for row in read_rows(OUT)}
    for group in [group for group in GROUPS if group in missing and not args.report]:
        for row in list(GROUPS[group]()):
            add_row(OUT, {"group": group} | row | {"versions": versions()})
            print(group, row, flush=True)
    report(read_rows(OUT))


def report(rows):
    """Write the page, the table of the docs and the plots."""
    rows = sorted(rows, key=lambda row: list(GROUPS).index(row["group"]))
    parts = ["# Time and memory", "See `speed.py`. " + rows[0]["versions"] + f", {os.cpu_count()} CPUs, one thread."]
    for group in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in rows if row["group"] == group]
        lines = [(f"{row['case']}: {row['what']}", [shown(row), goal(row)]) for row in mine]
        parts += [
            f"## {group.capitalize()}",
            inspect.cleandoc(GROUPS[group].__doc__),
            markdown(["median [quartiles]", "goal"], lines),
        ]
    publish("speed.md", parts)
    chosen = [row for row in rows if row["goal"] is not None]
    lines = [(row["case"], [row["what"], shown(row), goal(row)]) for row in chosen]
    write_csv(RESULTS / "speed.csv", ["measure", "measured", "goal"], lines, corner="case")
    write_csv(RESULTS / "speed_goals.csv", ["measured", "goal", "missed"], goals(chosen), corner="measure")
    if growing := [row for row in rows if row["group"] == "growth"]:
        plot(growing)


def goals(rows):
    """Return a line for each measure with a goal: the medians of its cases, the goal, and how many cases miss it."""
    of = {}
    for row in rows:
        of.setdefault(measure(row), []).append(row)
    lines = []
    for name, cases in of.items():
        medians = sorted(row["ratio"] for row in cases)
        limits = " or ".join(f"{limit:g}" for limit in sorted({row["goal"] for row in cases}))
        is_least = bound(name) == "at least"
        n_missed = sum((row["ratio"] < row["goal"]) if is_least else (row["ratio"] > row["goal"]) for row in cases)
        span = " to ".join(dict.fromkeys(f"{ratio:.2f}" for ratio in (medians[0], medians[-1])))
        missed = "" if not n_missed else "missed" if len(cases) == 1 else f"{n_missed} of {len(cases)}"
        lines.append((name, [span, f"{bound(name)} {limits}", missed]))
    return lines


def measure(row):
    """Return the name of a measure: of steps with the kind of network, of other groups with the case."""
    what = re.sub(r"best loop \(.*\)", "hand-written loop", row["what"])
    if row["group"] == "steps":
        return f"step of {what.replace('plain', 'plain step')}, {row['case'].split(' ')[0].strip(',')}"
    if row["group"] in ("loops", "prediction"):
        return what
    return f"{what}: {row['case']}"


def shown(row):
    """Format the median and quartiles."""
    spread = "" if row["low"] == row["high"] else f" [{row['low']:.2f}, {row['high']:.2f}]"
    return f"{row['ratio']:.2f}{spread}"


def goal(row):
    """Format the goal."""
    if row["goal"] is None:
        return ""
    return f"{bound(row['what'])} {row['goal']:g}"


def bound(what):
    """Tell whether a goal is the least or the most of this measure."""
    return "at least" if "throughput" in what else "at most"


def plot(rows):
    """Plot the time of an epoch against batch size, depth and number of classes."""
    import matplotlib.pyplot as plt

    axes_of = ("samples per batch", "hidden layers", "classes")
    figure, axes = plt.subplots(3, 1, figsize=(5.2, 8), sharey=True, layout="constrained")
    for ax, axis in zip(axes, axes_of, strict=True):
        for name in ("Forward", "EM", "Algorithm 1"):
            mine = [row for row in rows if row["case"].endswith(axis) and row["what"].startswith(name)]
            x = [int(row["case"].split()[0].replace(",", "")) for row in mine]
            ax.plot(x, [row["ratio"] for row in mine], marker="o", label=name)
        ax.set(xscale="log", yscale="log", xlabel=axis)
        ax.set_xticks(x, [f"{value:,}" for value in x])
        ax.set_yticks(ticks := [1, 2, 5, 10, 20, 50], ticks)
        ax.minorticks_off()
        ax.grid(which="both", alpha=0.2)
    figure.supylabel("epoch / plain epoch")
    axes[0].legend()
    figure.savefig(RESULTS / "speed.png", dpi=120)


if __name__ == "__main__":
    main()
