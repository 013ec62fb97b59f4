"""Maximum likelihood of classifier and T together: training on noisy and clean rows at once, and T from folds."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses import ForwardLoss
from ..nets import CleanBatches, HeldOutPosteriors, NoisyLabelNet, Rows
from ..transition import (
    MOST_CLASSES,
    EMResult,
    TransitionUncertainty,
    em_transition_matrix,
    pair_counts,
    transition_uncertainty,
)
from ..updates import PosteriorCounts
from ._run import Run

#: folds of the start of T by EM
EM_FOLDS = 3
# numbers of epochs that are compared
_N_LOOKS = 8
# T's counts remember a quarter of an epoch, and at least four batches
_MEMORY = 0.25
# share of the training in which T rests at its start
_HOLD = 0.1
# change of T that ends a maximisation, where settings are compared
_ROUGH = 1e-4


class Setting(NamedTuple):
    """What a training was given, and the posteriors that it gave back, of noisy rows and of clean ones."""

    meta_weight: float
    epochs: int
    proba: NDArray
    proba_meta: NDArray | None = None


class Found(NamedTuple):
    """T, the setting that it came from, and the likelihoods of all settings."""

    transition: EMResult
    setting: Setting
    results: dict[str, NDArray]


class JointTraining:
    """Trainings of one fit on noisy and clean rows."""

    def __init__(
        self,
        run: Run,
        start: NDArray,
        *,
        meta_batch_size: int | None = None,
        prior: Any = "symmetric",
        strength: Any = "auto",
        prefix: str = "",
    ) -> None:
        self.run, self.start = run, start
        self.noisy, self.meta = run.noisy, run.clean
        self.meta_batch_size, self.prior, self.strength = meta_batch_size, prior, strength
        self.prefix = prefix

    @property
    def natural_weight(self) -> float:
        """Weight of the clean rows' mean loss beside that of the noisy rows: that of the likelihood."""
        return len(self.meta) / len(self.noisy)

    # ---- trainings
    def train(self, stage: str, weight: float, T: NDArray, max_epochs: int) -> NoisyLabelNet:
        """Train a net through a T that is known."""
        return self._train(stage, self.noisy, self.meta, weight, loss=ForwardLoss(T), max_epochs=max_epochs)

    def train_with_transition(
        self, stage: str, weight: float, *, rows: tuple[Rows, Rows] | None = None, callbacks: Sequence = ()
    ) -> NoisyLabelNet:
        """Train a net and T together, on all rows or on a part of them."""
        noisy, meta = rows or (self.noisy, self.meta)
        size, epochs = self.run.params["batch_size"], self.run.params["max_epochs"]
        size = size if 0 < size < len(noisy) else len(noisy)
        update = PosteriorCounts(min(size / (_MEMORY * len(noisy)), 0.25), int(_HOLD * epochs * len(noisy) / size))
        return self._train(stage, noisy, meta, weight, loss=ForwardLoss(self.start), update=update, callbacks=callbacks)

    def _train(self, stage: str, noisy: Rows, meta: Rows, weight: float, **net_params: Any) -> NoisyLabelNet:
        size, batch_size = self.meta_batch_size, self.run.params["batch_size"]
        if size is None:
            size = max(batch_size // 4, 1) if batch_size > 0 else -1
        clean = CleanBatches(meta, size, joint=True)
        return self.run.train(stage, noisy, clean_batches=clean, clean_weight=weight, **net_params)

    # ---- T
    def find(self, weights: Sequence[float] | None = None, *, cv: int = EM_FOLDS, select_epochs: bool = True) -> Found:
        """T of the setting whose held-out posteriors make all labels most likely, T integrated out."""
        natural = self.natural_weight
        weights = (1.0, natural**0.5, natural) if weights is None else weights
        looks, tried = self._looks(select_epochs), []
        best: Any = (-np.inf, None)
        for i, weight in enumerate(dict.fromkeys(weights)):
            for setting in self._cross_fit(f"{self.prefix}weight_{i}", weight, cv, looks):
                log_evidence = self.most_likely(setting, tol=_ROUGH).log_evidence
                tried.append((weight, setting.epochs, log_evidence))
                best = max(best, (log_evidence, setting), key=lambda scored: scored[0])
        columns = ("meta_weight", "epochs", "log_evidence")
        results = {name: np.array(values) for name, values in zip(columns, zip(*tried, strict=True), strict=True)}
        return Found(self.most_likely(best[1]), best[1], results)

    def most_likely(self, setting: Setting, *, tol: float = 1e-5) -> EMResult:
        """T behind the noisy labels, given a setting's posteriors."""
        found: Any = em_transition_matrix(
            setting.proba,
            self.noisy.label,
            init=self.start,
            prior=self.prior,
            strength=self.strength,
            counts=self._known_pairs(),
            tol=tol,
            proba_meta=setting.proba_meta,
            y_meta=None if setting.proba_meta is None else self.meta.label,
            full_output=True,
        )
        return found

    def uncertainty(self, found: Found) -> TransitionUncertainty | None:
        """Error bars of T; none without held-out clean rows, or where their information would be too large a matrix."""
        calibration, proba_meta = found.transition.calibration, found.setting.proba_meta
        if calibration is None or proba_meta is None or len(self.start) > MOST_CLASSES:
            return None
        return transition_uncertainty(
            calibration(found.setting.proba),
            self.noisy.label,
            found.transition.transition_matrix,
            proba_meta=calibration(proba_meta),
            counts=self._known_pairs(),
        )

    def _known_pairs(self) -> NDArray | None:
        """Counts of the clean rows whose noisy labels are known."""
        noisy = self.meta.columns.get("noisy_label")
        return None if noisy is None else pair_counts(self.meta.label, noisy, len(self.start))

    def _cross_fit(self, stage: str, weight: float, cv: int, looks: Sequence[int]) -> list[Setting]:
        """Train without each fold in turn; return the posteriors of all rows after several numbers of epochs."""
        random, c = np.random.default_rng(self.run.seed), len(self.start)
        sets = [(rows, fold_of_rows(rows.label, cv, random)) for rows in (self.noisy, self.meta)]
        whole = {epochs: [np.empty((len(rows), c), np.float32) for rows, _ in sets] for epochs in looks}
        for k in range(cv):
            noisy, meta = (rows.take(np.flatnonzero(folds != k)) for rows, folds in sets)
            held_out = HeldOutPosteriors([rows.take(np.flatnonzero(folds == k)) for rows, folds in sets], looks)
            self.train_with_transition(
                f"{stage}_fold_{k}", weight, rows=(noisy, meta), callbacks=[("held_out", held_out)]
            )
            for epochs, posteriors in whole.items():
                for all_rows, (_, folds), part in zip(posteriors, sets, held_out.after(epochs), strict=True):
                    all_rows[folds == k] = part
        return [Setting(weight, epochs, *posteriors) for epochs, posteriors in whole.items()]

    def _looks(self, select_epochs: bool) -> list[int]:
        """Numbers of epochs that are compared."""
        most = self.run.params["max_epochs"]
        return sorted({-(-most * k // _N_LOOKS) for k in range(1, _N_LOOKS + 1)}) if select_epochs else [most]


def fold_of_rows(y: NDArray, n_folds: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Fold of each row: drawn, with the classes dealt out evenly."""
    order = random.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), dtype=np.intp)
    folds[order] = np.arange(len(y)) % n_folds
    return folds
