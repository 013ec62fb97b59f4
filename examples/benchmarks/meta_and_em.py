"""Does the meta-gradient improve on maximum likelihood? T from two starts, moved by either or by both.

    python examples/benchmarks/meta_and_em.py             # every result is written when it ends
    python examples/benchmarks/meta_and_em.py --report

Cells: digits (100 clean rows), overlapping Gaussians (2,000 rows, 100 clean), and the same Gaussians with noise that
depends on the row: labels near a class boundary are flipped to the next class more often, so that no single T holds and
the likelihood is misspecified; there the true T is the mean over the rows. 5 seeds, network and optimiser as in
`em_transition.py`.

* gold, EM: the two estimates of T, each also used as a start.
* "gold + meta", "EM + meta": the paper's meta-gradient from these starts, at two step sizes.
* "EM and meta": one training from gold in which posterior counts and meta-gradient both move T (the meta-gradient
  moves an offset that is added to the logarithms of the counts).
* "EM alone": the same training with a step size of 0 for the meta-gradient.
"""

import argparse
import os
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from em_transition import NET, SMALL
from problems import digits, gaussians, gaussians_posterior
from shared import FIRST_EM, NEW_NET, PLAIN_EM, RESULTS, markdown, publish, read_rows, run_all, spread, versions

from noisytransition import EMTransitionClassifier, GLCClassifier, MetaTransitionClassifier, transition_error
from noisytransition.classifiers import TransitionClassifier
from noisytransition.losses import ForwardLoss
from noisytransition.nets import CleanBatches
from noisytransition.transition import count_transition_matrix
from noisytransition.updates import MetaGradient, PosteriorCounts

ROWS = RESULTS / "meta_and_em.jsonl"
SEEDS = range(5)
STEPS = (0.3, 3.0)


class CountsAndMetaGradient(MetaGradient):
    """``T = row-softmax(log C + offset)``: C by the counts of `PosteriorCounts`, the offset by the meta-gradient."""

    def __init__(self, clean, lr, *, rate, burn_in):
        super().__init__(clean, lr)
        self.rate = rate
        self.burn_in = burn_in

    def on_train_begin(self, net, **kwargs):
        """Start the counts, and the offset at 0."""
        super().on_train_begin(net, **kwargs)
        self.counting_ = PosteriorCounts(self.rate, self.burn_in)
        self.counting_.on_train_begin(net)
        self.offset_ = torch.nn.Parameter(torch.zeros_like(net.criterion_.transition_logits))
        self.optimizer_ = self.optimizer([self.offset_], lr=self.lr)

    def _step(self, loss, gradients):
        """Step the offset; its gradient is that of the logits of T."""
        (self.offset_.grad,) = gradients
        self.optimizer_.step()

    @torch.no_grad()
    def after_step(self, net, batch, logits):
        """Count the batch, then add the offset."""
        super().after_step(net, batch, logits)
        self.counting_.after_step(net, batch, logits)
        if self.counting_.n_batches_ > self.burn_in:
            net.criterion_.set_counts(self.counting_.counts_, self.counting_.sums_)
            net.criterion_.transition_logits += self.offset_


class BothClassifier(TransitionClassifier):
    """Posterior counts and meta-gradient in one training."""

    _needs_clean_data = True

    def __init__(self, module=None, *, transition_lr=0.3, meta_weight=0.25, **net_params):
        super().__init__(module, **net_params)
        self.transition_lr = transition_lr
        self.meta_weight = meta_weight

    def _fit(self, run):
        update = CountsAndMetaGradient(
            CleanBatches(run.clean, self.batch_size),
            self.transition_lr,
            rate=min(4 * self.batch_size / len(run.noisy), 0.25),
            burn_in=int(0.1 * self.max_epochs * len(run.noisy) / self.batch_size),
        )
        self.net_ = run.train(
            "both",
            loss=ForwardLoss(self._start(run)),
            update=update,
            clean_batches=update.clean,
            clean_weight=self.meta_weight,
        )
        self._keep_transition(run)


def row_dependent(seed):
    """Gaussians whose label is flipped to the next class more often where the class is less certain."""
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
    gold = GLCClassifier(**NEW_NET, **params).fit(data.X, data.y, meta=meta)
    em = EMTransitionClassifier(transition_init=gold.transition_matrix_, **PLAIN_EM, **params).fit(
        data.X, data.y, meta=meta
    )
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
    """Run what is missing, and write each row when it ends."""
    done = {(row["cell"], row["seed"]) for row in read_rows(ROWS)}
    todo = [(cell, seed) for seed in SEEDS for cell in CELLS if (cell, seed) not in done]
    run_all(run, todo, ROWS)


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
        f"Mean ± standard deviation over {n} seeds. {versions()}, 2 processes. {FIRST_EM} See `meta_and_em.py`.",
        "## Error of T\n\n" + table_of("error"),
        "## Test accuracy\n\n" + table_of("accuracy"),
    ]
    publish("meta_and_em.md", parts)


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="only write the table of the results so far")
    if not parser.parse_args().report:
        fill()
    report()


if __name__ == "__main__":
    main()
