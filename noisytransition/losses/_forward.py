"""Forward correction: cross-entropy of the noisy label under the clean posterior times T; and gold loss correction."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

# smallest initial entry of T: with log 0 the gradient would be 0 for good, and a label with an empty column would have
# an infinite loss. A choice, not measured.
MIN_ENTRY = 1e-12
# entries of T in a part that is computed at once: all of T for up to 1,024 classes
_PART_SIZE = 2**20


def corrected_cross_entropy(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    r"""Mean corrected cross-entropy, ``- log sum_i f_i(x) T[i, y]``.

    With f = softmax(logits); computed in log space, so that no entry of T or f underflows. Only the column of T
    of each noisy label is read: memory is proportional to n_samples x n_classes.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)
        Output of the network for the *true* label, before the softmax.
    y : Tensor of shape (n_samples,)
        Noisy labels, 0 to n_classes - 1.
    log_transition : Tensor of shape (n_classes, n_classes)
        log T; row i, column j is log P(noisy = j | true = i).

    Returns
    -------
    Tensor
        A scalar.

    References
    ----------
    Patrini et al., "Making Deep Neural Networks Robust to Label Noise", CVPR 2017, equation (6).
    """
    return -log_likelihood_by_columns(logits, log_transition.T[y]).mean()


def log_likelihood_by_columns(logits: Tensor, columns: Tensor) -> Tensor:
    """Return log P(noisy label | x) of each row, from the column of log T of its label: both (n_samples, n_classes)."""
    return torch.logsumexp(F.log_softmax(logits, 1) + columns, dim=1)


def marginal_cross_entropy(logits: Tensor, columns: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted sum of ``- log sum_i f_i(x) exp(columns_i)``, and the posteriors of the true classes.

    With f = softmax(logits). The gradient by the logits is ``weights * (f - posterior)``, that by the columns
    ``- weights * posterior``: in fewer operations than by autograd, and with the posterior of the loss.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_classes)
        Of the network. Gradients by them and by the columns are found once: they cannot be differentiated again.
    columns : Tensor of shape (n_samples, n_classes)
        Log P(what is observed | true class): a column of log T for a noisy label, 0 and -inf for a clean label. One
        entry of each row at least is finite. They are overwritten.
    weights : Tensor of shape (n_samples,)
        Of the rows.

    Returns
    -------
    tuple of (Tensor, Tensor)
        A scalar, and P(true class | x, what is observed) of shape (n_samples, n_classes).
    """
    loss, posterior = _MarginalCrossEntropy.apply(logits, columns, weights)
    return loss, posterior


class _MarginalCrossEntropy(torch.autograd.Function):
    # `setup_context` would take as long as all of the computation, for a batch of a small network
    @staticmethod
    def forward(ctx: Any, logits: Tensor, columns: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        log_proba = torch.log_softmax(logits, 1)
        joint = columns.add_(log_proba)
        log_posterior = torch.log_softmax(joint, 1)
        # log P(what is observed | x) is their difference, the same in all finite entries of a row
        losses = log_posterior.amax(1) - joint.amax(1)
        posterior = log_posterior.exp_()
        ctx.mark_non_differentiable(posterior)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(log_proba, posterior, weights)
        return (losses * weights).sum(), posterior  # a product of vectors is of half precision under autocast

    @staticmethod
    def backward(ctx: Any, by_loss: Tensor, by_posterior: None) -> tuple[Tensor, Tensor | None, None]:
        if torch.is_grad_enabled():  # `once_differentiable` says so too, in 15 microseconds
            raise RuntimeError("this gradient cannot be differentiated again: use `corrected_cross_entropy`")
        log_proba, posterior, weights = ctx.saved_tensors
        scale = (weights * by_loss)[:, None]
        by_columns = posterior * -scale if ctx.needs_input_grad[1] else None
        return log_proba.exp().sub_(posterior).mul_(scale), by_columns, None


class ForwardLoss(nn.Module):
    """Corrected cross-entropy that holds its transition matrix as ``T = row-softmax(transition_logits)``.

    T is a parameter of the loss: it moves to the device and is saved with it. Its value is changed by an update
    (`noisytransition.updates`); it is not among the network's parameters.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Row i, column j is P(noisy = j | true = i).

    Notes
    -----
    A step reads the columns of T of the labels in its batch. The rows are normalised once for each value of T: change
    ``transition_logits`` in place under ``torch.no_grad()``. A change through its ``.data`` or by a fused optimiser is
    noticed after ``torch.autograd.graph.increment_version(loss.transition_logits)`` only.

    Gradients of the loss are in closed form, and cannot be differentiated again (Hessians, ``torch.func``): use
    `corrected_cross_entropy` there.
    """

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__()
        T = np.maximum(np.asarray(transition_matrix, dtype=np.float64), MIN_ENTRY)
        by_label = torch.as_tensor(np.log(T).T.copy(), dtype=torch.get_default_dtype())
        # column by column in memory: a step reads the columns of its labels
        self.transition_logits = nn.Parameter(by_label.T, requires_grad=False)
        # the logits, their state, what normalises their rows, and T by label unless it is large
        self._known: tuple[Tensor, tuple[int, int], Tensor, Tensor | None] | None = None
        #: P(true | x, noisy label) of the noisy rows of the last batch, if T is not learned by gradients
        self.posterior_: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is found again."""
        return vars(self) | {"_known": None, "posterior_": None}

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Rows in order in memory, as formats of files want them."""
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}transition_logits"] = destination[f"{prefix}transition_logits"].contiguous()

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """T, a float64 ndarray of shape (n_classes, n_classes); row i, column j is P(noisy j | true i)."""
        return torch.softmax(self.transition_logits.detach().cpu().double(), dim=1).numpy()

    @property
    def transition_by_label(self) -> Tensor:
        """T transposed, of the type of its logits: row j belongs to the noisy label j."""
        return F.log_softmax(self.transition_logits.detach(), dim=1).exp().T.contiguous()

    @property
    def takes_clean_rows(self) -> bool:
        """Whether `forward` takes clean rows too; that of a subclass may not."""
        return type(self).forward is ForwardLoss.forward

    def forward(self, logits: Tensor, y: Tensor, y_clean: Tensor | None = None, clean_weight: float = 0.0) -> Tensor:
        """Mean loss of logits against noisy labels; clean rows add their mean cross-entropy, times a weight.

        Parameters
        ----------
        logits : Tensor of shape (n_samples + n_clean, n_classes)
            Of the noisy rows, then of the clean rows.
        y : Tensor of shape (n_samples,)
            Noisy labels.
        y_clean : Tensor of shape (n_clean,), optional
            True labels.
        clean_weight : float, default=0.0
            Weight of their mean loss; that of the noisy rows has weight 1.

        Returns
        -------
        Tensor
            A scalar.
        """
        n, n_clean = len(y), len(logits) - len(y)
        columns = self._columns(y).to(logits.dtype)
        weights = logits.new_full((n,), 1 / max(n, 1))
        if y_clean is not None:
            certain = columns.new_full((n_clean, columns.shape[1]), -torch.inf).scatter_(1, y_clean[:, None], 0)
            columns = torch.cat([columns, certain])
            weights = torch.cat([weights, weights.new_full((n_clean,), clean_weight / max(n_clean, 1))])
        loss, posterior = marginal_cross_entropy(logits, columns, weights)
        self.posterior_ = None if self.transition_logits.requires_grad else posterior[:n]
        return loss

    def log_likelihood(self, logits: Tensor, y: Tensor) -> Tensor:
        """Log P(noisy label | x) of each row."""
        return log_likelihood_by_columns(logits, self._columns(y).to(logits.dtype))

    def posterior(self, logits: Tensor, y: Tensor) -> Tensor:
        """P(true | x, noisy label) of each row, of shape (n_samples, n_classes)."""
        return torch.softmax(logits + self._columns(y).to(logits.dtype), dim=1)

    # ---- T, normalised once for each value: this takes time of order n_classes^2
    def _columns(self, y: Tensor) -> Tensor:
        """Columns of log T of some labels, as rows."""
        learned = self.transition_logits.requires_grad
        normalizer = torch.logsumexp(self.transition_logits, 1) if learned else self._normalized()[0]
        return self.transition_logits.T.index_select(0, y).sub_(normalizer)

    def _normalized(self) -> tuple[Tensor, Tensor | None]:
        """Logarithm of the sums of the rows of exp(logits), and T by label unless it is large."""
        logits, by_label = self.transition_logits, self.transition_logits.detach().T
        if self._known is None or self._known[0] is not logits or self._known[1] != _state(logits):
            top, total = by_label.amax(0), torch.zeros_like(by_label[0])
            for part in _parts(by_label):
                proba = (part - top).exp_()
                total += proba.sum(0)
            is_whole = len(proba) == len(by_label)
            self._known = (logits, _state(logits), top + total.log(), proba.div_(total) if is_whole else None)
        return self._known[2:]

    @torch.no_grad()
    def set_counts(self, counts: Tensor, sums: Tensor, y: Tensor | None = None) -> None:
        """Make T the rows of counts, divided by their sums.

        Parameters
        ----------
        counts : Tensor of shape (n_classes, n_classes)
            Positive; row j belongs to the noisy label j, column i to the true label i.
        sums : Tensor of shape (n_classes,)
            Of the columns of `counts`.
        y : Tensor, optional
            Labels whose counts have changed since the last call; default: all. Their order and number do not matter.
        """
        if y is None or len(counts) <= len(y):
            self.transition_logits.copy_(counts.T).log_()
        else:
            self.transition_logits.T.index_copy_(0, y, counts.index_select(0, y).log_())
        self._known = (self.transition_logits, _state(self.transition_logits), sums.log(), None)

    # ---- for the look-ahead: gradient with respect to the logits, and meta-gradient for a tangent of the logits
    @torch.no_grad()
    def cotangent(self, logits: Tensor, y: Tensor) -> Tensor:
        """d mean loss / d logits = (f - q) / n_samples, of shape (n_samples, n_classes)."""
        return (torch.softmax(logits, 1) - self.posterior(logits, y)) / len(y)

    @torch.no_grad()
    def meta_gradients(self, logits: Tensor, y: Tensor, tangent: Tensor) -> list[Tensor]:
        r"""Gradient of ``- <cotangent, tangent>`` with respect to the logits of T, in closed form.

        With q the posterior and u the tangent::

            A[k, j]    = 1/n sum_{n: y_n = j} q_nk (u_nk - sum_i q_ni u_ni)
            grad_Theta = A - T * rowsum(A)

        Parameters
        ----------
        logits, tangent : Tensor of shape (n_samples, n_classes)
            Of the noisy batch, from the look-ahead.
        y : Tensor of shape (n_samples,)
            Noisy labels, 0 to n_classes - 1.

        Returns
        -------
        list of one Tensor of shape (n_classes, n_classes)
        """
        q = self.posterior(logits, y)
        terms = (q * (tangent - (q * tangent).sum(1, keepdim=True)) / len(y)).to(self.transition_logits.dtype)
        by_label = self._proba_times(-terms.sum(0)).index_add_(0, y, terms)
        return [by_label.T]

    def _proba_times(self, factor: Tensor) -> Tensor:
        """T by label, times a factor for each true class."""
        normalizer, proba = self._normalized()
        if proba is not None:
            return proba * factor
        by_label = self.transition_logits.detach().T
        product = torch.empty_like(by_label)
        for part, out in zip(_parts(by_label), _parts(product), strict=True):
            torch.sub(part, normalizer, out=out).exp_().mul_(factor)
        return product


class SourcesLoss(ForwardLoss):
    """Loss of rows with labels of several sources, by the column ``row``: - log of sum_i f_i(x) P(labels of row | i).

    Parameters
    ----------
    likelihood : ndarray of shape (n_rows, n_classes)
        Probability of all labels of each row, given each true class, up to a factor for each row.
    """

    columns, takes_clean_rows = ("row",), True
    _logs: Tensor

    def __init__(self, likelihood: NDArray[np.float64]) -> None:
        super().__init__(np.eye(likelihood.shape[1]))
        logs = np.log(np.maximum(likelihood, MIN_ENTRY))
        self.register_buffer("_logs", torch.as_tensor(logs, dtype=torch.get_default_dtype()), persistent=False)

    def forward(self, logits: Tensor, y: Tensor, *clean: Any, row: Tensor) -> Tensor:  # type: ignore[override]
        """Mean loss of logits against the labels of rows of these numbers, not `y`; clean rows as in `ForwardLoss`."""
        return super().forward(logits, row, *clean)

    def _columns(self, y: Tensor) -> Tensor:
        return self._logs[y]


class GoldCorrectionLoss(ForwardLoss):
    """Corrected loss of noisy rows (`ForwardLoss`), cross-entropy of clean rows, which the column ``is_clean`` marks.

    Parameters
    ----------
    transition_matrix : array-like of shape (n_classes, n_classes)
        Row i, column j is P(noisy = j | true = i).

    References
    ----------
    Hendrycks, Mazeika, Wilson, Gimpel, "Using Trusted Data to Train Deep Networks on Labels Corrupted by Severe
    Noise", NeurIPS 2018, Algorithm 1.
    """

    columns = ("is_clean",)

    def forward(self, logits: Tensor, y: Tensor, is_clean: Tensor) -> Tensor:  # type: ignore[override]
        """Mean loss of logits of shape (n_samples, n_classes); `y` and `is_clean` are of shape (n_samples,)."""
        clean = F.cross_entropy(logits, y, reduction="none")
        noisy = -self.log_likelihood(logits, y)
        return torch.where(is_clean, clean, noisy).mean()


def _state(logits: Tensor) -> tuple[int, int]:
    """What changes when a tensor does."""
    return logits._version, logits.data_ptr()


def _parts(matrix: Any) -> Any:
    """Rows of a square matrix in parts that the processor's cache holds."""
    n = max(1, _PART_SIZE // len(matrix))
    return [matrix[i : i + n] for i in range(0, len(matrix), n)]
