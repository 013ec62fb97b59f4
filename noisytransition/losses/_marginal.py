"""Cross-entropy of what is observed of each row, whose true class is summed over; with its gradient in closed form."""

from typing import Any

import torch
from torch import Tensor


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
