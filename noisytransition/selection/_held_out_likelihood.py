"""A T that held-out noisy labels speak for, against the drift of T where the meta-gradient fades."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import Dataset

from ..losses import noisy_log_likelihood
from ._selection import Selection, State

if TYPE_CHECKING:
    from ..nets import NoisyLabelNet

# of the way from the start to the T of the training: steps of T by small batches overshoot
_SHARES = (0.25, 0.5, 0.75, 1.0)
# bounds of the logarithm of a temperature: from 1/20 to 20
_LOG_TEMPERATURES = (-3.0, 3.0)


class HeldOutLikelihood(Selection):
    """The last network is kept, and T leaves its start only as far as the labels of held-out noisy rows speak for it.

    After every epoch, a quarter, a half, three quarters and all of the way from the start to the T of the training
    are candidates, and the one is taken that makes the held-out labels most likely. If network and T fit the labels
    better than after every epoch before, that T is kept if it makes them more likely than the start does, by more than
    a standard error of the difference; else the start. Each T is taken with the temperature of the logits that is best
    for it (Guo et al., 2017): a network that is not sure yet, or too sure, would ask for a sharper or a flatter T.

    The training goes through its own T all the time; the one that is kept takes its place at the end. Without rows
    that are held out, the last T is kept.

    Attributes
    ----------
    log_likelihood_ : float
        Mean of the held-out labels under network and T, at the best epoch so far.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", ICML 2017 (temperature scaling).
    """

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Keep the start."""
        super().on_train_begin(net, **kwargs)
        self.start_ = net.criterion_.transition_logits.detach().clone()
        self.kept_ = self.start_.clone()
        self.log_likelihood_ = -np.inf

    def kept(self, net: "NoisyLabelNet") -> State:
        """State of the loss with the T that is kept so far."""
        return super().kept(net) | {"transition_logits": self.kept_.clone()}

    def on_epoch_end(self, net: "NoisyLabelNet", dataset_valid: Dataset | None = None, **kwargs: Any) -> None:
        """Compare the candidates of this epoch."""
        end = net.criterion_.transition_logits.detach()
        if dataset_valid is None:
            self.kept_ = end.clone()
        else:
            logits, labels = (torch.cat(parts) for parts in zip(*net.evaluated(dataset_valid), strict=True))
            self.compare(logits, labels.to(logits.device), end)
        super().on_epoch_end(net, **kwargs)

    @torch.no_grad()
    def compare(self, logits: Tensor, labels: Tensor, end: Tensor) -> None:
        """Keep the best candidate on the way to `end`, or the start.

        Parameters
        ----------
        logits : Tensor of shape (n, n_classes)
        labels : Tensor of shape (n,)
            Noisy labels of the same rows.
        end : Tensor of shape (n_classes, n_classes)
            Logits of the T of the training.
        """
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # half precision is too coarse
        start = F.softmax(self.start_, 1)
        candidates = [torch.lerp(start, F.softmax(end, 1), share).log() for share in _SHARES]
        fits = [_log_likelihoods(logits, labels, log_T) for log_T in candidates]
        best = max(range(len(fits)), key=lambda k: fits[k].sum().item())
        if (mean := fits[best].mean().item()) > self.log_likelihood_:
            self.log_likelihood_ = mean
            gain = fits[best] - _log_likelihoods(logits, labels, start.log())
            standard_error = gain.std(correction=0) / (len(gain) - 1) ** 0.5  # of one row not a number: no gain
            self.kept_ = candidates[best] if gain.mean() > standard_error else self.start_.clone()

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Put the T that is kept into the loss."""
        net.criterion_.load_state_dict(self.kept(net))
        super().on_train_end(net, **kwargs)


def _log_likelihoods(logits: Tensor, labels: Tensor, log_transition: Tensor) -> Tensor:
    """Return the log-likelihood of each label under T, at the temperature that is best for all."""
    log_T = log_transition.to(logits)

    def at(log_temperature: float) -> Tensor:
        return noisy_log_likelihood(logits / np.exp(log_temperature), labels, log_T)

    best: Any = minimize_scalar(lambda t: -at(t).mean().item(), bounds=_LOG_TEMPERATURES, method="bounded")
    return at(best.x)
