"""The last step of a method: its network, another one, either fine-tuned on the clean rows, or one of these alone.

Where the assumptions of a method do not hold (noise that one T does not explain, a network trained too little), its
network can be worse than what the clean rows alone give. Clean rows that were held out decide.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..nets import NoisyLabelNet, Rows
from ..nets._callbacks import HeldOutPosteriors
from ..transition._temperature import tempered_log_loss
from ._checks import without_bound_callbacks
from ._folds import N_FOLDS, fold_of_rows
from ._run import Run

#: epochs on the clean rows that are compared; the most are the default of `FineTuningClassifier`
_EPOCHS = (1, 2, 5, 10, 20, 35, 50)
#: with fewer clean rows there is no choice: a network would be judged by one or two of them. Not measured
LEAST_CLEAN_ROWS = 6

#: networks as they are: the method's own, the warm-up by cross-entropy, and one trained through T from there
OWN, WARM_UP, CONTINUED = "own", "warm-up", "continued warm-up"
#: a new network, of the clean rows alone
CLEAN_ROWS = "clean rows"


class Final(NamedTuple):
    """A candidate: a network, or what it becomes after so many epochs on the clean rows alone."""

    start: str
    epochs: int = 0

    def __str__(self) -> str:
        return f"{_fine_tuned(self.start)}, {self.epochs} epoch{'s' * (self.epochs > 1)}" if self.epochs else self.start


class Step(NamedTuple):
    """Candidates from networks of these names, and the paired standard errors by which the best one must be better."""

    starts: Sequence[str]
    margin: float = 0.0


#: networks that candidates start from, by these names
Starts = dict[str, NoisyLabelNet]


def candidates_of(starts: Sequence[str]) -> list[Final]:
    """All candidates from networks of these names: as they are, and trained by clean rows; `CLEAN_ROWS` is added."""
    return [*map(Final, starts), *(Final(name, n) for name in (*starts, CLEAN_ROWS) for n in _EPOCHS)]


def shows_all_classes(run: Run) -> bool:
    """Whether there are enough clean rows to train on them alone: a network would unlearn a class that has none."""
    return len(run.clean) >= LEAST_CLEAN_ROWS and len(np.unique(run.clean.label)) == len(run.classes)


def fine_tuned(run: Run, stage: str, net: NoisyLabelNet, clean: Rows) -> NoisyLabelNet:
    """Go on with clean rows for the most epochs that are compared."""
    return _train_aside(run, [_Aside(f"{stage}_fine_tuned", clean, net)])[0]


def cross_validated_posteriors(run: Run, starts: Starts) -> tuple[list[NDArray], NDArray[np.intp]]:
    """Posteriors of held-out clean rows by all candidates from networks that were trained without clean rows.

    Returns
    -------
    posteriors : list of ndarray of shape (n_meta, n_classes)
        One for each of `candidates_of` these starts.
    rows : ndarray of shape (n_meta,)
        Which rows these are.
    """
    fold = fold_of_rows(run.clean.label, N_FOLDS, np.random.default_rng(run.seed))
    parts = [np.flatnonzero(fold == k) for k in range(N_FOLDS)]
    rows, trainings, watched = np.concatenate(parts), [], []
    every: dict[str, NoisyLabelNet | None] = {**starts, CLEAN_ROWS: None}
    for k, part in enumerate(parts):
        inside, held_out = run.clean.take(np.flatnonzero(fold != k)), run.clean.take(part)
        for name, net in every.items():
            watched.append(HeldOutPosteriors([held_out], _EPOCHS))
            trainings.append(_Aside(f"clean_fold_{k}_{_stage(name)}", inside, net, watched[-1]))
    _train_aside(run, trainings)
    after = [[w.after(n)[0] for w in watched[i :: len(every)]] for i in range(len(every)) for n in _EPOCHS]
    as_they_are = [net.predict_proba(run.clean.take(rows)) for net in starts.values()]
    return [*as_they_are, *map(np.concatenate, after)], rows


class _Aside(NamedTuple):
    """A training on clean rows for the most epochs: stage, rows, network to start from, and what is watched."""

    stage: str
    clean: Rows
    start: NoisyLabelNet | None
    watched: HeldOutPosteriors | None = None


def _train_aside(run: Run, trainings: Sequence[_Aside]) -> list[NoisyLabelNet]:
    """Train without output or history: the classifier is another network."""
    how = [_how(t.start, max(_EPOCHS), t.watched) for t in trainings]
    with run.changed(_params(run, min(len(t.clean) for t in trainings)) | {"verbose": 0}):
        nets = [run.train(t.stage, t.clean, **h) for t, h in zip(trainings, how, strict=True)]
    for training in trainings:
        del run.histories[training.stage]
    return nets


class FinalMixin:
    """Method that chooses the last classifier."""

    def _chooses(self: Any, run: Run) -> bool:
        """Whether to choose."""
        return self.select_classifier and shows_all_classes(run)

    def _choose_final(self: Any, run: Run, starts: Starts, steps: Sequence[Step]) -> Final:
        """Choose by the log-loss of calibrated posteriors on held-out clean rows.

        Parameters
        ----------
        run : Run
        starts : dict of str to NoisyLabelNet
            Trained on the noisy rows; first the method's own network, which is the choice to begin with.
        steps : sequence of Step
            In each, the best of its candidates replaces the choice if it is better by a margin.
        """
        posteriors, rows = cross_validated_posteriors(run, starts)
        y, weights = run.clean.label[rows], run.clean.columns.get("sample_weight", np.ones(len(run.clean)))[rows]
        losses = np.array([tempered_log_loss(proba, y, weights) for proba in posteriors])
        candidates, means, best = candidates_of(list(starts)), losses.mean(axis=1), 0
        for step in steps:
            lowest = min((i for i, c in enumerate(candidates) if c.start in step.starts), key=means.item, default=best)
            gain = losses[best] - losses[lowest]
            best = lowest if gain.mean() > step.margin * gain.std(ddof=1) / len(rows) ** 0.5 else best
        self.final_ = str(candidates[best])
        self.final_scores_ = {"classifier": np.array([str(c) for c in candidates]), "log_loss": means}
        return candidates[best]


def finished(run: Run, best: Final, net: NoisyLabelNet) -> NoisyLabelNet:
    """Train the network that a candidate starts from, or a new one, on all clean rows, for its number of epochs."""
    if not best.epochs:
        return net
    with run.changed(_params(run, len(run.clean))):
        start = None if best.start == CLEAN_ROWS else net
        return run.train(_stage(best.start), run.clean, **_how(start, best.epochs))


def _fine_tuned(start: str) -> str:
    """Name of what a training on the clean rows makes of a network."""
    return {OWN: "fine-tuned", CLEAN_ROWS: CLEAN_ROWS}.get(start, f"fine-tuned {start}")


def _stage(start: str) -> str:
    return _fine_tuned(start).replace("-", "_").replace(" ", "_")


def _params(run: Run, n: int) -> dict[str, Any]:
    """Parameters of nets that train on n clean rows, without what the user gives for the noisy ones, which are more."""
    params = without_bound_callbacks(run.params) | {"train_split": None}
    if n < params["batch_size"] and "iterator_train__drop_last" in params:
        params["iterator_train__drop_last"] = False  # no batch would be left
    return params


def _how(start: NoisyLabelNet | None, max_epochs: int, watched: HeldOutPosteriors | None = None) -> dict[str, Any]:
    """What `Run.prepare` takes."""
    callbacks = [] if watched is None else [("held_out_posteriors", watched)]
    module = start and start.plain_module_
    return {"labels": "clean", "module": module, "max_epochs": max_epochs, "callbacks": callbacks}
