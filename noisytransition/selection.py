"""What is kept of a training: the last epoch, the best epoch by a score, or the T of the best held-out likelihood."""

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
    """Keep the last epoch. Base class of what decides after every epoch, and at the end, what is kept of a training.

    A user's ``EarlyStopping(load_best=True)`` restores only the module of its best epoch; this class restores the loss
    of the same epoch.
    """

    #: whether rows must be held out to select by
    needs_validation = False

    def kept(self, net: "NoisyLabelNet") -> State:
        """State of the loss that would be kept if the training ended with this epoch."""
        return _copied(net.criterion_)

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Forget earlier trainings."""
        self.states_: list[State] = []

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Copy the state of the loss, if an EarlyStopping may restore this epoch."""
        if any(_restores_best(callback) for _, callback in net.callbacks_):
            self.states_.append(self.kept(net))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the loss of the best epoch of an EarlyStopping."""
        for _, callback in net.callbacks_:
            if _restores_best(callback) and 0 < callback.best_epoch_ <= len(self.states_):
                net.criterion_.load_state_dict(self.states_[callback.best_epoch_ - 1])
        self.states_ = []


class BestEpoch(Selection):
    """Keep module and loss of the epoch with the best score on held-out noisy rows, or with the best clean loss.

    Parameters
    ----------
    monitor : str
        Score in the history, such as ``valid_noisy_loss``, ``valid_noisy_acc`` or ``valid_clean_loss``. Of equal epochs
        the first is kept.
    lower_is_better : bool, default=True
        False for accuracies.
    """

    needs_validation = True

    def __init__(self, monitor: str, *, lower_is_better: bool = True) -> None:
        self.monitor = monitor
        self.lower_is_better = lower_is_better

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Forget earlier trainings."""
        super().on_train_begin(net, **kwargs)
        self.best_score_ = np.inf
        self.best_: tuple[State, State] | None = None

    def on_epoch_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Copy the state if the epoch is better than all before."""
        score = net.history[-1, self.monitor] * (1 if self.lower_is_better else -1)
        if score < self.best_score_:
            self.best_score_, self.best_ = score, (_copied(net.plain_module_), _copied(net.criterion_))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the best epoch."""
        if self.best_ is not None:
            net.plain_module_.load_state_dict(self.best_[0])
            net.criterion_.load_state_dict(self.best_[1])
            self.best_ = None


# candidates on the line from the start (0) to the T of training (1), which small batches often move too far; chosen
# among about thirty rules: examples/benchmarks/drift.py says on which seeds
_SHARES = (0.25, 0.5, 0.75, 1.0)
# standard errors of its gain by which another T must be more likely than the start. Of moves that made T worse the gain
# was 1.1 to 1.8 where one T is true (design half of examples/benchmarks/zoo), of those that made it better 1.7 to 8.3
_LEAST_GAIN = 2.0
# bounds of the logarithm of a temperature, from 1/20 to 20; a choice, not measured
_LOG_TEMPERATURES = (-3.0, 3.0)


class HeldOutLikelihood(Selection):
    """Keep the last network, and the T with the best likelihood of held-out noisy labels.

    After every epoch the most likely of the matrices at a quarter, a half, three quarters and the end of the line from
    the start to the T of training is taken. Of the epoch with the highest likelihood it is kept if its log-likelihood
    exceeds that of the start by more than two standard errors of the difference; otherwise the start is kept. The best
    of many epochs gains one by chance. Each likelihood is computed at the temperature of the logits that maximises it
    (Guo et al., 2017), since an over- or underconfident network makes another T more likely than the true one.

    The training uses its own T throughout; at its end the kept T is put into the loss. Without held-out rows the last T
    is kept.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", ICML 2017 (temperature scaling).
    """

    def on_train_begin(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Keep the start so far."""
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
        """Keep the best candidate between the start and `end`, or the start.

        Parameters
        ----------
        logits : Tensor of shape (n, n_classes)
            Of held-out rows.
        labels : Tensor of shape (n,)
            Noisy labels of the same rows.
        end : Tensor of shape (n_classes, n_classes)
            Logits of the T of training.
        """
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))  # half precision is too coarse
        start, end = F.softmax(self.start_, 1), F.softmax(end, 1)
        at_start, at_end = (T.T[labels] for T in (start, end))  # all that the likelihood reads
        fits = [_log_likelihoods(logits, torch.lerp(at_start, at_end, share).log()) for share in _SHARES]
        best = max(range(len(fits)), key=lambda k: fits[k].sum().item())
        if (mean := fits[best].mean().item()) > self.log_likelihood_:
            self.log_likelihood_ = mean
            gain = fits[best] - _log_likelihoods(logits, at_start.log())
            standard_error = gain.std(correction=0) / (len(gain) - 1) ** 0.5  # nan for one row: then the start is kept
            moved = gain.mean() > _LEAST_GAIN * standard_error
            self.kept_ = torch.lerp(start, end, _SHARES[best]).log() if moved else self.start_.clone()

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Put the T that is kept into the loss."""
        net.criterion_.load_state_dict(self.kept(net))
        super().on_train_end(net, **kwargs)


def _log_likelihoods(logits: Tensor, columns: Tensor) -> Tensor:
    """Log-likelihood of each row's label, from its column of log T, at the temperature that maximises their sum."""
    columns = columns.to(logits)

    def at(log_temperature: float) -> Tensor:
        return log_likelihood_by_columns(logits / np.exp(log_temperature), columns)

    best: Any = minimize_scalar(lambda t: -at(t).mean().item(), bounds=_LOG_TEMPERATURES, method="bounded")
    return at(best.x)


def _copied(part: nn.Module) -> State:
    """Copy of the state of a module or a loss."""
    return {name: value.detach().clone() for name, value in part.state_dict().items()}


def _restores_best(callback: Callback) -> bool:
    return isinstance(callback, EarlyStopping) and callback.load_best
