"""Fit every method on every seed's data; write each result as it comes."""

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone

from ..classifiers import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    GCEClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    MWNetClassifier,
    NoisyLabelClassifier,
    SModelClassifier,
    TRevisionClassifier,
)
from ..classifiers._describe import describe
from ..nets import Rows, concatenate
from ..transition import sampling_limit, transition_error
from ._table import Comparison

CROSS_ENTROPY = "cross-entropy"
LONGEST = "cross-entropy, longest budget"
POOLED = "cross-entropy, noisy + clean"
METHODS: dict[str, type[NoisyLabelClassifier]] = {
    CROSS_ENTROPY: CrossEntropyClassifier,
    "fine-tuning": FineTuningClassifier,
    "GCE": GCEClassifier,
    "forward": ForwardClassifier,
    "GLC": GLCClassifier,
    "S-Model": SModelClassifier,
    "T-Revision": TRevisionClassifier,
    "MW-Net": MWNetClassifier,
    "meta-transition": MetaTransitionClassifier,
    "EM": EMTransitionClassifier,
}


class ComparisonData(NamedTuple):
    """What the methods of a comparison are given, and what they are scored on.

    Attributes
    ----------
    X, y
        Noisy rows and labels.
    X_meta, y_meta
        Clean rows and labels to train with.
    X_test, y_test
        Clean rows and labels that no method sees.
    transition_matrix : array-like of shape (n_classes, n_classes), optional
        The true T in sorted order of the labels, for errors of T.
    y_true : array-like, optional
        True labels of the noisy rows, for the sampling limit.
    """

    X: Any
    y: Any
    X_meta: Any
    y_meta: Any
    X_test: Any
    y_test: Any
    transition_matrix: Any = None
    y_true: Any = None


class PooledCrossEntropyClassifier(CrossEntropyClassifier):
    """Cross-entropy on noisy and clean rows together, as if all labels were true."""

    _needs_clean_data = True

    def _fit(self, noisy: Rows, meta: Any) -> None:
        self.net_ = self._train("cross_entropy", concatenate(noisy, meta))


def compare(
    data: ComparisonData | Callable[[int], ComparisonData],
    classifiers: Mapping[str, NoisyLabelClassifier] | Iterable[NoisyLabelClassifier] | None = None,
    *,
    seeds: Iterable[int] = range(3),
    n_jobs: int | None = None,
    path: str | PathLike | None = None,
    verbose: int = 1,
    **params: Any,
) -> Comparison:
    """Fit several methods on the same data, with the same net and seeds, and put them in one table.

    Beside the methods the table has cross-entropy with the longest budget of gradient steps that any method took,
    cross-entropy on noisy and clean rows together and, where the true T is known, the identity's error of T and the
    sampling limit. Accuracy is that of the net that `fit` leaves: of its last epoch, unless the method itself (or a
    callback) selects one; never chosen on the test rows.

    Parameters
    ----------
    data : ComparisonData or callable
        Data for all seeds, or a function of the seed that gives each its own split and noise.
    classifiers : dict of str to classifier or iterable of classifiers, optional
        Unfitted, with their own hyper-parameters; default: all methods. Cross-entropy is added if missing.
    seeds : iterable of int, default=range(3)
        Of the data, if that is a function, and of every fit.
    n_jobs : int, optional
        Processes, by joblib. Fit seconds are those of a machine that is busy with them.
    path : str or path, optional
        File of JSON lines: every fit is written when it ends, and is read instead of run when the call is repeated
        with the same data and parameters.
    verbose : int, default=1
        0 is silent; 1 prints a line for each fit.
    **params
        Parameters that all classifiers share: ``module``, ``batch_size``, ``max_epochs``, ... They replace a
        classifier's own of that name.

    Returns
    -------
    Comparison
        ``.table``, ``.plot()``, ``.differences("fine-tuning")``, ``.rows``.

    Raises
    ------
    ValueError
        If there is no seed, or a name is taken twice. A fit that fails is warned of and leaves an empty row; the
        next call tries it again.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import ComparisonData, CrossEntropyClassifier, GLCClassifier, compare, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> def iris(seed):
    ...     order = np.random.default_rng(seed).permutation(150)
    ...     clean, test, noisy = order[:15], order[15:55], order[55:]
    ...     T = pair_noise(3, 0.3)
    ...     y_noisy = flip_labels(y[noisy], T, random_state=seed)
    ...     return ComparisonData(X[noisy], y_noisy, X[clean], y[clean], X[test], y[test], T, y[noisy])
    >>> result = compare(iris, [CrossEntropyClassifier(), GLCClassifier()], seeds=range(2), verbose=0)
    >>> [row["method"] for row in result.table.reset_index().to_dict("records")]  # doctest: +NORMALIZE_WHITESPACE
    ['identity', 'sampling limit', 'cross-entropy', 'GLC', 'cross-entropy, longest budget',
     'cross-entropy, noisy + clean']
    """
    seeds = [int(seed) for seed in seeds]
    if not seeds:
        raise ValueError("seeds is empty; give at least one, such as range(3).")
    methods = {name: clf.set_params(**params) for name, clf in _named(classifiers).items()}
    base = next(name for name, clf in methods.items() if type(clf) is CrossEntropyClassifier)
    give = data if callable(data) else lambda seed: data
    book = _Book(Path(path) if path is not None else None)
    references, prints = [], {}
    for seed in seeds:
        given = give(seed)
        references += _references(given, seed)
        prints[seed] = _fingerprint(given)
    pooled = PooledCrossEntropyClassifier().set_params(**methods[base].get_params(deep=False))
    first = [
        Cell(name, clf, seed, prints[seed]) for seed in seeds for name, clf in (methods | {POOLED: pooled}).items()
    ]
    rows = book.fill(first, give, n_jobs, verbose)
    longest = [_longest_budget(base, methods[base], rows, seed, prints[seed]) for seed in seeds]
    rows += book.fill([cell for cell in longest if cell is not None], give, n_jobs, verbose)
    return Comparison(references + rows, ["identity", "sampling limit", *methods, LONGEST, POOLED])


class Cell(NamedTuple):
    """One fit."""

    method: str
    classifier: NoisyLabelClassifier
    seed: int
    data: str

    def key(self) -> dict[str, Any]:
        """What tells this fit from others in a result file."""
        return {
            "method": self.method,
            "seed": self.seed,
            "fingerprint": joblib.hash([_plain(self.classifier), self.data]),
        }


class _Book:
    """The fits that have been made, in memory and, with a path, in a file of JSON lines."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.done = {_as_key(row): row for row in map(_parsed, lines) if row is not None}

    def fill(self, cells: list[Cell], give: Callable, n_jobs: int | None, verbose: int) -> list[dict[str, Any]]:
        """Rows of these cells: those in the file, and the others run now."""
        keys = [cell.key() for cell in cells]
        failed = {"error": "not run yet"}
        todo = [(c, k) for c, k in zip(cells, keys, strict=True) if "error" in self.done.get(_as_key(k), failed)]
        jobs = joblib.Parallel(n_jobs, return_as="generator_unordered")(
            joblib.delayed(_run)(cell.classifier, give, cell.seed, key) for cell, key in todo
        )
        for i, row in enumerate(jobs, 1):
            self._write(row)
            if verbose:
                print(f"[{i}/{len(todo)}] {_one_line(row)}", flush=True)
        return [self.done[_as_key(key)] for key in keys]

    def _write(self, row: dict[str, Any]) -> None:
        self.done[_as_key(row)] = row
        if "error" in row:
            warnings.warn(f"{row['method']}, seed {row['seed']}: {row['error']}", UserWarning, stacklevel=4)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def _run(classifier: NoisyLabelClassifier, give: Callable, seed: int, key: dict[str, Any]) -> dict[str, Any]:
    data, clf = give(seed), clone(classifier).set_params(random_state=seed)
    started = time.perf_counter()
    try:
        clf.fit(data.X, data.y, meta=(data.X_meta, data.y_meta))
        row = key | {"seconds": round(time.perf_counter() - started, 3)}
        row["accuracy"] = float(clf.score(data.X_test, data.y_test))
        row["steps"] = sum(epoch["train_batch_count"] for history in clf.histories_.values() for epoch in history)
        if data.transition_matrix is not None and hasattr(clf, "transition_matrix_"):
            row["transition_error"] = transition_error(data.transition_matrix, clf.transition_matrix_)
    except Exception as error:  # the other fits go on; the table shows what is missing
        return key | {"error": f"{type(error).__name__}: {error}"}
    return row


def _references(data: ComparisonData, seed: int) -> list[dict[str, Any]]:
    """Errors of T that need no method: saying "no noise", and counting with the true labels."""
    if data.transition_matrix is None:
        return []
    T = np.asarray(data.transition_matrix)
    rows = [{"method": "identity", "seed": seed, "transition_error": transition_error(T, np.eye(len(T)))}]
    if data.y_true is not None:
        counts = np.unique(np.asarray(data.y_true), return_counts=True)[1]
        if len(counts) < len(T):  # no row of a class: counting gives no T
            return rows
        rows.append({"method": "sampling limit", "seed": seed, "transition_error": sampling_limit(T, counts)})
    return rows


def _longest_budget(base: str, cross_entropy: Any, rows: list[dict], seed: int, data: str) -> Cell | None:
    """Cross-entropy with at least as many gradient steps as any method of this seed took."""
    steps = {row["method"]: row["steps"] for row in rows if row["seed"] == seed and row.get("steps")}
    epochs = cross_entropy.max_epochs
    if base not in steps or not epochs:
        return None
    longest = -(-max(steps.values()) * epochs // steps[base])
    return Cell(LONGEST, clone(cross_entropy).set_params(max_epochs=longest), seed, data)


def _named(classifiers: Any) -> dict[str, NoisyLabelClassifier]:
    """Clones by name, cross-entropy among them."""
    if classifiers is None:
        return {name: cls() for name, cls in METHODS.items()}
    if not isinstance(classifiers, Mapping):
        classifiers = list(classifiers)
        names = {cls: name for name, cls in METHODS.items()}
        found = [names.get(type(clf), type(clf).__name__) for clf in classifiers]
        if len(set(found)) < len(found):
            raise ValueError(f"the methods {found} are not distinct; give a dict of names to classifiers.")
        classifiers = dict(zip(found, classifiers, strict=True))
    if taken := {"identity", "sampling limit", LONGEST, POOLED} & set(classifiers):
        raise ValueError(f"{sorted(taken)} are rows that compare() adds itself; choose other names.")
    named = {name: clone(clf) for name, clf in classifiers.items()}
    if any(type(clf) is CrossEntropyClassifier for clf in named.values()):
        return named
    return {CROSS_ENTROPY: CrossEntropyClassifier(), **named}


def _fingerprint(data: ComparisonData) -> str:
    """Hash of the data; of a torch Dataset its length and first and last sample."""
    return joblib.hash([_content(part) for part in data])


def _content(part: Any) -> Any:
    if hasattr(part, "__array__") or part is None:
        return part
    if isinstance(part, list | tuple):
        return np.asarray(part)
    return len(part), describe(list(part[0])), describe(list(part[len(part) - 1]))


def _plain(classifier: NoisyLabelClassifier) -> dict[str, str]:
    """Parameters as text, without addresses in memory."""
    params = classifier.get_params(deep=False)
    return {"class": type(classifier).__name__, **{k: describe(v) for k, v in params.items() if k != "verbose"}}


def _parsed(line: str) -> dict[str, Any] | None:
    """One row of a file; None for a line that an interruption cut off."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        warnings.warn(f"left out a line that is no JSON: {line[:60]!r}", UserWarning, stacklevel=4)
        return None


def _as_key(row: dict[str, Any]) -> tuple:
    return row["method"], row["seed"], row["fingerprint"]


def _one_line(row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{row['method']}, seed {row['seed']}: failed"
    T = f", error of T {row['transition_error']:.3f}" if "transition_error" in row else ""
    return f"{row['method']}, seed {row['seed']}: accuracy {row['accuracy']:.3f}{T}, {row['seconds']:.1f} s"
