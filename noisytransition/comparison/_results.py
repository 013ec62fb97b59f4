"""Results of fits, in memory and in a file of JSON lines."""

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
from sklearn.base import clone

from ..classifiers import NoisyLabelClassifier
from ..transition import transition_error

if TYPE_CHECKING:
    from ._data import ComparisonData

Row = dict[str, Any]
Load = Callable[[int], "ComparisonData"]


class Cell(NamedTuple):
    """One fit of a method on the data of a seed; `fingerprint` is the hash of its parameters and data."""

    method: str
    classifier: NoisyLabelClassifier
    seed: int
    fingerprint: str

    @property
    def key(self) -> Row:
        """First columns of the row of results, which identify it in a file."""
        return {"method": self.method, "seed": self.seed, "fingerprint": self.fingerprint}


class ResultStore:
    """Rows of results, one for each fit; with a path they are cached in a file.

    Parameters
    ----------
    path : Path or None
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        self.done = {_identity(row): row for row in map(_parsed, lines) if row is not None}

    def fill(self, cells: list[Cell], load: Load, n_jobs: int | None, verbose: int) -> list[Row]:
        """Return the rows of these cells; those that are missing or failed are run."""
        missing: Row = {"error": "not run yet"}
        todo = [cell for cell in cells if "error" in self.done.get(_identity(cell.key), missing)]
        jobs = joblib.Parallel(n_jobs, return_as="generator_unordered")(joblib.delayed(_run)(c, load) for c in todo)
        for i, row in enumerate(jobs, 1):
            self._add(row)
            if verbose:
                print(f"[{i}/{len(todo)}] {_one_line(row)}", flush=True)
        return [self.done[_identity(cell.key)] for cell in cells]

    def _add(self, row: Row) -> None:
        self.done[_identity(row)] = row
        if "error" in row:
            warnings.warn(f"{row['method']}, seed {row['seed']}: {row['error']}", UserWarning, stacklevel=4)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def _run(cell: Cell, load: Load) -> Row:
    data, clf = load(cell.seed), clone(cell.classifier).set_params(random_state=cell.seed)
    started = time.perf_counter()
    try:
        clf.fit(data.X, data.y, meta=(data.X_meta, data.y_meta))
        row = cell.key | {"seconds": round(time.perf_counter() - started, 3)}
        row["accuracy"] = float(clf.score(data.X_test, data.y_test))
        row["steps"] = sum(epoch["train_batch_count"] for history in clf.histories_.values() for epoch in history)
        if data.transition_matrix is not None and hasattr(clf, "transition_matrix_"):
            row["transition_error"] = transition_error(data.transition_matrix, clf.transition_matrix_)
    except Exception as error:  # the other fits go on, and the table has an empty row
        return cell.key | {"error": f"{type(error).__name__}: {error}"}
    return row


def _identity(row: Row) -> tuple[str, int, str]:
    return row["method"], row["seed"], row["fingerprint"]


def _parsed(line: str) -> Row | None:
    """One row of a file; None for an incomplete line, left by an interrupted call."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        warnings.warn(f"left out a line that is no JSON: {line[:60]!r}", UserWarning, stacklevel=4)
        return None


def _one_line(row: Row) -> str:
    if "error" in row:
        return f"{row['method']}, seed {row['seed']}: failed"
    T = f", error of T {row['transition_error']:.3f}" if "transition_error" in row else ""
    return f"{row['method']}, seed {row['seed']}: accuracy {row['accuracy']:.3f}{T}, {row['seconds']:.1f} s"
