"""The last step of a method: its network, one fine-tuned on the clean rows, or one of the clean rows alone.

Where the assumptions of a method do not hold (noise that one T does not explain, a network trained too little), its
network can be worse than what the clean rows alone give. Clean rows that were held out decide.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..nets import HeldOutPosteriors, NoisyLabelNet, Rows
from ..transition import tempered_log_loss
from ._checks import without_bound_callbacks
from ._folds import N_FOLDS, fold_of_rows
from ._run import Run

#: epochs on the clean rows that are compared; the most are the default of `FineTuningClassifier`
_EPOCHS = (1, 2, 5, 10, 20, 35, 50)
#: with fewer clean rows there is no choice: a network would be judged by one or two of them. Not measured
LEAST_CLEAN_ROWS = 6


class Final(NamedTuple):
    """A candidate: a network, or what it becomes after so many epochs on the clean rows alone."""

    name: str
    epochs: int = 0

    def __str__(self) -> str:
        return f"{self.name}, {self.epochs} epoch{'s' * (self.epochs > 1)}" if self.epochs else self.name


#: networks as they are: the method's own, and the warm-up that it started from
OWN, WARM_UP = "own", "warm-up"
#: trainings on the clean rows alone: from these networks, and from none
FINE_TUNED, FINE_TUNED_WARM_UP, CLEAN_ROWS = "fine-tuned", "fine-tuned warm-up", "clean rows"
#: by these names, the networks from which trainings on the clean rows start; None: a new one
Starts = dict[str, NoisyLabelNet | None]


def starts_of(net: NoisyLabelNet, warm_up: NoisyLabelNet | None = None) -> Starts:
    """A method's network, its warm-up if there is one, and a new network."""
    return {FINE_TUNED: net} | ({} if warm_up is None else {FINE_TUNED_WARM_UP: warm_up}) | {CLEAN_ROWS: None}


def candidates_of(starts: Starts) -> list[Final]:
    """All candidates: first the method's own network, then its warm-up, then those that clean rows have trained."""
    as_they_are = [Final(OWN), Final(WARM_UP)] if FINE_TUNED_WARM_UP in starts else [Final(OWN)]
    return [*as_they_are, *(Final(name, n) for name in starts for n in _EPOCHS)]


def shows_all_classes(run: Run) -> bool:
    """Whether there are enough clean rows to train on them alone: a network would unlearn a class that has none."""
    return len(run.clean) >= LEAST_CLEAN_ROWS and len(np.unique(run.clean.label)) == len(run.classes)


def fine_tuned(run: Run, stage: str, net: NoisyLabelNet, clean: Rows) -> NoisyLabelNet:
    """Go on with clean rows for the most epochs that are compared."""
    return _train_aside(run, [_Aside(f"{stage}_fine_tuned", clean, net)])[0]


def plan_of_fine_tuning(stages: Sequence[str], n: float) -> dict[str, float]:
    """Work of `fine_tuned` after each of these stages, with n clean rows."""
    return {f"{stage}_fine_tuned": n * max(_EPOCHS) for stage in stages}


def plan_of_choice(run: Run, names: Sequence[str]) -> dict[str, float]:
    """Work of `cross_validated_posteriors` with starts of these names."""
    n = len(run.clean) * (1 - 1 / N_FOLDS)
    return {f"clean_fold_{k}_{_stage(name)}": n * max(_EPOCHS) for k in range(N_FOLDS) for name in names}


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
    for k, part in enumerate(parts):
        inside, held_out = run.clean.take(np.flatnonzero(fold != k)), run.clean.take(part)
        for name, net in starts.items():
            watched.append(HeldOutPosteriors([held_out], _EPOCHS))
            trainings.append(_Aside(f"clean_fold_{k}_{_stage(name)}", inside, net, watched[-1]))
    _train_aside(run, trainings)
    after = [[w.after(n)[0] for w in watched[i :: len(starts)]] for i in range(len(starts)) for n in _EPOCHS]
    as_they_are = [net.predict_proba(run.clean.take(rows)) for net in starts.values() if net is not None]
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
        nets = run.train_together({t.stage: (t.clean, h) for t, h in zip(trainings, how, strict=True)})
    for training in trainings:
        del run.histories[training.stage]
    return nets


class FinalMixin:
    """Method that chooses the last classifier."""

    def _chooses(self: Any, run: Run) -> bool:
        """Whether to choose."""
        return self.select_classifier and shows_all_classes(run)

    def _choose_final(
        self: Any, run: Run, starts: Starts, posteriors: Sequence[NDArray], rows: NDArray, margin: float = 0.0
    ) -> None:
        """Set `net_` to the candidate whose calibrated posteriors have the lowest log-loss on held-out clean rows.

        Parameters
        ----------
        run : Run
        starts : dict of str to NoisyLabelNet or None
            Trained on all rows.
        posteriors, rows
            As `cross_validated_posteriors` returns them.
        margin : float, default=0.0
            Paired standard errors by which another candidate must be better than the method's own network.
        """
        y, weights = run.clean.label[rows], run.clean.columns.get("sample_weight", np.ones(len(run.clean)))[rows]
        losses = np.array([tempered_log_loss(proba, y, weights) for proba in posteriors])
        candidates, lowest = candidates_of(starts), int(losses.mean(axis=1).argmin())
        gain = losses[0] - losses[lowest]
        is_better = gain.mean() > margin * gain.std(ddof=1) / len(rows) ** 0.5
        best = candidates[lowest] if is_better else candidates[0]
        if best.epochs:
            self.net_ = _on_clean_rows(run, _stage(best.name), starts[best.name], best.epochs)
        elif best.name == WARM_UP:
            self.net_ = starts[FINE_TUNED_WARM_UP]
        self.final_ = str(best)
        self.final_scores_ = {"classifier": np.array([str(c) for c in candidates]), "log_loss": losses.mean(axis=1)}


def _stage(name: str) -> str:
    return name.replace("-", "_").replace(" ", "_")


def _on_clean_rows(run: Run, stage: str, start: NoisyLabelNet | None, max_epochs: int) -> NoisyLabelNet:
    """Train on all clean rows."""
    with run.changed(_params(run, len(run.clean))):
        return run.train(stage, run.clean, **_how(start, max_epochs))


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
