"""Results of fits, in memory and in a file of JSON lines."""

import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
from filelock import FileLock
from sklearn.base import clone

from ..classifiers import NoisyLabelClassifier
from ..storage import checksum, locked, unlock
from ..transition import in_class_order, transition_error

if TYPE_CHECKING:
    from ._data import ComparisonData

# first line of a file
_FORMAT, _VERSION = "noisytransition results", 2
HEADER = json.dumps({"format": _FORMAT, "version": _VERSION}).encode() + b"\n"

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
    """Rows of results, one for each fit; with a path they are cached in a file, which is locked until `close`.

    Parameters
    ----------
    path : Path or None

    Raises
    ------
    ValueError
        If the file is not one of results, is damaged, or cannot be written to; it is left as it is.
    RuntimeError
        If another process is using it.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.done: dict[tuple[str, int, str], Row] = {}
        self._lock: FileLock | None = None
        if path is None:
            return
        read_results(path)  # before a lock is made beside a file of the user's
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = locked(path.with_name(path.name + ".lock"), f"the file of results {str(path)!r}")
        except OSError as error:
            raise ValueError(f"{str(path)!r} cannot be written to: {error}. Use another path.") from error
        rows, self._size = read_results(path)
        if path.exists() and self._size < path.stat().st_size:
            warnings.warn(f"left out the unfinished last line of {str(path)!r}.", UserWarning, stacklevel=3)
        self.done = {_identity(row): row for row in rows}

    def __enter__(self) -> "ResultStore":
        return self

    def __exit__(self, *args: object) -> None:
        """Let other processes use the file."""
        if self._lock is not None:
            unlock(self._lock)

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
            self._append(self.path, (b"" if self._size else HEADER) + result_line(row))

    def _append(self, path: Path, lines: bytes) -> None:
        """Write after the last whole line; if that fails, the file is as it was."""
        with path.open("r+b" if path.exists() else "xb") as file:
            try:
                file.truncate(self._size)
                file.seek(self._size)
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                os.ftruncate(file.fileno(), self._size)
                raise
        self._size += len(lines)


def _run(cell: Cell, load: Load) -> Row:
    data, clf = load(cell.seed), clone(cell.classifier).set_params(random_state=cell.seed)
    started = time.perf_counter()
    try:
        clf.fit(data.X, data.y, meta=(data.X_meta, data.y_meta), y_meta_noisy=data.y_meta_noisy)
        row = cell.key | {"seconds": round(time.perf_counter() - started, 3)}
        row["accuracy"] = float(clf.score(data.X_test, data.y_test))
        row["steps"] = sum(epoch["train_batch_count"] for history in clf.histories_.values() for epoch in history)
        if data.transition_matrix is not None and hasattr(clf, "transition_matrix_"):
            T = in_class_order(data.transition_matrix, clf.classes_)
            row["transition_error"] = transition_error(T, clf.transition_matrix_)
    except Exception as error:  # the other fits go on, and the table has an empty row
        return cell.key | {"error": f"{type(error).__name__}: {error}"}
    return row


def _identity(row: Row) -> tuple[str, int, str]:
    return row["method"], row["seed"], row["fingerprint"]


# ---------------------------------------------------------------------------- the file
def result_line(row: Row) -> bytes:
    """Line of a row, with its checksum."""
    return json.dumps(row | {"checksum": _checksum(row)}).encode() + b"\n"


def _checksum(row: Row) -> str:
    return checksum(json.dumps(row, sort_keys=True).encode())[:16]


def read_results(path: Path) -> tuple[list[Row], int]:
    """Rows of a file of results, and the size of the file without an unfinished last line."""
    content = path.read_bytes() if path.exists() else b""
    if HEADER.startswith(content):  # empty, or cut off in its first line
        return [], 0
    head, *lines = content.split(b"\n")
    if (version := _version(head)) is None:
        raise ValueError(f"{str(path)!r} is not a file of results of compare(). Use another path; it was not changed.")
    if version != _VERSION:
        raise ValueError(
            f"{str(path)!r} has version {version} of the format, and this version of noisytransition reads version "
            f"{_VERSION}. Delete the file, or use another path."
        )
    unfinished = lines.pop()  # empty after a whole line
    return [_row(line, i, path) for i, line in enumerate(lines, 2)], len(content) - len(unfinished)


def _version(head: bytes) -> Any:
    """Version in a first line; None if it is not that of a file of results."""
    try:
        header = json.loads(head)
        return header["version"] if header["format"] == _FORMAT else None
    except (ValueError, TypeError, KeyError):
        return None


def _row(line: bytes, number: int, path: Path) -> Row:
    try:
        row = json.loads(line)
        if row.pop("checksum") == _checksum(row) and {"method", "seed", "fingerprint"} <= row.keys():
            return row
    except (ValueError, TypeError, KeyError, AttributeError):
        pass
    raise ValueError(
        f"line {number} of {str(path)!r} is damaged. Delete the line, and its fit is run again; or use another path."
    )


def _one_line(row: Row) -> str:
    if "error" in row:
        return f"{row['method']}, seed {row['seed']}: failed"
    T = f", error of T {row['transition_error']:.3f}" if "transition_error" in row else ""
    return f"{row['method']}, seed {row['seed']}: accuracy {row['accuracy']:.3f}{T}, {row['seconds']:.1f} s"
