"""Callbacks that select the state of a training: the last epoch, the best epoch, or T by held-out likelihood."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from skorch.callbacks import Callback, EarlyStopping
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import Dataset

from .losses._forward import log_likelihood_by_columns

if TYPE_CHECKING:
    from .nets import NoisyLabelNet

__all__ = ["BestEpoch", "HeldOutLikelihood", "Selection"]

State = dict[str, Tensor]


class Selection(Callback):
    """Select the last epoch. Base class of callbacks that select the module and the loss of a training.

    ``EarlyStopping(load_best=True)`` restores only the module of its best epoch; this class restores the loss of the
    same epoch.
    """

    #: whether the selection requires held-out samples
    needs_validation = False

    def kept(self, net: "NoisyLabelNet") -> State:
        """Return the state of the loss to select if the training ends after this epoch."""
        return _copied(net.criterion_)

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Reset the saved states."""
        self.states_: list[State] = []

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Save the state of the loss if an EarlyStopping may restore this epoch."""
        if any(_restores_best(callback) for _, callback in net.callbacks_):
            self.states_.append(self.kept(net))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the loss of the best epoch of an EarlyStopping callback."""
        for _, callback in net.callbacks_:
            if _restores_best(callback) and 0 < callback.best_epoch_ <= len(self.states_):
                net.criterion_.load_state_dict(self.states_[callback.best_epoch_ - 1])
        self.states_ = []


class BestEpoch(Selection):
    """Select module and loss of the epoch with the best score in the history.

    Parameters
    ----------
    monitor : str
        Name of the score, such as ``valid_noisy_loss``, ``valid_noisy_acc`` or ``valid_clean_loss``. Ties are resolved
        to the first epoch.
    lower_is_better : bool, default=True
        Pass False for accuracies.
    """

    needs_validation = True

    def __init__(self, monitor: str, *, lower_is_better: bool = True) -> None:
        self.monitor = monitor
        self.lower_is_better = lower_is_better

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Reset the best epoch."""
        super().on_train_begin(net, **kwargs)
        self.best_score_ = np.inf
        self.best_: tuple[State, State] | None = None

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Save the state if the score is better than in all earlier epochs."""
        score = net.history[-1, self.monitor] * (1 if self.lower_is_better else -1)
        if score < self.best_score_:
            self.best_score_, self.best_ = score, (_copied(net.plain_module_), _copied(net.criterion_))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the best epoch."""
        if self.best_ is not None:
            net.plain_module_.load_state_dict(self.best_[0])
            net.criterion_.load_state_dict(self.best_[1])
            self.best_ = None


# candidates between the initial T (0) and the trained T (1), which small batches often move too far; selected from
# about thirty rules on the seeds in examples/benchmarks/drift.py
_SHARES = (0.25, 0.5, 0.75, 1.0)
# least gain in log-likelihood over the initial T, in standard errors. With class-conditional noise (design half of
# examples/benchmarks/zoo), the gain was 1.1 to 1.8 if the error of T increased, and 1.7 to 8.3 if it decreased
_LEAST_GAIN = 2.0
# bounds of the log-temperature: 1/20 to 20; not measured
_LOG_TEMPERATURES = (-3.0, 3.0)


class HeldOutLikelihood(Selection):
    """Select the last network, and T by the likelihood of held-out noisy labels.

    After each epoch, the candidates are the matrices at a quarter, a half, three quarters and the end of the line from
    the initial T to the trained T. The most likely candidate over all epochs is selected if its log-likelihood exceeds
    the initial T's by more than two standard errors of the difference (the best of many epochs gains one by chance);
    otherwise the initial T is selected. Each likelihood is maximised over the temperature of the logits (Guo et al.,
    2017), because an over- or underconfident network makes a wrong T more likely than the true T.

    The training is not affected; the selected T replaces T in the loss when it ends. Without held-out samples, the last
    T is selected.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", ICML 2017 (temperature scaling).
    """

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Select the initial T."""
        super().on_train_begin(net, **kwargs)
        self.start_ = net.criterion_.transition_logits.detach().clone()
        self.kept_ = self.start_.clone()
        self.log_likelihood_ = -np.inf

    def kept(self, net: "NoisyLabelNet") -> State:
        """Return the state of the loss with the T selected so far."""
        return super().kept(net) | {"transition_logits": self.kept_.clone()}

    def on_epoch_end(self, net: "NoisyLabelNet", dataset_valid: Dataset | None = None, **kwargs: Any) -> None:
        """Evaluate the candidates of this epoch."""
        end = net.criterion_.transition_logits.detach()
        if dataset_valid is None:
            self.kept_ = end.clone()
        else:
            logits, labels = (torch.cat(parts) for parts in zip(*net.evaluated(dataset_valid), strict=True))
            self.compare(logits, labels.to(logits.device), end)
        super().on_epoch_end(net, **kwargs)

    @torch.no_grad()
    def compare(self, logits: Tensor, labels: Tensor, end: Tensor) -> None:
        """Select the best candidate between the initial T and `end`, or the initial T.

        `logits` (n, n_classes) and noisy `labels` (n,) are from held-out samples; `end` (n_classes, n_classes) has the
        logits of the trained T.
        """
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # half precision is too coarse
        start, end = F.softmax(self.start_, 1), F.softmax(end, 1)
        at_start, at_end = (T.T[labels] for T in (start, end))  # columns of the labels
        fits = [_log_likelihoods(logits, torch.lerp(at_start, at_end, share).log()) for share in _SHARES]
        best = max(range(len(fits)), key=lambda k: fits[k].sum().item())
        if (mean := fits[best].mean().item()) > self.log_likelihood_:
            self.log_likelihood_ = mean
            gain = fits[best] - _log_likelihoods(logits, at_start.log())
            standard_error = gain.std(correction=0) / (len(gain) - 1) ** 0.5  # nan for one sample: no move
            moved = gain.mean() > _LEAST_GAIN * standard_error
            self.kept_ = torch.lerp(start, end, _SHARES[best]).log() if moved else self.start_.clone()

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Replace T in the loss by the selected T."""
        net.criterion_.load_state_dict(self.kept(net))
        super().on_train_end(net, **kwargs)


def _log_likelihoods(logits: Tensor, columns: Tensor) -> Tensor:
    """Log-likelihood of each label, from its column of log T, at the temperature that maximises their sum."""
    columns = columns.to(logits)

    def at(log_temperature: float) -> Tensor:
        return log_likelihood_by_columns(logits / np.exp(log_temperature), columns)

    best: Any = minimize_scalar(lambda t: -at(t).mean().item(), bounds=_LOG_TEMPERATURES, method="bounded")
    return at(best.x)


def _copied(part: nn.Module) -> State:
    """Copy the state of a module or loss."""
    return {name: value.detach().clone() for name, value in part.state_dict().items()}


def _restores_best(callback: Callback) -> bool:
    return isinstance(callback, EarlyStopping) and callback.load_best
