"""Run the missing fits of one of the paper's tables, and write a line of JSON for each fit.

    python -m examples.paper.run cifar10 --data-root DIR                              # the paper's setting
    python -m examples.paper.run cifar10 --scale features --features-dir DIR2 --data-root DIR --jobs 2
    python -m examples.paper.run cifar10n --scale small --cell worse --cell EM --seeds 0 1

Run it from the root of the repository. TABLE is cifar10, cifar100, cifar10n, tiny-imagenet or clothing1m, or
cifar10n-redrawn, which is not in the paper. `tables.py` defines tables and scales. An interrupted or killed fit
continues after its last epoch. Fits in the file of results are not repeated. Do not run two processes with the same
file. `python -m examples.paper.page FILE` writes tables of the results.

DIR has the files that ``examples/paper/README.md`` lists, or a folder for each data set with its name (``cifar10``,
``cifar10n``, ...). DIR2 has ``cifar10_train.npy`` and ``cifar10_test.npy``, the features of all images from
`features.py`.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import time
import warnings
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import numpy as np
import torch
from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import PolynomialLR

from examples.benchmarks.shared import add_row, crop_and_flip, crop_flip_and_cut_out, read_rows
from examples.paper.data import Places, identity_of_features, load
from examples.paper.networks import HEADS, NETWORKS, parameters
from examples.paper.tables import METHODS, N_CLASSES, PAIRS, SCALES, TABLES, TRUE_T, cells, key, make
from noisytransition import __version__, sampling_limit, transition_error

RESULTS = Path(__file__).parent / "results"
AUGMENTATIONS = {True: crop_and_flip, "cutout": crop_flip_and_cut_out}


# ---------------------------------------------------------------------------- one cell
def run(cell, places, jobs=1):
    """Fit one cell; return it with its result row or an error."""
    if jobs != 1:
        torch.set_num_threads(1)
    torch.backends.cudnn.benchmark = is_gpu(places.device)  # all batches have the same shape
    try:
        data = load(*data_of(cell), places)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = fitted(cell, data, places)
        measured = measures(clf, data, time.perf_counter() - started)
        return cell, cell._asdict() | measured | {"versions": versions(places.device)}
    except Exception as error:  # other cells continue; the next call repeats this one
        return cell, {"error": f"{type(error).__name__}: {error}"}


def is_gpu(device):
    return torch.device(device).type == "cuda"


def data_of(cell):
    """Return the arguments of `load`, besides `Places`, that determine the data of a cell."""
    return cell.data, cell.noise, cell.rate, cell.seed, cell.scale, cell.n_meta, cell.held_out


def fitted(cell, data, places):
    """Fit the classifier of a cell; continue an interrupted fit."""
    clf = classifier(cell, data, places)
    state = None if places.states is None else places.states / file_name(cell)
    if cell.method == "clean samples only":
        return clf.fit(data.X_clean, data.y_clean, state=state)
    pairs = {"y_clean_noisy": data.y_clean_noisy} if cell.method in PAIRS else {}
    return clf.fit(data.X, data.y, meta=(data.X_clean, data.y_clean), state=state, **pairs)


def classifier(cell, data, places):
    """Create the unfitted classifier of a cell."""
    params = dict(cell.settings)
    if decay_at := params.pop("decay_at", None):
        params["callbacks"] = [("decay", LRScheduler("MultiStepLR", milestones=decay_at, gamma=0.1))]
    if params.pop("linear_decay", False):
        params["callbacks"] = [("decay", LRScheduler(PolynomialLR, total_iters=params["max_epochs"]))]
    if how := params.pop("augment", False):
        params["batch_transform"] = AUGMENTATIONS[how]
    params.pop("weights", None)  # only the name of the file; `places` has its path
    net = parameters(cell.network, int(np.prod(np.shape(data.X[0]))), N_CLASSES[cell.data], places.weights)
    given = {"random_state": cell.seed, "device": places.device}
    given |= {"iterator_train__pin_memory": True} if is_gpu(places.device) else {}
    given |= {"transition_init": data.transition_matrix} if cell.method == TRUE_T else {}
    return make(cell.method, **(net | params | given))


# ---------------------------------------------------------------------------- what is measured
def measures(clf, data, seconds):
    """Compute accuracy, error of T and the seconds; an interrupted fit took at least the time of its epochs."""
    of_epochs = sum(epoch["dur"] for history in clf.histories_.values() for epoch in history)
    row = {"accuracy": float(clf.score(data.X_test, data.y_test)), "seconds": round(max(seconds, of_epochs), 1)}
    if hasattr(clf, "n_epochs_"):
        row["epochs"] = clf.n_epochs_
    T, n = data.transition_matrix, data.y_true
    if T is None:
        return row
    if hasattr(clf, "transition_matrix_"):
        row["transition_error"] = transition_error(T, clf.transition_matrix_)
    row["identity"] = transition_error(T, np.eye(len(T)))
    if n is not None and (counts := np.bincount(n, minlength=len(T))).all():
        row["limit"] = sampling_limit(T, counts)
    return row


def versions(device="cpu"):
    """Return the versions of libraries that determine results, and the GPU."""
    libraries = {"noisytransition": __version__} | {name: version(name) for name in ("numpy", "skorch")}
    gpu = {"gpu": torch.cuda.get_device_name(device)} if is_gpu(device) else {}
    return {"python": platform.python_version(), **libraries, "torch": str(torch.__version__), **gpu}


# ---------------------------------------------------------------------------- all of them
def file_name(cell):
    return hashlib.sha256(cell.key.encode()).hexdigest()[:16]


def fill(todo, places, out, jobs=1):
    """Run the cells that are not in the file, and append each result; return the number of failed cells."""
    places.states.mkdir(parents=True, exist_ok=True)
    rows = read_rows(out)
    made_of = features_of(todo, places, rows, out)
    done, missing = {key(row) for row in rows}, []
    for cell in todo:
        if cell.key in done:  # a killed run may have left its state
            shutil.rmtree(places.states / file_name(cell), ignore_errors=True)
        else:
            missing.append(cell)
    if not missing:
        print(f"Nothing to run: {out} has the results of all {len(todo)} cells.")
    failed, started = 0, time.perf_counter()
    tasks = (joblib.delayed(run)(cell, places, jobs) for cell in missing)
    for i, (cell, row) in enumerate(joblib.Parallel(jobs, return_as="generator_unordered")(tasks), 1):
        failed += "error" in row
        if "error" not in row:
            add_row(out, row | made_of)
            shutil.rmtree(places.states / file_name(cell), ignore_errors=True)
        minutes = (time.perf_counter() - started) / 60
        print(f"[{i}/{len(missing)}, {minutes:.1f} min] {cell}: {one_line(row)}", flush=True)
    return failed


def features_of(todo, places, rows, out):
    """Return the hash of the features as a column of results; exit if the file has results with other features.

    Results with different features must not be compared. Old results without a hash are assumed to have the same
    features.
    """
    if {cell.scale for cell in todo} != {"features"}:
        return {}
    (table,), (data,) = ({getattr(cell, name) for cell in todo} for name in ("table", "data"))
    if (own := identity_of_features(data, places.features_dir)) is None:
        return {}
    found = {row.get("features", own) for row in rows if (row.get("table"), row.get("scale")) == (table, "features")}
    if other := found - {own}:
        raise SystemExit(
            f"{out} has results of {table} with other features ({', '.join(sorted(other))}) than {places.features_dir} "
            f"({own}); give the --features-dir of these results, or another --out."
        )
    return {"features": own}


def one_line(row):
    if "error" in row:
        return f"FAILED: {row['error']}"
    T = f", error of T {row['transition_error']:.3f}" if "transition_error" in row else ""
    return f"accuracy {row['accuracy']:.3f}{T}, {row['seconds']:.0f} s"


def matching(todo, texts):
    """Select cells whose names contain all texts as whole words ("symmetric" does not match "asymmetric")."""
    patterns = [re.compile(rf"(?<!\w){re.escape(text)}(?!\w)") for text in texts]
    return [cell for cell in todo if all(pattern.search(str(cell)) for pattern in patterns)]


def positive(text):
    """Parse an option that is an integer of at least 1."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 1")
    return int(text)


def add_options(parser):
    """Add the options of `run` and `tune`."""
    parser.add_argument("table", choices=TABLES, metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--cell", action="append", default=[], help="only cells with this text; repeat for several")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--network", choices=NETWORKS, nargs="+", help="default: the network of the scale")
    parser.add_argument("--methods", choices=METHODS, nargs="+", default=list(METHODS), metavar="METHOD")
    parser.add_argument("--n-meta", type=positive, help="number of clean samples; default: 1,000 for CIFAR")
    parser.add_argument("--data-root", type=Path, default=Path("data"))
    parser.add_argument("--features-dir", type=Path)
    parser.add_argument("--weights", help="weights of torchvision's resnet50, for Clothing1M")
    parser.add_argument("--jobs", type=positive, default=1, help="number of processes")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="file of results")


def run_cells(todo, args, out):
    """Run the cells that the command line selects; exit with 1 if one failed."""
    chosen = checked(todo, args, out)
    states = out.with_name(out.name + ".states")
    places = Places(args.data_root, args.features_dir, states, args.weights, args.device)
    out.parent.mkdir(parents=True, exist_ok=True)
    if failed := fill(chosen, places, out, args.jobs):
        raise SystemExit(f"{failed} cells failed; run the same command again to repeat them.")


def checked(todo, args, out):
    """Select cells by the options; exit if there are none, or if they cannot be run."""
    if not (chosen := matching(todo, args.cell)):
        noises = ", ".join(dict.fromkeys(f"{c.noise} {c.rate:g}" if c.rate else c.noise for c in todo))
        found = f"noises are {noises}" if todo else "the table has none of --methods"
        raise SystemExit(f"No cell of {args.table} matches --cell {args.cell}; {found}.")
    for network in dict.fromkeys(cell.network for cell in chosen):
        if (network in HEADS) != (args.scale == "features"):
            kind = "features; give --scale features" if network in HEADS else f"images; give {' or '.join(HEADS)}"
            raise SystemExit(f"--network {network!r} needs {kind}.")
    if any(cell.network == "ResNet-50" for cell in chosen) and args.weights is None:
        raise SystemExit("ResNet-50 is pretrained; give the file of torchvision's resnet50 as --weights.")
    if not args.data_root.is_dir():
        raise SystemExit(f"--data-root {args.data_root} is not a folder; examples/paper/README.md lists its files.")
    if out.is_dir():
        raise SystemExit(f"--out {out} is a folder; give a file.")
    try:
        torch.empty(0, device=args.device)
    except RuntimeError as error:
        raise SystemExit(f"--device {args.device} cannot be used: {error}") from None
    return chosen


def with_options(todo, weights=None, precision=None):
    """Add the precision and the file of pretrained weights to the settings, which identify a cell."""
    given = {} if precision is None else {"precision": precision}
    own = {} if weights is None else {"weights": Path(weights).name}
    return [c._replace(settings=c.settings | given | (own if c.network == "ResNet-50" else {})) for c in todo]


def main(arguments=None):
    """Run the cells of a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--precision", choices=("bf16", "fp16"), help="precision of the networks; default: float32")
    args = parser.parse_args(arguments)
    todo = cells(args.table, args.scale, args.seeds, args.network, args.n_meta, args.methods)
    out = args.out or RESULTS / f"{args.table}_{args.scale}.jsonl"
    run_cells(with_options(todo, args.weights, args.precision), args, out)


if __name__ == "__main__":
    from examples.paper.run import main  # so that worker processes can import its functions

    main()
