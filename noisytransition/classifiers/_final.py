"""The last step of a method: its network, the network fine-tuned on the clean rows, or one of the clean rows alone.

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
    """A candidate: the method's own network, or so many epochs on clean rows from it ("fine-tuned") or from none."""

    name: str
    epochs: int = 0

    def __str__(self) -> str:
        return f"{self.name}, {self.epochs} epoch{'s' * (self.epochs > 1)}" if self.epochs else self.name


OWN, FINE_TUNED, CLEAN_ROWS = "own", "fine-tuned", "clean rows"
#: all candidates, the method's own network first
CANDIDATES = [Final(OWN), *(Final(name, n) for name in (FINE_TUNED, CLEAN_ROWS) for n in _EPOCHS)]


def continued_posteriors(run: Run, stage: str, net: NoisyLabelNet, clean: Rows, held_out: Rows) -> list[NDArray]:
    """Posteriors of held-out clean rows by all candidates but the first, trained on the other clean rows."""
    posteriors = []
    for name, module in ((FINE_TUNED, net.plain_module_), (CLEAN_ROWS, None)):
        watched = HeldOutPosteriors([held_out], _EPOCHS)
        part = f"{stage}_{_stage(name)}"
        _on_clean_rows(run, part, clean, module, max(_EPOCHS), watched)
        del run.histories[part]  # of a training that only judges
        posteriors += [watched.after(n)[0] for n in _EPOCHS]
    return posteriors


def cross_validated_posteriors(run: Run, net: NoisyLabelNet) -> tuple[list[NDArray], NDArray[np.intp]]:
    """Posteriors of clean rows by all candidates, for a network that was not trained on them; and which rows."""
    fold = fold_of_rows(run.clean.label, N_FOLDS, np.random.default_rng(run.seed))
    parts = [np.flatnonzero(fold == k) for k in range(N_FOLDS)]
    rows, continued = np.concatenate(parts), []
    for k, part in enumerate(parts):
        inside = run.clean.take(np.flatnonzero(fold != k))
        continued.append(continued_posteriors(run, f"clean_fold_{k}", net, inside, run.clean.take(part)))
    own = net.predict_proba(run.clean.take(rows))
    return [own, *(np.concatenate(of_parts) for of_parts in zip(*continued, strict=True))], rows


class FinalMixin:
    """Method that chooses the last classifier."""

    def _chooses(self: Any, run: Run) -> bool:
        return self.select_classifier and len(run.clean) >= LEAST_CLEAN_ROWS

    def _choose_final(self: Any, run: Run, posteriors: Sequence[NDArray], rows: NDArray) -> None:
        """Set `net_` to the candidate whose calibrated posteriors have the lowest log-loss on held-out clean rows.

        Parameters
        ----------
        run : Run
        posteriors : sequence of ndarray of shape (n_meta, n_classes)
            Of held-out clean rows, one for each candidate.
        rows : ndarray of shape (n_meta,)
            Which rows these are.
        """
        losses = np.array([tempered_log_loss(proba, run.clean.label[rows]).mean() for proba in posteriors])
        best = CANDIDATES[int(losses.argmin())]
        if best.name != OWN:
            module = self.net_.plain_module_ if best.name == FINE_TUNED else None
            self.net_ = _on_clean_rows(run, _stage(best.name), run.clean, module, best.epochs)
        self.final_ = str(best)
        self.final_scores_ = {"classifier": np.array([str(c) for c in CANDIDATES]), "log_loss": losses}


def _stage(name: str) -> str:
    return name.replace("-", "_").replace(" ", "_")


def _on_clean_rows(
    run: Run, stage: str, clean: Rows, module: Any, max_epochs: int, watched: HeldOutPosteriors | None = None
) -> NoisyLabelNet:
    """Train on clean rows, without what the user gives for trainings on the noisy ones, which are more."""
    params = without_bound_callbacks(run.params)
    params["train_split"] = None
    if len(clean) < params["batch_size"] and "iterator_train__drop_last" in params:
        params["iterator_train__drop_last"] = False  # no batch would be left
    callbacks = [] if watched is None else [("held_out_posteriors", watched)]
    if watched is not None:
        params["verbose"] = 0
    with run.changed(params):
        return run.train(stage, clean, labels="clean", module=module, max_epochs=max_epochs, callbacks=callbacks)
