"""The result of a comparison: table, paired differences, plot."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

if TYPE_CHECKING:
    from ..plotting._common import Panels

_COLUMNS = ("accuracy", "transition_error", "steps", "seconds")


class Comparison:
    """Fits of several methods on several seeds.

    Parameters
    ----------
    rows : list of dict
        One for each fit: method, seed, accuracy, transition_error (methods with a T), steps, seconds.
    methods : list of str
        Order of the methods in the table.

    Attributes
    ----------
    rows : list of dict
        The fits that were given.
    methods : list of str
        The methods that have a row.

    Examples
    --------
    >>> from noisytransition import Comparison
    >>> rows = []
    >>> for seed, (glc, em) in enumerate([(0.81, 0.86), (0.83, 0.85), (0.82, 0.86)]):
    ...     rows.append({"method": "GLC", "seed": seed, "accuracy": glc, "steps": 300, "seconds": 1.0})
    ...     rows.append({"method": "EM", "seed": seed, "accuracy": em, "steps": 900, "seconds": 3.0})
    >>> result = Comparison(rows, ["GLC", "EM"])  # `compare` makes it
    >>> result
                accuracy       error of T    steps  seconds
    GLC    0.820 ± 0.010                       300      1.0
    EM     0.857 ± 0.006                       900      3.0
    >>> for found in result.differences("GLC"):
    ...     print("{method}: {mean:+.3f} [{low:.3f}, {high:.3f}]".format(**found))
    EM: +0.037 [-0.001, 0.075]
    """

    def __init__(self, rows: list[dict[str, Any]], methods: list[str]) -> None:
        self.rows = rows
        present = {row["method"] for row in rows}
        self.methods = [name for name in dict.fromkeys(methods) if name in present]

    def values(self, method: str, column: str) -> dict[int, float]:
        """One column of a method.

        Parameters
        ----------
        method : str
            Name of one of `methods`.
        column : {"accuracy", "transition_error", "steps", "seconds"}
            The value to look up; "steps" are gradient steps.

        Returns
        -------
        dict of int to float
            By seed; seeds without a value are left out.
        """
        return {row["seed"]: row[column] for row in self.rows if row["method"] == method and column in row}

    def summary(self) -> list[dict[str, Any]]:
        """Mean and standard deviation over seeds.

        Returns
        -------
        list of dict
            One for each method, with ``accuracy``, ``accuracy_std``, ..., and ``n_seeds``; NaN where there is none.
        """
        return [self._summary_of(name) for name in self.methods]

    def _summary_of(self, method: str) -> dict[str, Any]:
        row: dict[str, Any] = {"method": method}
        for column in _COLUMNS:
            values = list(self.values(method, column).values())
            row[column] = float(np.mean(values)) if values else float("nan")
            if column in ("accuracy", "transition_error"):
                row[f"{column}_std"] = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
        counted = "accuracy" if self.values(method, "accuracy") else "transition_error"
        return row | {"n_seeds": len(self.values(method, counted))}

    @property
    def table(self) -> Any:
        """`summary` as a pandas DataFrame indexed by method; a list of dict if pandas is not installed."""
        try:
            import pandas as pd
        except ImportError:
            return self.summary()
        return pd.DataFrame(self.summary()).set_index("method")

    def differences(self, to: str, column: str = "accuracy", *, level: float = 0.95) -> list[dict[str, Any]]:
        """Mean paired differences to one method on the same seeds, with confidence intervals by Student's t.

        Parameters
        ----------
        to : str
            The method to compare with.
        column : {"accuracy", "transition_error", "steps", "seconds"}, default="accuracy"
            The value whose differences are taken.
        level : float, default=0.95
            Confidence level of the intervals.

        Returns
        -------
        list of dict
            ``method``, ``mean`` of its value minus that of `to`, ``low``, ``high``; methods that share
            fewer than two seeds with `to` are left out.

        Raises
        ------
        ValueError
            If `to` has no value in this column.
        """
        base = self.values(to, column)
        if not base:
            raise ValueError(f"{to!r} has no {column}; methods are {self.methods}.")
        found = []
        for method in self.methods:
            values = self.values(method, column)
            paired = np.array([values[seed] - base[seed] for seed in base if seed in values])
            if method != to and len(paired) > 1:
                low, high = _interval(paired, level)
                found.append({"method": method, "mean": float(paired.mean()), "low": low, "high": high})
        return found

    def markdown(self) -> str:
        """Return the table as Markdown, mean ± standard deviation.

        Returns
        -------
        str
        """
        lines = ["| method | accuracy | error of T | gradient steps | seconds |", "| --- | --- | --- | --- | --- |"]
        for row in self.summary():
            lines.append("| " + " | ".join([row["method"], *_numbers(row)]) + " |")
        return "\n".join(lines)

    def plot(self, *, ax: "Panels | None" = None) -> Any:
        """Draw accuracy and error of T of every method, a dot for each seed; see `plot_comparison`.

        Parameters
        ----------
        ax : matplotlib Axes or array of two, optional
            Where to draw, for accuracy and error of T; default: a new figure.

        Returns
        -------
        ndarray of Axes
        """
        from ..plotting import plot_comparison

        return plot_comparison(self, ax=ax)

    def __repr__(self) -> str:
        width = max(map(len, self.methods), default=6)
        lines = [f"{'':{width}}  {'accuracy':>15}  {'error of T':>15}  {'steps':>7}  {'seconds':>7}"]
        for row in self.summary():
            accuracy, error, steps, seconds = _numbers(row)
            lines.append(f"{row['method']:{width}}  {accuracy:>15}  {error:>15}  {steps:>7}  {seconds:>7}")
        return "\n".join(lines)


def _interval(differences: NDArray[np.float64], level: float) -> tuple[float, float]:
    """Return the confidence interval of the mean; of equal differences, such as numbers of steps, it has width 0."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Precision loss occurred", RuntimeWarning)
        low, high = ttest_1samp(differences, 0.0).confidence_interval(level)
    return float(low), float(high)


def _numbers(row: dict[str, Any]) -> list[str]:
    """One row of a summary as text: accuracy, error of T, steps, seconds."""
    spreads = [_spread(row, "accuracy"), _spread(row, "transition_error")]
    return [*spreads, _number(row["steps"], ".0f"), _number(row["seconds"], ".1f")]


def _number(value: float, spec: str) -> str:
    return "" if np.isnan(value) else format(value, spec)


def _spread(row: dict[str, Any], column: str) -> str:
    spread = _number(row[f"{column}_std"], ".3f")
    return _number(row[column], ".3f") + (f" ± {spread}" if spread else "")
