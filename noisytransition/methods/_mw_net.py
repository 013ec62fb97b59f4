"""Meta-Weight-Net: learn sample weights as a function of the loss, by a meta-gradient."""

from __future__ import annotations
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ..base._classifier import NoisyLabelClassifier
from ..data._read import Samples
from ..fitting._parameters import CONSTRAINTS, POSITIVE, Module
from ..fitting._run import FitContext
from ..labels._read import complete_codes
from ..losses import WeightedLoss
from ..nets import CleanBatches
from ..updates import MetaGradient


class MWNetClassifier(NoisyLabelClassifier):
    r"""Weight each sample by V(loss), where V is a 1-100-1 network learned by a meta-gradient on the clean samples.

    Every iteration draws a noisy and a clean batch. With l_n the cross-entropy of sample n, it computes::

        W_hat(V) = W - inner_lr * grad_W sum a_n(V) l_n         look-ahead, plain SGD; a_n = V(l_n) / n_samples
        V        = optimiser step on the clean loss at W_hat(V)
        W        = optimiser step on sum a_n(V) l_n with the new V

    V depends on the loss but not on the class. It helps little against noise that flips one class into one other class.

    Parameters
    ----------
    weight_lr : float, default=1e-3
        Learning rate of V, for Adam with weight decay 1e-4 as in the authors' first code. If it is too large, all
        weights can collapse to 0.
    inner_lr : float or None, default=0.1
        Learning rate of the look-ahead. None, as published: the current learning rate of each parameter group.
    meta_batch_size : int, optional
        Number of clean samples per step. Default: `batch_size`.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Shu, Xie, Yi, Zhao, Zhou, Xu, Meng, "Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting", NeurIPS
    2019, Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import MWNetClassifier, flip_labels
    >>> from noisytransition.transition import symmetric_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, symmetric_noise(3, 0.4), random_state=0)
    >>> clf = MWNetClassifier(weight_lr=1e-2, max_epochs=60, random_state=0)
    >>> clf = clf.fit(X, y_noisy, meta=(X[::5], y[::5]))
    >>> weights = clf.sample_weights(X, y_noisy)
    >>> wrong, right = (weights[rows].mean() for rows in (y_noisy != y, y_noisy == y))
    >>> print(f"mean weight: {wrong:.1f} of wrong labels, {right:.1f} of right ones")
    mean weight: 0.1 of wrong labels, 0.9 of right ones
    """

    _needs_clean_data = True
    _loss: ClassVar = WeightedLoss  # `sample_weights` needs V
    _PUBLISHED: ClassVar = {"inner_lr": None}
    _parameter_constraints: ClassVar = CONSTRAINTS | {"weight_lr": [POSITIVE]}

    def __init__(
        self,
        module: Module = "mlp",
        *,
        weight_lr: float = 1e-3,
        inner_lr: float | None = 0.1,
        meta_batch_size: int | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.weight_lr = weight_lr
        self.inner_lr = inner_lr
        self.meta_batch_size = meta_batch_size

    def _fit(self, run: FitContext) -> None:
        update = MetaGradient(
            CleanBatches(run.clean, self.meta_batch_size or self.batch_size),
            lr=self.weight_lr,
            optimizer=partial(torch.optim.Adam, weight_decay=1e-4),
            inner_lr=self.inner_lr,
        )
        self.net_ = run.train("meta_weight_net", loss=WeightedLoss, update=update)

    def sample_weights(self, X: Samples, y_noisy: ArrayLike) -> NDArray:
        """Compute the weight V(loss) of each sample; it is low if the label is probably wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Samples in the format used in `fit`.
        y_noisy : array-like of shape (n_samples,)
            Noisy labels.

        Returns
        -------
        ndarray of shape (n_samples,)
            Weights in [0, 1].

        Raises
        ------
        ValueError
            If a label is not in `classes_`, or the number of labels is not n_samples.
        """
        proba = self.predict_proba(X)
        codes = complete_codes(y_noisy, self.classes_, len(proba))
        loss: WeightedLoss = self.net_.criterion_
        p = torch.as_tensor(proba[np.arange(len(codes)), codes], device=next(loss.parameters()).device)
        with torch.no_grad():
            return loss.weights(-p.clamp_min(torch.finfo(p.dtype).tiny).log()).cpu().numpy()
