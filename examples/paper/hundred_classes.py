"""Why T hardly moves with a hundred classes: the published algorithm by network and learning rate of T, on CIFAR-100.

    python -m examples.paper.hundred_classes --data-root DIR --features-dir DIR2

Asymmetric noise of 0.4, 1,000 clean samples; a linear head and an MLP, with GLC's learning rate (0.009), and a narrow
convolutional network on images (12 epochs, 0.1). GLC with the same network has the initial T. A row of T has only the
samples of its class, so the gradient is proportional to the share of the class: 1/100 here, 1/10 in CIFAR-10. "least"
is the lowest error of T after an epoch; `fit` does not know it.
"""

from itertools import product
from typing import NamedTuple

from examples.benchmarks.shared import markdown, read_rows, run_all, spread
from examples.paper.data import Places
from examples.paper.run import RESULTS, data_of, fitted, load
from examples.paper.study import options, write_page
from examples.paper.tables import cells
from noisytransition import transition_error

OUT = RESULTS / "hundred_classes.jsonl"
SEEDS = range(3)
STARTS = {"new weights": False, "from the warm-up": True}
# scale of the tables, and settings of GLC's network
HEAD = ("features", {"lr": 0.009})
NETWORKS = {"linear": HEAD, "MLP": HEAD, "small CNN": ("deep", {"lr": 0.1, "max_epochs": 12})}


class Setting(NamedTuple):
    """A row of the page; GLC has no learning rate of T."""

    network: str
    weights: str
    rate: float | None = None


SETTINGS = [
    *(Setting("linear", *pair) for pair in product(STARTS, (10.0, 100.0, 1000.0, 10_000.0))),
    Setting("MLP", "GLC"),
    *(Setting("MLP", "new weights", rate) for rate in (100.0, 1000.0)),
    Setting("small CNN", "GLC"),
    *(Setting("small CNN", "new weights", rate) for rate in (100.0, 1000.0)),
]


def run(seed, setting, places):
    """Fit one setting; return accuracy and errors of T."""
    is_glc = setting.rate is None
    method = "GLC" if is_glc else "meta-transition"
    scale, own = NETWORKS[setting.network]
    (cell,) = (
        c
        for c in cells("cifar100", scale, [seed], [setting.network], methods=[method])
        if (c.noise, c.rate) == ("asymmetric", 0.4)
    )
    if not is_glc:
        own = own | {"transition_lr": setting.rate, "from_warm_up": STARTS[setting.weights]}
    data = load(*data_of(cell), places)
    clf = fitted(cell._replace(settings=cell.settings | own), data, places)
    errors = [transition_error(data.transition_matrix, T) for T in clf.transition_history_]
    accuracy = float(clf.score(data.X_test, data.y_test))
    measured = {"accuracy": accuracy, "start": errors[0], "least": min(errors), "end": errors[-1]}
    return {"seed": seed} | setting._asdict() | measured


def setting_of(row):
    """Return the setting of a result."""
    return Setting(row["network"], row["weights"], row["rate"])


def main():
    """Run the missing fits, and write the table."""
    args = options(__doc__)
    places = Places(args.data_root, args.features_dir)
    done = {(row["seed"], setting_of(row)) for row in read_rows(OUT)}
    todo = [cell for cell in product(SEEDS, SETTINGS) if cell not in done]
    run_all(run, [(*cell, places) for cell in todo], OUT, args.jobs)
    report(read_rows(OUT))


def report(rows):
    """Write the table."""
    lines = []
    for setting in SETTINGS:
        here = [row for row in rows if setting_of(row) == setting]
        values = [[row[name] for row in here] for name in ("accuracy", "start", "least", "end")]
        rate = "" if setting.rate is None else f", learning rate of T {setting.rate:g}"
        lines += [(f"{setting.network}, {setting.weights}{rate}", [*map(spread, values)])] if here else []
    heads = ["accuracy", "error of T: initial", "least", "final"]
    about = "Mean ± standard deviation over seeds. " + " ".join(__doc__.split("\n\n")[2].split())
    write_page(OUT, ["# A hundred classes", about, markdown(heads, lines)])


if __name__ == "__main__":
    from examples.paper.hundred_classes import main  # so that worker processes can import its functions

    main()
