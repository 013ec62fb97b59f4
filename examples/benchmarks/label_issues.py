"""Compare the detection of wrong labels by T and by cleanlab, with the same probabilities.

    pip install ".[benchmarks]"
    python examples/benchmarks/label_issues.py                     # digits
    python examples/benchmarks/label_issues.py --data DIR worse    # CIFAR-10N; also: aggre
    python examples/benchmarks/label_issues.py --data DIR worse-features aggre-features    # with an MLP on features
    python examples/benchmarks/label_issues.py --memorise          # large networks on digits
    python examples/benchmarks/label_issues.py --report            # only write the tables

DIR contains X_train.npy (uint8, n x 32 x 32 x 3), y_train.npy and the human labels cifar10n_worse.npy and
cifar10n_aggre.npy, all in the same order. A second call adds missing results. ``--keep FOLDER`` caches probabilities.

Noisy training samples are ranked by the probability that their labels are wrong. Digits: 100 clean samples, the network
of `em_transition.py`. CIFAR-10N: 10,000 images, 500 of them clean; either the small CNN of `cifar10.py` with 6 epochs,
or an MLP on the features of `image_features.py`, which is more accurate and faster (its weight decay was selected on
seed 0). `EMTransitionClassifier` with default parameters estimates T. All ranking methods get the same probabilities,
of four kinds:

* noisy label, out-of-fold: posteriors of the network trained with cross-entropy on noisy labels, the usual input of
  cleanlab. `denoise_proba` estimates P(true | x) from P(noisy | x) = P(true | x) @ T; "not denoised" uses the
  probabilities of the noisy label instead. The number of iterations, 5, was selected on these results (2 to 20 are
  similar), with all seeds of digits and the first 3 of CIFAR-10N.
* true label, out-of-fold: EM's `oof_proba_`, the calibrated posteriors of the folds.
* true label, in-sample: `predict_proba` of the fitted EM classifier on its own training samples.
* true label, GLC out-of-fold (digits only): three networks trained through EM's T, as the docs recommend for networks
  that memorise.

"ours" is `label_quality` with T. "counted T" is counted with the true labels, an upper bound for better estimates
of T. cleanlab is `get_label_quality_scores` by self-confidence (its default) and by normalised margin.
"""

import argparse
import functools
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cifar10
import numpy as np
from em_transition import NET, SMALL
from image_features import image_features
from problems import digits
from shared import RESULTS, add_row, markdown, out_of_fold, publish, read_rows, spread, versions, write_csv
from sklearn.metrics import average_precision_score
from sklearn.model_selection import cross_val_predict

from noisytransition import ComparisonData, EMTransitionClassifier, GLCClassifier, SModelClassifier, transition_error
from noisytransition.noise_model import LabelNoiseModel
from noisytransition.transition import count_transition_matrix, denoise_proba

ROWS, MEMORISED = RESULTS / "label_issues.jsonl", RESULTS / "label_issues_memorised.jsonl"
DIGITS = ["asymmetric-0.4", "pair-0.45", "symmetric-0.4"]
IMAGES, FEATURES = ["worse", "aggre"], ["worse-features", "aggre-features"]
HUMAN = IMAGES + FEATURES
SEEDS = {name: range(6) for name in DIGITS + FEATURES} | {name: range(3) for name in IMAGES}
# an MLP on features of images; the weight decay was selected on seed 0
WIDE = {
    "lr": 0.02,
    "optimizer": "sgd",
    "optimizer__momentum": 0.9,
    "optimizer__weight_decay": 1e-2,
    "batch_size": 128,
    "max_epochs": 15,
}
SORTS = {
    "noisy": "noisy label, out-of-fold",
    "held_out": "true label, out-of-fold",
    "fitted": "true label, in-sample",
    "glc": "true label, GLC out-of-fold",
}
# networks that can memorise their training labels
LARGE = {
    "module__hidden": 256,
    "optimizer": "sgd",
    "lr": 0.1,
    "optimizer__momentum": 0.9,
    "batch_size": 64,
    "max_epochs": 200,
}
LARGE_SEEDS = range(3)
CLEANLAB = {"self-confidence": "self_confidence", "margin": "normalized_margin"}


# ---------------------------------------------------------------------------- data and probabilities
def human(folder, cell, seed):
    """Return 10,000 images of CIFAR-10 or their features: 500 with true labels, 9,500 with human labels."""
    y, folder = np.load(Path(folder) / "y_train.npy").astype(int), Path(folder)
    y_human = np.load(folder / f"cifar10n_{cell.removesuffix('-features')}.npy").astype(int)
    noisy, clean = cifar10.split(y, seed)
    rows = (*noisy, *clean)
    X, X_clean = np.split((features if cell in FEATURES else images)(folder, rows, seed), [len(noisy)])
    return ComparisonData(X, y_human[noisy], X_clean, y[clean], X_clean, y[clean], None, y[noisy])


def images(folder, rows, seed):
    return np.load(folder / "X_train.npy", mmap_mode="r")[list(rows)]


@functools.lru_cache(maxsize=1)
def features(folder, rows, seed):
    """Compute features of images, once for both kinds of labels."""
    return image_features(images(folder, rows, seed), seed)


def probabilities(cell, seed, folder):
    """Return T, labels, and all kinds of probabilities."""
    if cell in HUMAN:
        data, params = human(folder, cell, seed), WIDE if cell in FEATURES else {"module": cifar10.CNN, **cifar10.NET}
    else:
        data, params = digits(cell, seed), NET | SMALL
    params, meta = params | {"random_state": seed}, (data.X_clean, data.y_clean)
    em = EMTransitionClassifier(**params).fit(data.X, data.y, meta=meta)
    found = {
        "y": data.y,
        "y_true": data.y_true,
        "T": em.transition_matrix_,
        "noisy": out_of_fold(params, data.X, data.y),
        "held_out": em.oof_proba_,
        "fitted": em.predict_proba(data.X),
    }
    if cell not in HUMAN:
        found["glc"] = unseen(em.transition_matrix_, params, data)
    return found


def unseen(T, params, data):
    """Return out-of-fold posteriors of networks trained through T."""
    through_T, meta = GLCClassifier(transition_init=T, **params), (data.X_clean, data.y_clean)
    return cross_val_predict(through_T, data.X, data.y, cv=3, method="predict_proba", params={"meta": meta})


def kept(cell, seed, folder, keep):
    """Load probabilities from a file, or compute them; they are saved if `keep` is a folder."""
    path = None if keep is None else Path(keep) / f"{cell}-{seed}.npz"
    if path is not None and path.exists():
        return dict(np.load(path))
    found = probabilities(cell, seed, folder)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, **found)
    return found


# ---------------------------------------------------------------------------- one seed of one cell
def qualities(sort, proba, y, T, counted):
    """Return the quality of all labels by each method; `counted` is the T counted with the true labels."""
    from cleanlab.rank import get_label_quality_scores

    scores = {name: get_label_quality_scores(y, proba, method=method) for name, method in CLEANLAB.items()}
    for name, matrix in {"ours": T, "ours, counted T": counted}.items():
        of_true = denoise_proba(proba, matrix) if sort == "noisy" else proba
        scores[name] = LabelNoiseModel.from_transition_matrix(matrix).label_quality(of_true, y)
    if sort == "noisy":
        scores["ours, not denoised"] = LabelNoiseModel.from_transition_matrix(T).label_quality(proba, y)
    return scores


def run(cell, seed, folder, keep):
    """Return the average precision, and the precision at the number of wrong labels, of each method and kind."""
    given = kept(cell, seed, folder, keep)
    y, T, wrong = given["y"], given["T"], given["y"] != given["y_true"]
    counted = count_transition_matrix(given["y_true"], y, len(T))
    row = {"cell": cell, "seed": seed, "wrong": float(wrong.mean()), "average_precision": {}, "precision": {}}
    row["transition_error"] = transition_error(counted, T)
    sorts = [sort for sort in SORTS if sort in given]
    row["accuracy"] = {sort: float((given[sort].argmax(axis=1) == given["y_true"]).mean()) for sort in sorts}
    for sort in sorts:
        scores = qualities(sort, given[sort], y, T, counted)
        row["average_precision"][sort] = {n: float(average_precision_score(wrong, -q)) for n, q in scores.items()}
        worst = {n: np.argsort(q, kind="stable")[: wrong.sum()] for n, q in scores.items()}
        row["precision"][sort] = {n: float(wrong[rows].mean()) for n, rows in worst.items()}
    model = LabelNoiseModel.from_transition_matrix(T)
    issues = model.find_label_issues(given["fitted"], y, as_frame=False)
    relabelled = model.relabel(given["fitted"], y)
    row["issues"] = {"precision": float(wrong[issues].mean()), "recall": float(wrong[issues].sum() / wrong.sum())}
    row["right after relabel"] = float((relabelled == given["y_true"]).mean())
    row["agreement"] = {
        "classifier and labels": float((given["fitted"].argmax(axis=1) == y).mean()),
        "right labels": float(1 - wrong.mean()),
    }
    return row


def fill(cells, seeds, folder, keep):
    """Add missing results, seed by seed; each is written immediately."""
    done = {(row["cell"], row["seed"]) for row in read_rows(ROWS)}
    for seed in range(max(map(len, SEEDS.values()))):
        for cell in cells:
            if seed in SEEDS[cell][:seeds] and (cell, seed) not in done:
                add_row(ROWS, run(cell, seed, folder, keep))
                print(f"{cell}, seed {seed}", flush=True)


def memorised(noise, name, seed):
    """Return the average precision with posteriors of a large network, in-sample and out-of-fold."""
    data, params = digits(noise, seed), LARGE | {"random_state": seed}
    wrong, meta = data.y != data.y_true, (data.X_clean, data.y_clean)
    clf = GLCClassifier(**params) if name == "GLC" else SModelClassifier(**params)
    clf.fit(data.X, data.y, meta=meta)
    T = clf.transition_matrix_
    out_of_fold = LabelNoiseModel.from_transition_matrix(T).label_quality(unseen(T, params, data), data.y)
    qualities = {"fitted": clf.label_quality(data.X, data.y), "out of fold": out_of_fold}
    return {
        "cell": f"digits, {noise}, {name}",
        "seed": seed,
        "right labels": float(1 - wrong.mean()),
        "right labels by T": float(clf.noisy_class_counts_ @ T.diagonal() / len(wrong)),
        "agreement": float((clf.predict(data.X) == data.y).mean()),
    } | {name: float(average_precision_score(wrong, -q)) for name, q in qualities.items()}


def fill_memorised():
    """Add missing results of the large networks."""
    done = {(row["cell"], row["seed"]) for row in read_rows(MEMORISED)}
    for seed in LARGE_SEEDS:
        for noise, name in (("symmetric-0.4", "GLC"), ("asymmetric-0.4", "GLC"), ("symmetric-0.4", "S-Model")):
            if (f"digits, {noise}, {name}", seed) not in done:
                add_row(MEMORISED, memorised(noise, name, seed))


# ---------------------------------------------------------------------------- the report
def title(cell, rows):
    name = f"CIFAR-10N {cell.replace('-', ', ')}" if cell in HUMAN else f"digits, {cell}" if cell in DIGITS else cell
    return f"{name} ({len(rows)} {'seed' if len(rows) == 1 else 'seeds'})"


def shown(values):
    """Format the mean and standard deviation; missing values give an empty text."""
    return "" if None in values else spread(values)


def table(cells, measure, sort):
    cells = {cell: rows for cell, rows in cells.items() if sort in rows[0][measure]}
    if not cells:
        return ""
    methods = list(next(iter(cells.values()))[0][measure][sort])
    lines = [
        (title(cell, rows), [shown([row[measure][sort][name] for row in rows]) for name in methods])
        for cell, rows in cells.items()
    ]
    return f"### {SORTS[sort]}\n\n" + markdown(methods, lines)


def difference(rows, sort, other):
    """Format the difference of average precision to another method: mean ± standard error; a star marks a loss."""
    if sort not in rows[0]["average_precision"]:
        return ""
    d = np.array([r["average_precision"][sort]["ours"] - r["average_precision"][sort][other] for r in rows])
    if len(d) == 1:
        return f"{d[0]:+.4f} (one seed)"
    error = d.std(ddof=1) / np.sqrt(len(d))
    return f"{d.mean():+.4f} ± {error:.4f}" + (" *" if d.mean() < -2 * error else "")


def differences(cells):
    heads = [f"{SORTS[sort]}: {other}" for sort in SORTS for other in CLEANLAB]
    lines = [
        (title(c, rows), [difference(rows, sort, other) for sort in SORTS for other in CLEANLAB])
        for c, rows in cells.items()
    ]
    return markdown(heads, lines)


def behind(cells):
    """Return a table of the error of EM's T relative to the counted T, and of the accuracy of the probabilities."""
    lines = []
    for cell, rows in cells.items():
        columns = [[r["transition_error"] for r in rows]] + [[r["accuracy"].get(sort) for r in rows] for sort in SORTS]
        lines.append((title(cell, rows), [shown(column) for column in columns]))
    return markdown(["error of T", *SORTS.values()], lines)


def used(cells):
    """Return a table of `find_label_issues` and `relabel` with default parameters."""
    heads = ["wrong labels", "issues: precision", "issues: recall", "correct labels", "after relabel", "agreement"]
    lines = []
    for cell, rows in cells.items():
        columns = [
            [r["wrong"] for r in rows],
            [r["issues"]["precision"] for r in rows],
            [r["issues"]["recall"] for r in rows],
            [r["agreement"]["right labels"] for r in rows],
            [r["right after relabel"] for r in rows],
            [r["agreement"]["classifier and labels"] for r in rows],
        ]
        lines.append((title(cell, rows), [shown(column) for column in columns]))
    return markdown(heads, lines)


def large():
    """Return a table of the posteriors of large networks, in-sample and out-of-fold."""
    rows = read_rows(MEMORISED)
    heads = {
        "right labels": "correct labels",
        "right labels by T": "correct labels by T",
        "agreement": "agreement",
        "fitted": "in-sample",
        "out of fold": "out-of-fold",
    }
    lines = []
    for cell in dict.fromkeys(row["cell"] for row in rows):
        of_cell = [row for row in rows if row["cell"] == cell]
        lines.append((title(cell, of_cell), [shown([row[head] for row in of_cell]) for head in heads]))
    return markdown(heads.values(), lines)


def report():
    """Write and print the page of results."""
    rows = read_rows(ROWS)
    cells = {c: [r for r in rows if r["cell"] == c] for c in SEEDS}
    cells = {c: found for c, found in cells.items() if found}
    parts = [
        "# Finding wrong labels",
        f"Mean ± standard deviation over seeds. {versions()}. See `label_issues.py` for the kinds of probabilities.",
        "## Difference of average precision to cleanlab\n\nPaired over seeds, mean ± standard error, with the same "
        "probabilities. *: lower by more than two standard errors.\n\n" + differences(cells),
        "## Average precision",
        *[table(cells, "average_precision", sort) for sort in SORTS],
        "## Precision at the number of wrong labels",
        *[table(cells, "precision", sort) for sort in SORTS],
        "## Error of T, and accuracy of the probabilities\n\nThe error of T is relative to the counted T.\n\n"
        + behind(cells),
        '## `find_label_issues` and `relabel` of the fitted classifier, default parameters\n\n"agreement": share of '
        "predictions equal to the training labels. If it is well above the share of correct labels, the classifier has "
        "memorised them.\n\n" + used(cells),
    ]
    if MEMORISED.exists():
        parts.append(
            "## Networks that memorise\n\n256 units, 200 epochs, no weight decay. Average precision of `label_quality` "
            "in-sample, and with out-of-fold posteriors of GLC with the same T. If T is near the identity, the "
            "agreement does not reveal the memorisation, but the two columns of correct labels differ.\n\n" + large()
        )
    publish("label_issues.md", parts)
    columns = [(sort, name) for sort in ("noisy", "held_out") for name in ("self-confidence", "ours")]
    heads = [f"{SORTS[sort]}: {'with T' if name == 'ours' else name}" for sort, name in columns]
    lines = [
        (title(cell, found), [shown([row["average_precision"][sort][name] for row in found]) for sort, name in columns])
        for cell, found in cells.items()
    ]
    write_csv(RESULTS / "label_issues.csv", heads, lines)


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cells", nargs="*", help=f"cells of {list(SEEDS)}; default: {DIGITS}")
    parser.add_argument("--data", help="folder of CIFAR-10 and its human labels")
    parser.add_argument("--keep", help="folder for cached probabilities")
    parser.add_argument("--seeds", type=int, default=6, help="maximum number of seeds")
    parser.add_argument("--memorise", action="store_true", help="only the large networks")
    parser.add_argument("--report", action="store_true", help="only write the tables of the existing results")
    args = parser.parse_args()
    cells = args.cells or DIGITS
    if unknown := set(cells) - set(SEEDS):
        parser.error(f"unknown cells {sorted(unknown)}. Use cells of {list(SEEDS)}.")
    if set(cells) & set(HUMAN) and args.data is None and not args.report:
        parser.error("--data is missing. Cells of CIFAR-10N need the folder of the images.")
    if args.memorise:
        fill_memorised()
    elif not args.report:
        fill(cells, args.seeds, args.data, args.keep)
    report()


if __name__ == "__main__":
    main()
