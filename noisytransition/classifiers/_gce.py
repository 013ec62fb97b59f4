"""Generalized cross-entropy: a loss with a small gradient for improbable labels."""

from typing import Any, ClassVar

import numpy as np

from ..losses import BalancedGeneralizedCrossEntropyLoss, GeneralizedCrossEntropyLoss
from ..transition import check_count
from ..updates import Truncation
from ._base import NoisyLabelClassifier
from ._checks import check_flag, check_number
from ._parameters import Module
from ._run import Run
from ._weights import ClassWeight


class GCEClassifier(NoisyLabelClassifier):
    """Train by a robust loss, ``(1 - p_y^q) / q``, between cross-entropy and the absolute error; no clean rows.

    The gradient of the published loss is ``p_y^q`` times that of cross-entropy, so a class whose labels are all
    improbable under the net is learned slowly or never. By default, this weight is divided by its running mean over the
    rows with the same noisy label: improbable rows have less weight than others with their label, and each label has
    the weight that it has in cross-entropy. ``balanced=False`` is the published method.

    With `truncation`, rows whose noisy label has a low probability under the current net are left out from
    `truncation_start` on. All rows are checked again every `truncation_every` epochs, so a row can return.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    q : float in [0, 1], default=0.7
        0 is cross-entropy; 1 is ``1 - p_y``, robust to symmetric noise and slow to train.
    balanced : bool, default=True
        Divide the weights by their mean for each noisy label. False: the published loss, which often needs a larger
        step or more epochs than cross-entropy.
    truncation : float in (0, 1), optional
        A row is left out if the probability of its label is at most this (the paper's k, there 0.5). Default: no row
        is left out.
    truncation_start : int, optional
        Epochs before rows are left out; default: a third of `max_epochs`.
    truncation_every : int, default=10
        Epochs between two checks of all rows.
    class_weight : dict, "balanced" or None, default=None
        As in `CrossEntropyClassifier`.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks, distributed
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Zhang, Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", NeurIPS
    2018, equations (6), (8) and Algorithm 1. There the rows are checked with the net that is best so far on validation
    data; here with the current one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier, GCEClassifier, flip_labels
    >>> from noisytransition.transition import symmetric_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, symmetric_noise(3, 0.4), random_state=0)
    >>> plain = CrossEntropyClassifier(max_epochs=200, random_state=0).fit(X, y_noisy)
    >>> robust = GCEClassifier(truncation=0.3, max_epochs=200, random_state=0).fit(X, y_noisy)
    >>> print(f"cross-entropy {plain.score(X, y):.2f}, GCE {robust.score(X, y):.2f}")
    cross-entropy 0.8..., GCE 0.9...
    """

    _PUBLISHED: ClassVar = {"balanced": False}

    def __init__(
        self,
        module: Module = None,
        *,
        q: float = 0.7,
        balanced: bool = True,
        truncation: float | None = None,
        truncation_start: int | None = None,
        truncation_every: int = 10,
        class_weight: ClassWeight = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.q = q
        self.balanced = balanced
        self.truncation = truncation
        self.truncation_start = truncation_start
        self.truncation_every = truncation_every
        self.class_weight = class_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "q", high=1.0)
        check_flag(self, "balanced")
        check_count(self.truncation_every, 1, "truncation_every")
        if self.truncation_start is not None:
            check_count(self.truncation_start, 0, "truncation_start")
        if self.truncation is None:
            return
        check_number(self, "truncation", high=1.0)
        if not 0 < self.truncation < 1:
            raise ValueError(f"truncation={self.truncation}; valid is a probability between 0 and 1, or None.")

    def _fit(self, run: Run) -> None:
        self.net_ = run.train(
            "generalized_cross_entropy",
            run.noisy.with_columns(index=np.arange(len(run.noisy)), weight=1.0),
            loss=self._training_loss(len(run.classes)),
            update=self._truncation(),
        )

    def _training_loss(self, n_classes: int) -> GeneralizedCrossEntropyLoss:
        if self.balanced:
            return BalancedGeneralizedCrossEntropyLoss(n_classes, self.q, truncation=self.truncation)
        return GeneralizedCrossEntropyLoss(self.q, truncation=self.truncation)

    def _truncation(self) -> Truncation | None:
        if self.truncation is None:
            return None
        start = self.max_epochs // 3 if self.truncation_start is None else self.truncation_start
        return Truncation(self.truncation, start, self.truncation_every)
