"""Selection of T by the likelihood of held-out noisy labels."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import Dataset

from ..losses._forward import log_likelihood_by_columns
from ._selection import Selection, State

if TYPE_CHECKING:
    from ..nets import NoisyLabelNet

# candidates on the line from the start (0) to the T of training (1), which small batches often move too far; chosen
# among about thirty rules: examples/benchmarks/drift.py says on which seeds
_SHARES = (0.25, 0.5, 0.75, 1.0)
# Of moves that made T worse the gain was 1.1 to 1.8 standard errors where one T is true (design half of
# examples/benchmarks/zoo, affairs of clean_shares.py, EM's T in drift.py), of those that made it better 1.7 to 8.3
# (GLC's T in drift.py)
_LEAST_GAIN = 2.0
# bounds of the logarithm of a temperature, from 1/20 to 20; a choice, not measured
_LOG_TEMPERATURES = (-3.0, 3.0)


class HeldOutLikelihood(Selection):
    """Keep the last network, and the T with the best likelihood of held-out noisy labels.

    After every epoch there are four candidates: the matrices at a quarter, a half, three quarters and the end of the
    line from the start to the T of training. Of these the one with the highest log-likelihood of the held-out labels is
    taken. If this log-likelihood is the highest of all epochs so far, that candidate is kept, provided that it exceeds
    the log-likelihood of the start by more than two standard errors of the difference (`least_gain`); otherwise the
    start is kept. The best of many epochs gains one by chance.
    Each log-likelihood is computed at the temperature of the logits that maximises it (Guo et al., 2017), since an
    over- or underconfident network makes another T more likely than the true one. The temperature is the scale of the
    matrix scaling by which `noisytransition.transition.em_transition_matrix` calibrates, without its other parameters:
    they need held-out clean rows.

    The training uses its own T throughout; at its end the kept T is put into the loss. Without held-out rows the last T
    is kept.

    Parameters
    ----------
    least_gain : float, default=2.0
        Standard errors of its gain by which another T must be more likely than the start; infinity keeps the start.

    Attributes
    ----------
    log_likelihood_ : float
        Mean log-likelihood of the held-out labels at the best epoch so far.

    References
    ----------
    Guo, Pleiss, Sun, Weinberger, "On Calibration of Modern Neural Networks", ICML 2017 (temperature scaling).

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skorch.dataset import ValidSplit
    >>> from noisytransition.losses import ForwardLoss
    >>> from noisytransition.nets import CleanBatches, NoisyLabelNet, Rows
    >>> from noisytransition.selection import HeldOutLikelihood
    >>> from noisytransition.updates import PosteriorCounts
    >>> y = np.arange(200) % 2
    >>> y_noisy = np.where(np.isin(np.arange(200) % 10, [0, 2]), 1, y)  # 40 % of class 0 are called 1
    >>> rows = Rows((2.0 * y - 1)[:, None].astype(np.float32), y_noisy)
    >>> _ = torch.manual_seed(0)
    >>> loss, update = ForwardLoss([[0.9, 0.1], [0.1, 0.9]]), PosteriorCounts(0.1)
    >>> given = {"clean_batches": CleanBatches(Rows(rows.X[:20], y[:20]), 10), "clean_weight": 9.0}
    >>> given |= {"select": HeldOutLikelihood(), "train_split": ValidSplit(4)}
    >>> net = NoisyLabelNet(
    ...     torch.nn.Linear(1, 2), criterion=loss, update=update, **given, lr=1.0, max_epochs=10, verbose=0)
    >>> net = net.fit(rows, rows.label)
    >>> net.criterion_.transition_matrix.round(1)
    array([[0.7, 0.3],
           [0. , 1. ]])
    """

    def __init__(self, least_gain: float = _LEAST_GAIN) -> None:
        self.least_gain = least_gain

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
            moved = gain.mean() > self.least_gain * standard_error
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
