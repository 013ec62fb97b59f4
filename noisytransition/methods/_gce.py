"""Generalized cross-entropy, a noise-robust loss."""

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from ..base._classifier import NoisyLabelClassifier
from ..fitting._parameters import CONSTRAINTS, COUNT_FROM_0, Module
from ..fitting._run import FitContext
from ..losses import GeneralizedCrossEntropyLoss
from ..updates import Truncation


class GCEClassifier(NoisyLabelClassifier):
    """Train by generalized cross-entropy, ``(1 - p_y^q) / q``, a robust loss that needs no clean samples.

    The loss interpolates between cross-entropy and the absolute error. Its gradient is the gradient of cross-entropy
    times ``p_y^q``, so the network learns classes with improbable labels slowly or never. It fails
    where a wrong label is almost as frequent as the correct one (:doc:`/methods/without_t`).

    Parameters
    ----------
    q : float in [0, 1], default=0.7
        0 is cross-entropy. 1 is ``1 - p_y``, which is robust to symmetric noise and slow to train.
    truncation : float in (0, 1), optional
        Omit samples whose label has at most this probability under the current network (k in the paper, which uses
        0.5). All samples are checked again every 10 epochs. Default: no truncation.
    truncation_start : int, optional
        Epochs before the truncation starts. Default: a third of `max_epochs`.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Zhang, Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", NeurIPS
    2018, equations (6), (8) and Algorithm 1. The paper checks samples with the network that is best so far on
    validation data, this class with the current network.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier, GCEClassifier, flip_labels
    >>> from noisytransition.transition import symmetric_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, symmetric_noise(3, 0.4), random_state=0)
    >>> plain = CrossEntropyClassifier(optimizer="sgd", max_epochs=200, random_state=0)
    >>> robust = GCEClassifier(truncation=0.3, optimizer="sgd", max_epochs=200, random_state=0)
    >>> [round(clf.fit(X[::2], y_noisy[::2]).score(X[1::2], y[1::2]), 1) for clf in (plain, robust)]
    [0.8, 0.9]
    """

    _PUBLISHED: ClassVar = {}
    _parameter_constraints: ClassVar = CONSTRAINTS | {
        "q": [Interval(Real, 0, 1, closed="both")],
        "truncation": [Interval(Real, 0, 1, closed="neither"), None],
        "truncation_start": [COUNT_FROM_0, None],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        q: float = 0.7,
        truncation: float | None = None,
        truncation_start: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.q = q
        self.truncation = truncation
        self.truncation_start = truncation_start

    def _fit(self, run: FitContext) -> None:
        start = run.params["max_epochs"] // 3 if self.truncation_start is None else self.truncation_start
        self.net_ = run.train(
            "generalized_cross_entropy",
            run.noisy.with_columns(index=np.arange(len(run.noisy)), weight=1.0),  # read and set by Truncation
            loss=GeneralizedCrossEntropyLoss(self.q, truncation=self.truncation),
            update=None if self.truncation is None else Truncation(self.truncation, start),
        )
