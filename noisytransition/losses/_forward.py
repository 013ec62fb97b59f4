"""Forward correction: cross-entropy of the noisy label under the clean posterior times T."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ._known import KnownPosterior, KnownTransition
from ._marginal import marginal_cross_entropy

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

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import corrected_cross_entropy
    >>> z, y = torch.tensor([[2.0, 0.0]]), torch.tensor([1])
    >>> float(corrected_cross_entropy(z, y, torch.tensor([[0.5, 0.5], [0.5, 0.5]]).log()))  # uniform: log 2
    0.693...
    """
    return -noisy_log_likelihood(logits, y, log_transition).mean()


def noisy_log_likelihood(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    """Return log P(noisy label | x) of each row; `corrected_cross_entropy` is minus its mean.

    Parameters
    ----------
    logits, y, log_transition
        As in `corrected_cross_entropy`.

    Returns
    -------
    Tensor of shape (n_samples,)

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import noisy_log_likelihood
    >>> sure = torch.tensor([[9.0, -9.0], [9.0, -9.0]])  # both rows are of class 0
    >>> log_T = torch.tensor([[0.6, 0.4], [0.0, 1.0]]).log()
    >>> noisy_log_likelihood(sure, torch.tensor([0, 1]), log_T).exp()
    tensor([0.6000, 0.4000])
    """
    return log_likelihood_by_columns(logits, log_transition.T[y])


def log_likelihood_by_columns(logits: Tensor, columns: Tensor) -> Tensor:
    """Return log P(noisy label | x) of each row, from the column of log T of its label: both (n_samples, n_classes)."""
    return torch.logsumexp(F.log_softmax(logits, 1) + columns, dim=1)


def clean_posterior(logits: Tensor, y: Tensor, log_transition: Tensor) -> Tensor:
    """P(true = i | x, noisy label y), the "responsibilities" of the corrected loss.

    Parameters
    ----------
    logits, y, log_transition
        As in `corrected_cross_entropy`.

    Returns
    -------
    Tensor of shape (n_samples, n_classes)
        Rows sum to 1.

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import clean_posterior
    >>> unsure = torch.zeros(2, 2)
    >>> log_T = torch.tensor([[0.6, 0.4], [0.0, 1.0]]).log()  # no 1 is ever called 0
    >>> clean_posterior(unsure, torch.tensor([0, 1]), log_T)
    tensor([[1.0000, 0.0000],
            [0.2857, 0.7143]])
    """
    return torch.softmax(logits + log_transition.T[y], dim=1)


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
    The posteriors of the last batch are remembered too, and must not be changed; logits or labels that are changed
    through ``.data`` or numpy are taken for the same.

    Gradients of the loss are in closed form, and cannot be differentiated again (Hessians, ``torch.func``): use
    `corrected_cross_entropy` there.

    Examples
    --------
    >>> import torch
    >>> from noisytransition.losses import ForwardLoss
    >>> loss = ForwardLoss([[0.6, 0.4], [0.0, 1.0]])
    >>> loss.transition_matrix.round(3)
    array([[0.6, 0.4],
           [0. , 1. ]])
    >>> float(loss(torch.tensor([[9.0, -9.0]]), torch.tensor([1])))  # - log 0.4
    0.916...
    """

    def __init__(self, transition_matrix: ArrayLike) -> None:
        super().__init__()
        T = np.maximum(np.asarray(transition_matrix, dtype=np.float64), MIN_ENTRY)
        by_label = torch.as_tensor(np.log(T).T.copy(), dtype=torch.get_default_dtype())
        # column by column in memory: a step reads the columns of its labels
        self.transition_logits = nn.Parameter(by_label.T, requires_grad=False)
        self._known: KnownTransition | None = None
        self._seen: KnownPosterior | None = None
        self._last_weights: tuple[Any, Tensor | None] = (None, None)
        self._keeps_proba = False

    def __getstate__(self) -> dict[str, Any]:
        """Without what is known of T and of the last batch, which is found again."""
        return vars(self) | {"_known": None, "_seen": None, "_last_weights": (None, None)}

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Rows in order in memory, as formats of files want them."""
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}transition_logits"] = destination[f"{prefix}transition_logits"].contiguous()

    @property
    def log_transition(self) -> Tensor:
        """Log T, a Tensor of shape (n_classes, n_classes)."""
        return F.log_softmax(self.transition_logits, dim=1)

    @property
    def transition_matrix(self) -> NDArray[np.float64]:
        """T, a float64 ndarray of shape (n_classes, n_classes); row i, column j is P(noisy j | true i)."""
        logits = self.transition_logits.detach().cpu()
        T = np.empty(logits.shape)
        for part, out in zip(_parts(logits), _parts(T), strict=True):
            out[:] = torch.softmax(part.double(), dim=1).numpy()
        return T

    @property
    def transition_by_label(self) -> Tensor:
        """T transposed, of the type of its logits: row j belongs to the noisy label j."""
        by_label = self.transition_logits.detach().T
        if len(_parts(by_label)) == 1:
            return self.log_transition.detach().exp().T.contiguous()
        return self._write_proba(torch.empty_like(by_label))

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
        n = len(y)
        if type(self).log_likelihood is not ForwardLoss.log_likelihood:  # that of a subclass
            loss = -self.log_likelihood(logits[:n], y).mean()
            return loss if y_clean is None else loss + clean_weight * F.cross_entropy(logits[n:], y_clean)
        columns = self._columns(y).to(logits.dtype)
        if y_clean is not None:
            certain = columns.new_full((len(y_clean), columns.shape[1]), -torch.inf).scatter_(1, y_clean[:, None], 0)
            columns = torch.cat([columns, certain])
        loss, posterior = marginal_cross_entropy(logits, columns, self._weights(logits, n, clean_weight))
        if not self.transition_logits.requires_grad:
            self._seen = KnownPosterior.of(logits, y, self._normalized(), posterior[:n])
        return loss

    def log_likelihood(self, logits: Tensor, y: Tensor) -> Tensor:
        """Log P(noisy label | x) of each row, as `noisy_log_likelihood`."""
        return log_likelihood_by_columns(logits, self._columns(y).to(logits.dtype))

    def posterior(self, logits: Tensor, y: Tensor) -> Tensor:
        """P(true | x, noisy label), as `clean_posterior`; known for the batch that was seen last: do not change it."""
        learned = self.transition_logits.requires_grad
        if not learned and self._seen is not None and self._seen.holds_for(logits, y, self._normalized()):
            return self._seen.posterior
        posterior = torch.softmax(logits + self._columns(y).to(logits.dtype), dim=1)
        if not learned and not posterior.requires_grad:
            self._seen = KnownPosterior.of(logits, y, self._normalized(), posterior)
        return posterior

    def _weights(self, logits: Tensor, n: int, clean_weight: float) -> Tensor:
        """Weights of n noisy rows and of clean rows, which most batches share."""
        n_clean = len(logits) - n
        of = (n, n_clean, clean_weight, logits.dtype, logits.device)
        known, weights = self._last_weights
        if known != of or type(weights) is not Tensor:  # but a tensor of a mode that traces
            with torch.inference_mode(False):
                noisy = torch.full((n,), 1 / max(n, 1), dtype=logits.dtype, device=logits.device)
                weights = torch.cat([noisy, noisy.new_full((n_clean,), clean_weight / max(n_clean, 1))])
            self._last_weights = (of, weights)
        return weights

    # ---- T, normalised once
    def _columns(self, y: Tensor) -> Tensor:
        """Columns of log T of some labels, as rows."""
        learned = self.transition_logits.requires_grad
        normalizer = torch.logsumexp(self.transition_logits, 1) if learned else self._normalized().normalizer
        return self.transition_logits.T.index_select(0, y).sub_(normalizer)

    def _normalized(self) -> KnownTransition:
        """What is known of T, computed anew if T has changed."""
        logits = self.transition_logits
        if self._known is None or not self._known.holds_for(logits):
            by_label = logits.detach().T
            top, total = by_label.amax(0), torch.zeros_like(by_label[0])
            for part in _parts(by_label):
                proba = (part - top).exp_()
                total += proba.sum(0)
            keeps = self._keeps_proba and len(proba) == len(by_label)
            self._known = KnownTransition.of(logits, top + total.log(), proba.div_(total) if keeps else None)
        return self._known

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
        self._known = KnownTransition.of(self.transition_logits, sums.log())

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
        """T transposed, times a factor for each true class; in the place of the last gradient where T is large."""
        known, logits = self._normalized(), self.transition_logits
        self._keeps_proba, self._known = True, known._replace(proba=None)  # from now on T comes with the normaliser
        if known.proba is not None:
            return known.proba.mul_(factor)
        last = logits.grad
        return self._write_proba(torch.empty_like(logits.T) if last is None else last.T, factor)

    def _write_proba(self, out: Tensor, factor: Tensor | float = 1.0) -> Tensor:
        """Write T transposed, times a factor for each true class."""
        normalizer = self._normalized().normalizer
        for part, values in zip(_parts(self.transition_logits.detach().T), _parts(out), strict=True):
            torch.sub(part, normalizer, out=values).exp_().mul_(factor)
        return out


def _parts(matrix: Any) -> Any:
    """Rows of a square matrix in parts that the processor's cache holds."""
    n = max(1, _PART_SIZE // len(matrix))
    return [matrix[i : i + n] for i in range(0, len(matrix), n)]
