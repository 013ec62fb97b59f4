"""Meta-Weight-Net: a small network weights each row by its loss; it is learned by a meta-gradient."""

import warnings
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ..losses import WeightedLoss
from ..transition import check_count
from ._base import NoisyLabelClassifier
from ._checks import check_flag, check_number
from ._data import Samples, label_codes
from ._meta_gradient import check_meta_data, check_meta_gradient, meta_gradient
from ._parameters import Module, Optimizer
from ._run import Run

# weights start near 1/2; if none is above this, the user is warned that all went to 0; a choice, not measured
_COLLAPSED = 1e-2


class MWNetClassifier(NoisyLabelClassifier):
    r"""Weight every row by V(its loss); V, a 1-100-1 network, is learned by the clean loss one step ahead.

    In every iteration a noisy and a clean batch are drawn, and with l_n the cross-entropy of row n::

        W_hat(V) = W - lr * grad_W sum a_n(V) l_n         look-ahead, plain SGD; a_n = V(l_n) / n_samples
        V        = optimiser step on the clean loss at W_hat(V)
        W        = optimiser step on sum a_n(V) l_n with the new V

    V sees the loss alone and not the class, so it is of little use where noise flips one class into one other.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    weight_lr : float, default=1e-3
        Step size of V.
    weight_optimizer : class or str, optional
        Optimiser of V; default: Adam with weight decay 1e-4, as in the authors' first code. Their second code uses SGD
        with momentum 0.9 and weight decay 5e-4, and `normalize_weights`.
    weight_hidden : int, default=100
        Width of V.
    weight_every : int, default=1
        V moves in every `weight_every`-th step only.
    normalize_weights : bool, default=False
        Make the weights of a batch sum to 1. Without it V starts near 1/2, which halves the step of the network, and
        all weights can go to 0.
    meta_batch_size : int, optional
        Clean rows in a step; default: `batch_size`.
    inner_lr : float, optional
        Step size of the look-ahead; default: the optimiser's current one, per parameter group.
    meta_gradient_method : str, default="auto"
        How the gradient is computed: a name in `noisytransition.meta_gradient.METHODS`. All are exact except
        "difference"; "auto" takes the cheapest that works for the module.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks, distributed
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    meta_gradient_method_ : str
        The method that was used.
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
    mean weight: 0.3 of wrong labels, 1.0 of right ones
    """

    _needs_clean_data = True
    _PUBLISHED: ClassVar = {}

    def __init__(
        self,
        module: Module = None,
        *,
        weight_lr: float = 1e-3,
        weight_optimizer: Optimizer | None = None,
        weight_hidden: int = 100,
        weight_every: int = 1,
        normalize_weights: bool = False,
        meta_batch_size: int | None = None,
        inner_lr: float | None = None,
        meta_gradient_method: str = "auto",
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.weight_lr = weight_lr
        self.weight_optimizer = weight_optimizer
        self.weight_hidden = weight_hidden
        self.weight_every = weight_every
        self.normalize_weights = normalize_weights
        self.meta_batch_size = meta_batch_size
        self.inner_lr = inner_lr
        self.meta_gradient_method = meta_gradient_method

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "weight_lr")
        check_flag(self, "normalize_weights")
        check_count(self.weight_hidden, 1, "weight_hidden")
        check_count(self.weight_every, 1, "weight_every")
        check_meta_gradient(self)

    def _check_data(self, run: Run) -> None:
        super()._check_data(run)
        check_meta_data(self, run)

    def _loss(self) -> WeightedLoss:
        return WeightedLoss(self.weight_hidden, normalize=self.normalize_weights)

    def _fit(self, run: Run) -> None:
        update = meta_gradient(
            self,
            run.clean,
            lr=self.weight_lr,
            optimizer=self.weight_optimizer or partial(torch.optim.Adam, weight_decay=1e-4),
            every=self.weight_every,
        )
        self.net_ = run.train(
            "meta_weight_net",
            loss=partial(WeightedLoss, self.weight_hidden, normalize=self.normalize_weights),
            update=update,
        )
        self.meta_gradient_method_ = update.method_
        self._warn_of_collapse(run)

    def _warn_of_collapse(self, run: Run) -> None:
        if self._weights(self.net_.predict_proba(run.noisy), run.noisy.label).max() < _COLLAPSED:
            remedy = "" if self.normalize_weights else ", or set normalize_weights=True"
            warnings.warn(
                f"the weights of all rows went to zero: take a smaller weight_lr{remedy}.",
                UserWarning,
                stacklevel=4,
            )

    def sample_weights(self, X: Samples, y_noisy: ArrayLike) -> NDArray:
        """Weights V(loss) of rows with these labels, between 0 and 1; low where a label is probably wrong.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, ...) or torch Dataset
            Rows of the form that `fit` had.
        y_noisy : array-like of shape (n_samples,)
            Noisy labels, out of `classes_`.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            For a label that is not in `classes_`, or not one label per row.
        """
        check_is_fitted(self, "net_")
        proba = self.predict_proba(X)
        return self._weights(proba, label_codes(y_noisy, self.classes_, len(proba)))

    def _weights(self, proba: NDArray, codes: NDArray) -> NDArray:
        loss: WeightedLoss = self.net_.criterion_
        p = torch.as_tensor(proba[np.arange(len(codes)), codes], device=next(loss.parameters()).device)
        with torch.no_grad():
            return loss.weights(-p.clamp_min(torch.finfo(p.dtype).tiny).log()).cpu().numpy()
