"""Does the meta-gradient add to the likelihood? T from both starts, moved by each and by both.

    python examples/benchmarks/meta_and_em.py             # every result is written when it comes
    python examples/benchmarks/meta_and_em.py --report

Cells: digits (100 clean rows), overlapping Gaussians (2,000 rows, 100 clean), and the same Gaussians with noise that
depends on the row: labels near a boundary are flipped to the next class more often, so that no single T holds and the
likelihood is misspecified; there the true T is the mean one. 5 seeds, net and optimiser as in `em_transition.py`.

* gold, EM: the two estimates that are starts.
* "gold + meta", "EM + meta": the paper's meta-gradient from these starts, at two step sizes.
* "EM and meta": one training in which counts and meta-gradient move T together (the meta-gradient moves an offset
  of the counts' logarithms), from gold.
* "EM alone": the same training without the meta-gradient.
"""

import argparse
import os
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import joblib
import numpy as np
import torch
from em_transition import NET, SMALL
from problems import digits, gaussians, gaussians_posterior
from shared import RESULTS, add_row, markdown, publish, read_rows, spread, versions

from noisytransition import EMTransitionClassifier, GLCClassifier, MetaTransitionClassifier, transition_error
from noisytransition.classifiers import LookAheadClassifier, TransitionClassifier
from noisytransition.losses import EMLoss
from noisytransition.transition import count_transition_matrix

ROWS = RESULTS / "meta_and_em.jsonl"
SEEDS = range(5)
STEPS = (0.3, 3.0)


class OffsetEMLoss(EMLoss):
    """`EMLoss` with ``T = row-softmax(log C + offset)``; the meta-gradient moves the offset."""

    def __init__(self, transition_matrix, *, rate, hold=0):
        super().__init__(transition_matrix, rate=rate, hold=hold)
        self.register_buffer("offset", torch.zeros_like(self.counts))

    def meta_parameters(self):
        """The offset; its gradient is that of the logits of T."""
        return [self.offset]

    def _count(self, *args):
        super()._count(*args)
        if self.n_batches > self.hold:
            self.transition_logits += self.offset


class BothClassifier(TransitionClassifier, LookAheadClassifier):
    """Counts and meta-gradient in one training."""

    def __init__(self, module=None, *, transition_lr=0.3, meta_weight=0.25, **net_params):
        super().__init__(module, **net_params)
        self.transition_lr = transition_lr
        self.meta_weight = meta_weight

    def _fit(self, noisy, meta):
        steps = self.max_epochs * len(noisy) / self.batch_size
        self.net_ = self._train_ahead(
            "both",
            noisy,
            meta,
            step_lr=self.transition_lr,
            step_optimizer=torch.optim.SGD,
            every=1,
            criterion=OffsetEMLoss,
            criterion__transition_matrix=self.transition_init,
            criterion__rate=min(4 * self.batch_size / len(noisy), 0.25),
            criterion__hold=int(0.1 * steps),
            meta_weight=self.meta_weight,
        )
        self._keep_transition([np.asarray(self.transition_init)], self.net_.criterion_.transition_matrix)


def row_dependent(seed):
    """Gaussians whose label becomes the next class more often where the class is less sure."""
    data = gaussians("symmetric-0", seed, n=2000, n_clean=100)
    sure = gaussians_posterior(seed, data.X)[np.arange(2000), data.y_true]
    flipped = np.random.default_rng(seed).random(2000) < 0.2 + 0.6 * (1 - sure)
    y = np.where(flipped, (data.y_true + 1) % 5, data.y_true)
    return data._replace(y=y, transition_matrix=count_transition_matrix(data.y_true, y))


CELLS = {f"digits, {noise}": partial(digits, noise) for noise in ("asymmetric-0.4", "pair-0.45", "symmetric-0.6")}
CELLS |= {
    f"Gaussians, {noise}": partial(gaussians, noise, n=2000, n_clean=100) for noise in ("pair-0.45", "symmetric-0.6")
}
CELLS["Gaussians, row-dependent"] = row_dependent


def run(cell, seed):
    """All variants on one data set."""
    data, params = CELLS[cell](seed), NET | SMALL | {"random_state": seed}
    meta, T = (data.X_meta, data.y_meta), data.transition_matrix
    gold = GLCClassifier(**params).fit(data.X, data.y, meta=meta)
    em = EMTransitionClassifier(transition_init=gold.transition_matrix_, **params).fit(data.X, data.y, meta=meta)
    fitted = {"gold": gold, "EM": em}
    for step in STEPS:
        for name, start in (("gold", gold), ("EM", em)):
            fitted[f"{name} + meta {step:g}"] = MetaTransitionClassifier(
                transition_init=start.transition_matrix_,
                transition_lr=step,
                validation_fraction=0,
                meta_weight=0.25,
                **params,
            )
    for step in (0.0, *STEPS):
        name = f"EM and meta {step:g}" if step else "EM alone"
        fitted[name] = BothClassifier(transition_init=gold.transition_matrix_, transition_lr=step, **params)
    for clf in list(fitted.values())[2:]:
        clf.fit(data.X, data.y, meta=meta)
    return {
        "cell": cell,
        "seed": seed,
        "error": {name: transition_error(T, clf.transition_matrix_) for name, clf in fitted.items()},
        "accuracy": {name: float(clf.score(data.X_test, data.y_test)) for name, clf in fitted.items()},
    }


def fill():
    """Run what is missing, and write each row when it comes."""
    done = {(row["cell"], row["seed"]) for row in read_rows(ROWS)}
    todo = [(cell, seed) for seed in SEEDS for cell in CELLS if (cell, seed) not in done]
    for row in joblib.Parallel(2, return_as="generator_unordered")(joblib.delayed(run)(*job) for job in todo):
        add_row(ROWS, row)
        print(row["cell"], row["seed"], {name: round(v, 3) for name, v in row["error"].items()}, flush=True)


def table_of(what):
    """Markdown: a line for each cell, mean ± standard deviation."""
    rows = read_rows(ROWS)
    names = list(rows[0][what])
    of_cell = {cell: [row[what] for row in rows if row["cell"] == cell] for cell in CELLS}
    lines = [(cell, [spread([row[name] for row in found]) for name in names]) for cell, found in of_cell.items()]
    return markdown(names, lines)


def report():
    """Write and print the page."""
    n = len({row["seed"] for row in read_rows(ROWS)})
    parts = [
        "# Meta-gradient and likelihood",
        f"Mean ± standard deviation over {n} seeds. {versions()}, 2 processes. See `meta_and_em.py`.",
        "## Error of T\n\n" + table_of("error"),
        "## Test accuracy\n\n" + table_of("accuracy"),
    ]
    publish("meta_and_em.md", parts)


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="only write the table of what is there")
    if not parser.parse_args().report:
        fill()
    report()


if __name__ == "__main__":
    main()
