"""Fit several methods on the data of several seeds, with the same net, and cross-entropy with equal budgets."""

from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from ..classifiers import METHODS, CrossEntropyClassifier, NoisyLabelClassifier
from ..classifiers._describe import describe, describe_params
from ..classifiers._run import Run
from ..nets import Rows, concatenate
from ..transition import in_class_order, sampling_limit, transition_error
from ._checks import check_classifiers, check_data, check_same, check_seeds
from ._data import ComparisonData
from ._results import Cell, ResultStore
from ._table import Comparison

CROSS_ENTROPY = "cross-entropy"
LONGEST = "cross-entropy, longest budget"
POOLED = "cross-entropy, noisy + clean"

# parts of the data that say where the rows are from: no fit reads them
NOT_FITTED = {"classes", "rows", "rows_meta"}


class PooledCrossEntropyClassifier(CrossEntropyClassifier):
    """Cross-entropy on noisy and clean rows together, all labels taken as true."""

    _needs_clean_data = True

    def _rows(self, run: Run) -> Rows:
        return concatenate(run.noisy, run.clean)


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
    """Fit several methods on the same data, with the same net and seeds, and collect the results in one table.

    Four reference rows are added to the methods: cross-entropy with at least as many gradient steps as any method took,
    cross-entropy on noisy and clean rows together and, where the true T is known, the error of the identity and the
    sampling limit. Steps of the short trainings on the clean rows by which EM and meta-transition choose the last
    classifier do not count. Accuracy is that of the fitted net: of its last epoch, unless the method itself (or a
    callback) selects another one. Test rows are never used for selection.

    Parameters
    ----------
    data : ComparisonData or callable
        Data for all seeds, or a function of the seed that returns the data of that seed.
    classifiers : dict of str to classifier or iterable of classifiers, optional
        Unfitted, with their own hyper-parameters; default: all methods. Cross-entropy is added if missing.
    seeds : iterable of int, default=range(3)
        Seeds of the data, if `data` is a function, and of the fits.
    n_jobs : int, optional
        Number of joblib processes. Fits that run at the same time slow each other down, which shows in ``seconds``.
    path : str or path, optional
        File of JSON lines to cache results in: every fit is written when it ends, and read when the call is repeated
        with the same data, parameters, code and versions.
    verbose : int, default=1
        0 is silent; 1 prints a line for each fit.
    **params
        Parameters to set in all classifiers: ``module``, ``batch_size``, ``max_epochs``, ...

    Returns
    -------
    Comparison
        ``.table``, ``.plot()``, ``.differences("fine-tuning")``, ``.rows``.

    Raises
    ------
    ValueError
        If `seeds` are no distinct integers, the data do not fit together or differ from call to call, a name is used
        twice or, with a `path`, a parameter is a function without a name that identifies it, or the file is not one of
        results or is damaged. A fit that fails gives a warning and an empty row; the next call tries it again.
    RuntimeError
        If another process is using the file.

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
    seeds = check_seeds(seeds)
    methods = {name: clf.set_params(**params) for name, clf in _named(classifiers).items()}
    base = next(name for name, clf in methods.items() if type(clf) is CrossEntropyClassifier)
    load = data if callable(data) else lambda seed: data
    with ResultStore(None if path is None else Path(path)) as store:
        references, prints = [], {}
        for seed in seeds:
            loaded = check_data(load(seed))
            if callable(data) and seed == seeds[0]:
                check_same(loaded, load(seed), seed)
            references += _references(loaded, seed)
            prints[seed] = _fingerprint(loaded) if path is not None else ""
        pooled = PooledCrossEntropyClassifier().set_params(**methods[base].get_params(deep=False))
        fitted = methods | {POOLED: pooled}
        cells = [_cell(name, clf, seed, prints[seed]) for seed in seeds for name, clf in fitted.items()]
        rows = store.fill(cells, load, n_jobs, verbose)
        longest = [_longest_budget(base, methods[base], rows, seed, prints[seed]) for seed in seeds]
        rows += store.fill([cell for cell in longest if cell is not None], load, n_jobs, verbose)
    return Comparison(references + rows, ["identity", "sampling limit", *methods, LONGEST, POOLED])


def _cell(method: str, classifier: NoisyLabelClassifier, seed: int, data: str) -> Cell:
    """One fit; the hash of its parameters and data is needed with a file only."""
    described = joblib.hash([describe_params(classifier), data]) if data else ""
    return Cell(method, classifier, seed, described)


def _references(data: ComparisonData, seed: int) -> list[dict[str, Any]]:
    """Rows of the identity and of the sampling limit."""
    if data.transition_matrix is None:
        return []
    labels = () if data.y_true is None else np.unique(np.asarray(data.y_true))
    T = np.asarray(in_class_order(data.transition_matrix, labels))
    rows = [{"method": "identity", "seed": seed, "transition_error": transition_error(T, np.eye(len(T)))}]
    if data.y_true is not None:
        counts = np.unique(np.asarray(data.y_true), return_counts=True)[1]
        if len(counts) < len(T):  # no limit if a class has no row
            return rows
        rows.append({"method": "sampling limit", "seed": seed, "transition_error": sampling_limit(T, counts)})
    return rows


def _longest_budget(
    base: str, cross_entropy: NoisyLabelClassifier, rows: list[dict], seed: int, data: str
) -> Cell | None:
    """Cross-entropy with at least as many gradient steps as any method took with this seed."""
    steps = {row["method"]: row["steps"] for row in rows if row["seed"] == seed and row.get("steps")}
    epochs = cross_entropy.max_epochs
    if base not in steps or not epochs:
        return None
    longest = -(-max(steps.values()) * epochs // steps[base])
    return _cell(LONGEST, clone(cross_entropy).set_params(max_epochs=longest), seed, data)


def _named(classifiers: Any) -> dict[str, NoisyLabelClassifier]:
    """Clones by name; cross-entropy is added if missing."""
    if classifiers is None:
        return {name: cls() for name, cls in METHODS.items()}
    classifiers = check_classifiers(classifiers)
    if not isinstance(classifiers, Mapping):
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
    """Hash of the data; a torch Dataset is described by its class and attributes, or its ``fit_name``."""
    parts = {name: part for name, part in data._asdict().items() if name not in NOT_FITTED}
    if data.y_meta_noisy is None:  # without it, hashes are those of files that were written before it was there
        del parts["y_meta_noisy"]
    return joblib.hash([_content(part, name) for name, part in parts.items()])


def _content(part: Any, name: str) -> Any:
    if hasattr(part, "__array__") or part is None:
        return part
    return np.asarray(part) if isinstance(part, list | tuple) else describe(part, name)
