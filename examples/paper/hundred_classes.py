"""Why T hardly moves with a hundred classes: the published algorithm by learning rate of T, on features of CIFAR-100.

    python -m examples.paper.hundred_classes --data-root DIR --features-dir DIR2

Asymmetric noise of 0.4, 1,000 clean samples, and the network's learning rate of GLC (0.009), for all rows. A row of T
has only the samples of its class, so the gradient is proportional to the share of the class: 1/100 here, 1/10 in
CIFAR-10. "least" is the lowest error of T after an epoch; `fit` does not know it.
"""

from itertools import product

from examples.benchmarks.shared import markdown, read_rows, run_all, spread
from examples.paper.data import Places
from examples.paper.run import RESULTS, data_of, fitted, load
from examples.paper.study import options, write_page
from examples.paper.tables import cells
from noisytransition import transition_error

OUT = RESULTS / "hundred_classes.jsonl"
SEEDS, RATES = range(3), (10.0, 100.0, 1000.0, 10_000.0)
STARTS = {"new weights": False, "from the warm-up": True}


def run(seed, start, rate, places):
    """Fit one setting; return accuracy and errors of T."""
    (cell,) = (
        c
        for c in cells("cifar100", "features", [seed], ["linear"], methods=["meta-transition"])
        if (c.noise, c.rate) == ("asymmetric", 0.4)
    )
    own = {"lr": 0.009, "transition_lr": rate, "from_warm_up": STARTS[start]}
    data = load(*data_of(cell), places)
    clf = fitted(cell._replace(settings=cell.settings | own), data, places)
    errors = [transition_error(data.transition_matrix, T) for T in clf.transition_history_]
    accuracy = float(clf.score(data.X_test, data.y_test))
    measured = {"accuracy": accuracy, "start": errors[0], "least": min(errors), "end": errors[-1]}
    return {"seed": seed, "weights": start, "rate": rate} | measured


def main():
    """Run the missing fits, and write the table."""
    args = options(__doc__)
    places = Places(args.data_root, args.features_dir)
    done = {(row["seed"], row["weights"], row["rate"]) for row in read_rows(OUT)}
    todo = [cell for cell in product(SEEDS, STARTS, RATES) if cell not in done]
    run_all(run, [(*cell, places) for cell in todo], OUT, args.jobs)
    report(read_rows(OUT))


def report(rows):
    """Write the table."""
    lines = []
    for start, rate in product(STARTS, RATES):
        here = [row for row in rows if (row["weights"], row["rate"]) == (start, rate)]
        values = [[row[name] for row in here] for name in ("accuracy", "start", "least", "end")]
        lines += [(f"{start}, learning rate of T {rate:g}", [*map(spread, values)])] if here else []
    heads = ["accuracy", "error of T: initial", "least", "final"]
    about = "Mean ± standard deviation over seeds. " + " ".join(__doc__.split("\n\n")[2].split())
    write_page(OUT, ["# A hundred classes", about, markdown(heads, lines)])


if __name__ == "__main__":
    from examples.paper.hundred_classes import main  # so that worker processes can import its functions

    main()
