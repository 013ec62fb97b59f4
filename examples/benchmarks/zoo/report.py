"""Write the page of one half of the zoo: accuracy, T and error bars of every problem, and missed goals."""

from collections import defaultdict

import numpy as np
from shared import markdown, paired_difference, publish, read_rows, spread, versions, write_csv

from zoo.catalogue import of_half
from zoo.methods import CLASSIFIERS, LIMIT, MATRICES, OF_CLEAN, OF_NOISY, TOGETHER, WRAPPED

OURS = ["EM", "EM, pairs", "meta-transition", WRAPPED]
# baselines, and the same with GCE in place of GLC
PLAIN = ["clean rows only", "fine-tuning", "cross-entropy", "GLC", OF_CLEAN, OF_NOISY, TOGETHER]
WITH_GCE = [*PLAIN[:3], "GCE", *PLAIN[4:]]
OTHER_MATRICES = ["identity", "GLC", "counting", "cleanlab"]
WITH_MATRIX = [*OURS, "GLC", *MATRICES, LIMIT]
LEAST_COVERAGE = 0.85


# ---------------------------------------------------------------------------- results of a problem
class Results:
    """Results of one problem, by method and seed."""

    def __init__(self, problem, rows):
        self.problem, self.rows = problem, defaultdict(dict)
        for row in rows:
            self.rows[row["method"]][row["seed"]] = row

    def values(self, what, *methods):
        """Return an array (n_methods, n_seeds) of a measure, for the seeds that all these methods have."""
        found = [{s: r[what] for s, r in self.rows[m].items() if r.get(what) is not None} for m in methods]
        seeds = sorted(set.intersection(*(set(f) for f in found)))
        return np.array([[f[s] for s in seeds] for f in found])

    def best(self, what, methods, largest=True):
        """Return the name of the method with the best mean, among the methods with results."""
        means = {m: self.values(what, m).mean() for m in methods if self.values(what, m).size}
        return (max if largest else min)(means, key=means.get) if means else None

    def coverage(self, method):
        """Return the share of entries of T that are in their intervals, over all seeds."""
        covered, entries = self.values("covered", method), self.values("entries", method)
        return covered.sum() / entries.sum() if covered.size else None

    def warned(self, method):
        """Return the share of seeds with a warning about T."""
        rows = [row for row in self.rows[method].values() if "error" not in row]
        warned = [any(text.startswith("T may be wrong") for text in row["warnings"]) for row in rows]
        return np.mean(warned) if rows else None


def read(half, path):
    """Read the results of a half, by problem; problems without results are left out."""
    rows = defaultdict(list)
    for row in read_rows(path):
        rows[row["problem"]].append(row)
    return {p.name: Results(p, rows[p.name]) for p in of_half(half) if rows[p.name]}


# ---------------------------------------------------------------------------- differences
def against_best(results, ours, others):
    """Return the difference of accuracy to the best of the others, and whether its interval is below -1 point."""
    best = results.best("accuracy", others)
    values = results.values("accuracy", ours, best) if best else np.empty((2, 0))
    if not values.size:
        return "", False
    mean, low, high, _ = paired_difference(*values)
    worse = bool(high < -0.01)
    return f"{100 * mean:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}] ({best})" + " *" * worse, worse


def against_mean(results, ours, others):
    """Return the difference of accuracy to the mean of the others as text, and whether it is below 0."""
    values = results.values("accuracy", ours, *others)
    if not values.size:
        return "", False
    mean = (values[0] - values[1:].mean(axis=0)).mean()
    return f"{100 * mean:+.1f}" + " *" * bool(mean < 0), bool(mean < 0)


def error_mark(results, ours):
    """Return the error of T minus the best other error as text, and whether it is above 2 standard errors."""
    best = results.best("transition_error", OTHER_MATRICES, largest=False)
    values = results.values("transition_error", ours, best) if best else np.empty((2, 0))
    if not values.size:
        return "", False
    mean, _, _, error = paired_difference(*values)
    worse = bool(mean > 2 * error)
    return f"{mean:+.3f} ({best})" + " *" * worse, worse


# ---------------------------------------------------------------------------- tables
def shown(values):
    """Format the mean and standard deviation over seeds; return an empty text without values."""
    return spread(values.ravel()) if values.size else ""


def table(zoo, what, methods):
    """Return a table of the mean ± standard deviation of a measure."""
    return markdown(methods, [(name, [shown(r.values(what, m)) for m in methods]) for name, r in zoo.items()])


def marked(zoo, methods, cell):
    """Return a table of cells with marks, and the number of marks of each method."""
    lines, marks = [], dict.fromkeys(methods, 0)
    for name, results in zoo.items():
        cells = [cell(results, method) for method in methods]
        for method, (_, mark) in zip(methods, cells, strict=True):
            marks[method] += mark
        lines.append((name, [text for text, _ in cells]))
    return markdown(methods, lines), marks


def beside_cross_entropy(results, method):
    """Return the difference of accuracy to cross-entropy in points; differences below -5 are marked."""
    values = results.values("accuracy", method, "cross-entropy")
    if not values.size:
        return "", False
    mean = paired_difference(*values)[0]
    return f"{100 * mean:+.1f}" + " *" * bool(mean < -0.05), bool(mean < -0.05)


def coverage_table(zoo):
    """Return a table of the coverage of 90 % intervals and of the share of seeds with a warning about T."""
    methods = [m for m in OURS if any(r.coverage(m) is not None for r in zoo.values())]
    heads = [f"{m}: {what}" for m in methods for what in ("covered", "warned")]
    lines = []
    for name, results in zoo.items():
        pairs = ((results.coverage(m), results.warned(m)) for m in methods)
        lines.append((name, ["" if v is None else f"{v:.2f}" for pair in pairs for v in pair]))
    return markdown(heads, lines), methods


def of_warnings(zoo, method):
    """Count warnings about T: where intervals fail, where they are good, and where the assumptions hold."""
    groups = {
        "whose intervals fail": lambda r: r.coverage(method) < LEAST_COVERAGE,
        "whose intervals are good": lambda r: r.coverage(method) >= LEAST_COVERAGE,
        "with one T, clean samples of all classes and enough epochs": lambda r: r.problem.meets_assumptions,
    }
    results = [r for r in zoo.values() if r.coverage(method) is not None]
    said = []
    for kind, belongs in groups.items():
        if shares := [r.warned(method) for r in results if belongs(r)]:
            most = np.sum(np.array(shares) > 0.5)
            said.append(f"{most} of the {len(shares)} problems {kind} ({np.mean(shares):.0%} of their fits)")
    return f"* Problems where {method} warns about T in most seeds: {', '.join(said)}."


# ---------------------------------------------------------------------------- by kind of noise
def by_kind(zoo):
    """Return the means over the problems of each kind of noise: column headings, and lines of a kind and its cells."""
    heads = ["problems", "accuracy: EM", "EM, pairs", "TransitionClassifierCV, pairs"]
    heads += ["T: EM", "EM, pairs", "best of others", "covered: EM", "EM, pairs"]
    lines = []
    for kind in ("class-conditional", "feature-dependent", "rule or model", "human"):
        if results := [r for r in zoo.values() if r.problem.kind == kind]:
            lines.append((kind, _means(results)))
    return heads, lines


def _means(results):
    """Return the cells of one line of `by_kind`."""
    gains = np.array([[_gain(r, method) for method in ("EM", "EM, pairs", WRAPPED)] for r in results])
    errors = np.array([[_error(r, method) for method in ("EM", "EM, pairs")] for r in results])
    others = [r.values("transition_error", r.best("transition_error", OTHER_MATRICES, largest=False)) for r in results]
    shares = [[r.coverage("EM"), r.coverage("EM, pairs")] for r in results]
    return [
        str(len(results)),
        *(f"{100 * gain:+.1f}" if np.isfinite(gain) else "" for gain in np.mean(gains, axis=0)),
        *(f"{error:.3f}" for error in np.mean(errors, axis=0)),
        f"{np.mean([error.mean() for error in others]):.3f}",
        *(f"{share:.2f}" for share in np.mean(shares, axis=0)),
    ]


def _gain(results, method):
    """Return the difference of accuracy to the best of `PLAIN`."""
    values = results.values("accuracy", method, results.best("accuracy", PLAIN))
    return (values[0] - values[1]).mean()


def _error(results, method):
    return results.values("transition_error", method).mean()


# ---------------------------------------------------------------------------- the page
def accuracies(zoo):
    """Return lines of the summary, and tables of differences of accuracy."""
    summary, tables = [], []
    for others in (PLAIN, WITH_GCE):
        names = ", ".join(others)
        best, below_best = marked(zoo, OURS, lambda r, m, others=others: against_best(r, m, others))
        mean, below_mean = marked(zoo, OURS, lambda r, m, others=others: against_mean(r, m, others))
        summary += [
            f"* Accuracy more than one point below the best of {names}: {counted(below_best)}",
            f"* Accuracy below the mean of {names}: {counted(below_mean)}",
        ]
        tables += [
            f"## Difference of accuracy to the best of {names}\n\nIn points, with paired 95 % intervals. The best has "
            f"the highest mean over seeds. *: the interval is below -1.\n\n{best}",
            f"## Difference of accuracy to the mean of {names}\n\nIn points. *: below 0.\n\n{mean}",
        ]
    beside, below = marked(zoo, [m for m in CLASSIFIERS if m != "cross-entropy"], beside_cross_entropy)
    summary.append(f"* Accuracy more than 5 points below cross-entropy: {counted(below)}")
    return summary, [*tables, f"## Difference of accuracy to cross-entropy\n\nIn points. *: below -5.\n\n{beside}"]


def matrices(zoo):
    """Return lines of the summary, and tables of T and its intervals."""
    names = ", ".join(OTHER_MATRICES)
    errors, above = marked(zoo, OURS, error_mark)
    covered, with_intervals = coverage_table(zoo)
    summary = [f"* Error of T more than 2 standard errors above the best of {names}: {counted(above)}"]
    for method in with_intervals:
        failing = sum(r.coverage(method) is not None and r.coverage(method) < LEAST_COVERAGE for r in zoo.values())
        summary.append(f"* 90 % intervals of {method} with a coverage below {LEAST_COVERAGE}: {failing}.")
    return summary + [of_warnings(zoo, method) for method in with_intervals], [
        "## Error of T\n\n" + table(zoo, "transition_error", WITH_MATRIX),
        f"## Difference of the error of T to the best of {names}\n\n*: more than 2 paired standard errors above.\n\n"
        + errors,
        "## 90 % intervals\n\nShare of covered entries of T, and share of fits with a warning about T, over seeds.\n\n"
        + covered,
    ]


def counted(marks):
    return ", ".join(f"{name} {n}" for name, n in marks.items()) + "."


def failures(zoo):
    """List the methods that raised an error, with their messages."""
    lines = [
        f"* {name}, {method}, seed {seed}: {row['error']}"
        for name, results in zoo.items()
        for method, of_seeds in results.rows.items()
        for seed, row in of_seeds.items()
        if "error" in row
    ]
    return "## Errors\n\n" + "\n".join(lines or ["none"])


def report(half, path):
    """Write the page next to the file of results, and print it."""
    zoo = read(half, path)
    if not zoo:
        print(f"{path} has no results of the {half} half.")
        return
    seeds = [len(rows) for results in zoo.values() for rows in results.rows.values()]
    n_seeds = " to ".join(map(str, sorted({min(seeds), max(seeds)})))
    (of_accuracy, differences), (of_matrices, errors) = accuracies(zoo), matrices(zoo)
    kinds = by_kind(zoo)
    write_csv(path.resolve().with_suffix(".csv"), *kinds, corner="noise")
    absent = [p.name for p in of_half(half) if p.name not in zoo]
    head = [
        f"# The zoo: {half} half",
        f"{len(zoo)} problems, {n_seeds} seeds, mean ± standard deviation. {versions()}. See `zoo/run.py`."
        + (f" Not run: {'; '.join(absent)}." if absent else ""),
        f"Number of problems with a mark, of {len(zoo)}:\n\n" + "\n".join([*of_accuracy, *of_matrices]),
        "## By kind of noise\n\nMeans over problems. Accuracy: difference in points to the best of "
        f"{', '.join(PLAIN)}. T: error; the others are {', '.join(OTHER_MATRICES)}. The best is "
        "selected afterwards, by its mean over seeds. Covered: share of entries of T in their 90 % intervals.\n\n"
        + markdown(*kinds),
        "## Test accuracy\n\n" + table(zoo, "accuracy", list(CLASSIFIERS)),
        "## Balanced accuracy\n\n" + table(zoo, "balanced_accuracy", list(CLASSIFIERS)),
    ]
    seconds = "## CPU seconds\n\n" + table(zoo, "seconds", list(CLASSIFIERS))
    publish(path.resolve().with_suffix(".md"), [*head, *differences, *errors, seconds, failures(zoo)])
