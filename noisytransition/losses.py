"""Loss functions for noisy labels: torch criteria of logits, integer labels, and other columns that they name."""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = [
    "ForwardLoss",
    "GeneralizedCrossEntropyLoss",
    "GoldCorrectionLoss",
    "ImportanceReweightedLoss",
    "PosteriorLoss",
    "WeightedLoss",
    "corrected_cross_entropy",
]

# Smallest initial entry of T. With log 0, the gradient would stay 0, and a label with an empty column would have an
# infinite loss. A choice, not measured.
MIN_ENTRY = 1e-12


# ---------------------------------------------------------------------------- losses with T
def corrected_cross_entropy(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    """Compute the mean corrected cross-entropy, ``- log sum_i f_i(x) T[i, y]`` with f = softmax(logits).

    It is computed in log space without underflow. It reads one column of T per sample: memory is proportional to
    n_samples x n_classes.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes) or (n_samples, length, n_classes)
        Outputs of the network for the *true* label, before the softmax. Classes are last; in
        `torch.nn.CrossEntropyLoss`, they are in dimension 1.
    y : Tensor of shape (n_samples,) or (n_samples, length)
        Noisy labels, 0 to n_classes - 1. The mean is over the labels that are not -100, and 0 if there is none.
    log_transition : Tensor of shape (n_classes, n_classes)
        log T: entry (i, j) is log P(noisy = j | true = i). On a CPU, T itself raises an error.

    References
    ----------
    Patrini et al., "Making Deep Neural Networks Robust to Label Noise", CVPR 2017, equation (6).
    """
    # the entries of a row of T have sum 1, those of log T are not positive; on a GPU, the check would wait for it
    if log_transition.is_cpu and log_transition[0].sum() > 0:
        raise ValueError("log_transition has positive entries: it must be log T. Pass T.log() instead of T.")
    logits, y = _by_row(logits, y, len(log_transition))
    ignored = y == -100
    columns = _rows_at(log_transition.T, y.masked_fill(ignored, 0)).masked_fill(ignored[:, None], 0)
    return _mean_of_known(-torch.logsumexp(F.log_softmax(logits, 1) + columns, dim=1), ignored)


class ForwardLoss(nn.Module):
    """Corrected cross-entropy with the noise transition matrix ``T = row-softmax(transition_logits)``.

    T is a parameter of the loss, not of the network: it is moved to the device and saved with the loss, and changed by
    an update (`noisytransition.updates`).

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Noise transition matrix: entry (i, j) is P(noisy = j | true = i).
    ignore_index : int or None, default=-100
        Label to ignore, as in `torch.nn.CrossEntropyLoss`. None if all labels are classes, which is faster.

    Notes
    -----
    The rows of T are normalised once per value of T. After a change of ``transition_logits`` through ``.data`` or by a
    fused optimiser, call ``torch.autograd.graph.increment_version(loss.transition_logits)``.
    """

    def __init__(self, transition_matrix: ArrayLike, *, ignore_index: int | None = -100) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        T = np.asarray(transition_matrix)
        if T.ndim != 2 or T.min() < 0 or not np.allclose(T.sum(axis=1), 1, atol=1e-3):
            fact = f"transition_matrix is a {type(transition_matrix).__name__} that is no matrix of probabilities"
            raise ValueError(f"{fact}, whose rows sum to 1. Pass T, not log T, counts or the transpose.")
        log_T = np.log(np.maximum(T, MIN_ENTRY, dtype=np.float64))
        by_label = torch.as_tensor(log_T.T.copy(), dtype=torch.get_default_dtype())
        # in column order in memory, since a step reads the columns of its labels
        self.transition_logits = nn.Parameter(by_label.T, requires_grad=False)
        # cache: the logits, their state, and log row sums
        self._known: tuple[Tensor, tuple[int, int], Tensor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Omit cached values."""
        return vars(self) | {"_known": None}

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Save T in row order, as file formats require."""
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}transition_logits"] = destination[f"{prefix}transition_logits"].contiguous()

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """Noise transition matrix T as a float64 ndarray of shape (n_classes, n_classes)."""
        return torch.softmax(self.transition_logits.detach().cpu().double(), dim=1).numpy()

    @property
    def transition_by_label(self) -> Tensor:
        """T transposed, in the dtype of its logits: row j belongs to noisy label j."""
        return torch.softmax(self.transition_logits.detach().T, dim=0)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss over the labels that are not ignored; 0 if all are.

        Logits have shape (n_samples, n_classes) or (n_samples, length, n_classes): classes are last, not in dimension 1
        as in `torch.nn.CrossEntropyLoss`. Noisy labels `y` have shape (n_samples,) or (n_samples, length).
        """
        return self._mean(logits, y)

    def _mean(self, logits: Tensor, y: Tensor, is_clean: Tensor | None = None, clean_weight: float = 1.0) -> Tensor:
        """Weighted sum of the losses of noisy and clean samples, divided by the number of labels not ignored."""
        logits, y = _by_row(logits, y, len(self.transition_logits))
        ignored = None
        if self.ignore_index is not None:
            ignored = y == self.ignore_index
            y = y.masked_fill(ignored, 0)
        log_f = torch.log_softmax(logits, 1)
        losses = -torch.logsumexp(log_f + self._columns(y).to(log_f.dtype), 1)
        if is_clean is not None:
            losses = torch.where(is_clean, clean_weight * F.nll_loss(log_f, y, reduction="none"), losses)
        return _mean_of_known(losses, ignored)

    def posterior(self, logits: Tensor, y: Tensor) -> Tensor:
        """P(true | x, noisy label) of each sample, of shape (n_samples, n_classes)."""
        return torch.softmax(logits + self._columns(y).to(logits.dtype), dim=1)

    # ---- normalisation of T, in time O(n_classes^2), once per value
    def _columns(self, y: Tensor) -> Tensor:
        """Columns of log T at these labels, as rows."""
        theta = self.transition_logits
        if theta.requires_grad:
            return _rows_at(theta.T, y).sub_(torch.logsumexp(theta, 1))
        if self._known is None or self._known[0] is not theta or self._known[1] != _state(theta):
            self._known = (theta, _state(theta), torch.logsumexp(theta.detach(), 1))
        return _rows_at(theta.T, y).sub_(self._known[2])

    @torch.no_grad()
    def set_counts(self, counts: Tensor, sums: Tensor, y: Tensor | None = None) -> None:
        """Set T to the normalised rows of positive counts: row j belongs to noisy label j, column i to true label i.

        `sums` are the column sums of `counts`. `y` are the labels whose counts have changed, by default all.
        """
        if y is None or len(counts) <= len(y):
            self.transition_logits.copy_(counts.T).log_()
        else:
            self.transition_logits.T.index_copy_(0, y, counts.index_select(0, y).log_())
        self._known = (self.transition_logits, _state(self.transition_logits), sums.log())

    # ---- look-ahead: gradient for the logits, and meta-gradient for a tangent of the logits
    @torch.no_grad()
    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """Gradient of the mean loss for the logits, (f - q) / n_samples, of shape (n_samples, n_classes)."""
        return (torch.softmax(logits, 1) - self.posterior(logits, y)) / len(y)

    @torch.no_grad()
    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        """Gradient of ``- <cotangent, tangent>`` for the logits of T, in closed form.

        With the posterior q and the tangent u::

            A[k, j]    = 1/n sum_{n: y_n = j} q_nk (u_nk - sum_i q_ni u_ni)
            grad_Theta = A - T * rowsum(A)

        Logits, noisy labels `y` and the tangent are of the noisy batch of the look-ahead.
        """
        q = self.posterior(logits, y)
        terms = (q * (tangent - (q * tangent).sum(1, keepdim=True)) / len(y)).to(self.transition_logits.dtype)
        return [(self.transition_by_label * -terms.sum(0)).index_add_(0, y, terms).T]


class GoldCorrectionLoss(ForwardLoss):
    """Corrected loss of noisy samples (`ForwardLoss`); cross-entropy of clean samples, marked by ``is_clean``.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Noise transition matrix: entry (i, j) is P(noisy = j | true = i).
    clean_weight : float, default=1.0
        Weight of a clean sample relative to a noisy one.
    ignore_index : int or None, default=-100
        As in `ForwardLoss`.

    References
    ----------
    Hendrycks, Mazeika, Wilson, Gimpel, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe Noise",
    NeurIPS 2018, Algorithm 1.
    """

    columns: ClassVar[tuple[str, ...]] = ("is_clean",)

    def __init__(
        self, transition_matrix: ArrayLike, clean_weight: float = 1.0, ignore_index: int | None = -100
    ) -> None:
        super().__init__(transition_matrix, ignore_index=ignore_index)
        self.clean_weight = clean_weight

    def forward(self, logits: Tensor, y: Tensor, is_clean: Tensor) -> Tensor:  # type: ignore[override]
        """Weighted sum of the losses, divided by the number of labels that are not ignored.

        Logits and labels `y` have the shapes of `ForwardLoss`; `is_clean` has that of the labels.
        """
        return self._mean(logits, y, is_clean.flatten(), self.clean_weight)


class PosteriorLoss(nn.Module):
    """Cross-entropy of posteriors of the true class, ``- sum_i q_i log f_i(x)``.

    The column ``row`` of a batch has the positions of its samples in `posterior`.

    Parameters
    ----------
    posterior : array-like of shape (n_rows, n_classes)
        Probabilities q of the true classes of each sample. Those of a clean sample are 1 at its label, times its weight
        relative to a noisy sample.
    """

    columns: ClassVar[tuple[str, ...]] = ("row",)

    def __init__(self, posterior: ArrayLike) -> None:
        super().__init__()
        q = torch.as_tensor(posterior, dtype=torch.get_default_dtype())
        self._posterior: Tensor = nn.Buffer(q, persistent=False)

    def forward(self, logits: Tensor, y: Tensor, row: Tensor | None) -> Tensor:
        """Sum of the losses, divided by n_samples.

        Without `row`, the cross-entropy of the labels y, as of other validation samples.
        """
        return F.cross_entropy(logits, y if row is None else self._posterior[row])

    def release(self) -> None:
        """Release the posteriors, which only the training needs."""
        self._posterior = self._posterior.new_empty((0, self._posterior.shape[1]))


def _state(logits: Tensor) -> tuple[int, int]:
    """Version and address of a tensor, which change with its values."""
    return logits._version, logits.data_ptr()


def _by_row(logits: Tensor, y: Tensor, n_classes: int) -> tuple[Tensor, Tensor]:
    """Logits of shape (n, n_classes) and labels of shape (n,), from those of sequences, too."""
    if logits.shape != (*y.shape, n_classes):
        needed = f"labels of shape {tuple(y.shape)} and T of {n_classes} classes require {(*y.shape, n_classes)}"
        advice = "If the classes are in dimension 1, pass logits.movedim(1, -1)"
        raise ValueError(f"logits have shape {tuple(logits.shape)}, but {needed}. {advice}.")
    return (logits, y) if y.ndim == 1 else (logits.reshape(-1, n_classes), y.reshape(-1))


def _mean_of_known(losses: Tensor, ignored: Tensor | None) -> Tensor:
    """Mean over the labels that are not ignored; 0 if there is none."""
    if ignored is None:
        return losses.sum() / max(len(losses), 1)
    return losses.masked_fill(ignored, 0).sum() / (len(losses) - ignored.sum()).clamp_min(1)


def _rows_at(table: Tensor, y: Tensor) -> Tensor:
    """Rows of a table at these labels. On a CPU, a label without a row raises an error."""
    try:
        return table.index_select(0, y)
    except IndexError as error:
        fact = f"labels of type {y.dtype} are {y.min()} to {y.max()}, but must be integers from 0 to {len(table) - 1}"
        raise ValueError(f"{fact}. Set labels to ignore to -100.") from error


# ---------------------------------------------------------------------------- weighted cross-entropy
# Its exponential is finite in float32, and losses are not in half precision
_LARGEST_LOG_RATIO = 80.0


class GeneralizedCrossEntropyLoss(nn.Module):
    """Generalized cross-entropy, ``(1 - p_y^q) / q`` with p = softmax(logits), optionally truncated.

    Its gradient is ``p_y^q`` times that of cross-entropy, so improbable labels have less weight.

    Parameters
    ----------
    q : float in [0, 1], default=0.7
        0 is cross-entropy, 1 is ``1 - p_y``.
    truncation : float in (0, 1), optional
        Samples with ``weight`` 0 have the constant loss ``(1 - truncation^q) / q`` without a gradient.

    References
    ----------
    Zhang, Sabuncu, "Generalized Cross Entropy Loss for Training Deep Neural Networks with Noisy Labels", NeurIPS 2018,
    equations (6) and (8).
    """

    def __init__(self, q: float = 0.7, *, truncation: float | None = None) -> None:
        super().__init__()
        self.q = q
        self.truncation = truncation
        #: columns of the batch that `forward` takes as arguments
        self.columns = () if truncation is None else ("weight",)

    def forward(self, logits: Tensor, y: Tensor, weight: Tensor | None = None) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes); `y` and `weight` have shape (n_samples,)."""
        log_p = -F.cross_entropy(logits, y, reduction="none")
        if self.truncation is not None and weight is not None:
            log_p = torch.where(weight > 0, log_p, math.log(self.truncation))
        # in log space: the derivative of p^q is infinite at p = 0
        loss = -torch.expm1(self.q * log_p) / self.q if self.q else -log_p
        return loss.mean()


class ImportanceReweightedLoss(nn.Module):
    """Importance-reweighted cross-entropy, with weights ``p_y / ((T + dT)' p)_y`` and p = softmax(logits).

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Fixed noise transition matrix T: entry (i, j) is P(noisy = j | true = i). dT starts at zero.

    Notes
    -----
    While dT is fixed, the weights are constants. If dT is learned (``revision.requires_grad``), dT and the logits also
    have gradients through the weights.

    References
    ----------
    Xia et al., "Are Anchor Points Really Indispensable in Label-Noise Learning?", NeurIPS 2019, equations (4), (6).
    """

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__()
        self.base = nn.Buffer(torch.as_tensor(np.asarray(transition_matrix), dtype=torch.get_default_dtype()))
        self.revision = nn.Parameter(torch.zeros_like(self.base), requires_grad=False)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Mean loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        log_p = torch.log_softmax(logits, dim=1)
        of_label = log_p.gather(1, y[:, None])
        T = (self.base + self.revision).clamp_min(0).to(logits.dtype)  # T + dT may have negative entries
        ratios = (log_p - of_label).clamp_max(_LARGEST_LOG_RATIO).exp()  # P(i | x) / P(y | x), which can be infinite
        beta = 1 / (ratios * T.T[y]).sum(1).clamp_min(torch.finfo(ratios.dtype).tiny ** 0.5)  # large but finite
        return -((beta if self.revision.requires_grad else beta.detach()) * of_label.squeeze(1)).mean()

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """T + dT as a float64 ndarray, with negative entries set to 0 and rows normalised."""
        T = (self.base + self.revision).detach().double().cpu().numpy().clip(min=1e-12)
        return T / T.sum(axis=1, keepdims=True)


class WeightedLoss(nn.Module):
    """Weighted cross-entropy, ``sum of a_n * l_n``, with ``a_n = V(l_n) / n_samples`` from a weighting network V.

    V is a linear layer with 100 units, ReLU, a linear layer with one output, and a sigmoid. Weights are constants in
    the gradient of the logits; V is learned by the meta-gradient only.

    References
    ----------
    Shu, Xie, Yi, Zhao, Zhou, Xu, Meng, "Meta-Weight-Net: Learning an Explicit Mapping For Sample Weighting", NeurIPS
    2019, equations (2) to (5).
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight_net = nn.Sequential(nn.Linear(1, 100), nn.ReLU(), nn.Linear(100, 1), nn.Sigmoid())

    def weights(self, losses: Tensor) -> Tensor:
        """V(l), between 0 and 1, for losses of shape (n_samples,)."""
        inputs = losses.detach()[:, None].to(next(self.parameters()).dtype)
        return self.weight_net(inputs).squeeze(1).to(losses.dtype)

    def shares(self, losses: Tensor) -> Tensor:
        """Factors a_n of the losses in the loss of the batch, of shape (n_samples,)."""
        return self.weights(losses) / len(losses)

    def forward(self, logits: Tensor, y: Tensor) -> Tensor:
        """Weighted loss of logits of shape (n_samples, n_classes) against noisy labels of shape (n_samples,)."""
        losses = F.cross_entropy(logits, y, reduction="none")
        return (self.shares(losses).detach() * losses).sum()

    # ---- look-ahead: gradient for the logits, and meta-gradient for a tangent of the logits
    @torch.no_grad()
    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """Gradient of the loss for the logits, a_n (f - e_y), of shape (n_samples, n_classes)."""
        return self.shares(F.cross_entropy(logits, y, reduction="none"))[:, None] * _cross_entropy_gradient(logits, y)

    @torch.enable_grad()
    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        """Gradient of ``- <cotangent, tangent> = - sum of a_n <f - e_y, u>_n`` for the parameters of V."""
        products = (_cross_entropy_gradient(logits, y) * tangent).sum(1).detach()
        gain = (self.shares(F.cross_entropy(logits.detach(), y, reduction="none")) * products).sum()
        return list(torch.autograd.grad(-gain, list(self.parameters())))


def _cross_entropy_gradient(logits: Tensor, y: Tensor) -> Tensor:
    """Gradient of the cross-entropy of each sample for its logits."""
    return torch.softmax(logits, dim=1) - F.one_hot(y, logits.shape[1]).to(logits.dtype)
