"""Selection of the best epoch by a score of held-out rows."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ._selection import Selection, State, copied

if TYPE_CHECKING:
    from ..nets import NoisyLabelNet


class BestEpoch(Selection):
    """Keep module and loss of the epoch with the best score on held-out noisy rows, or with the best clean loss.

    Parameters
    ----------
    monitor : str
        Score in the history, such as ``valid_noisy_loss``, ``valid_noisy_acc`` or ``valid_clean_loss``. Of equal epochs
        the first is kept.
    lower_is_better : bool, default=True
        False for accuracies.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from skorch.dataset import ValidSplit
    >>> from noisytransition.nets import NoisyLabelNet, Rows
    >>> from noisytransition.selection import BestEpoch
    >>> rng = np.random.default_rng(1)
    >>> rows = Rows(rng.normal(size=(60, 30)).astype(np.float32), rng.integers(2, size=60))  # nothing to learn
    >>> _, select, split = torch.manual_seed(0), BestEpoch("valid_noisy_loss"), ValidSplit(5)
    >>> net = NoisyLabelNet(
    ...     torch.nn.Linear(30, 2), select=select, train_split=split, lr=1.0, max_epochs=6, verbose=0)
    >>> net = net.fit(rows, rows.label)
    >>> losses = net.history[:, "valid_noisy_loss"]
    >>> print(f"epoch {1 + np.argmin(losses)} of {len(losses)} is kept")
    epoch 1 of 6 is kept
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
            self.best_score_, self.best_ = score, (copied(net.plain_module_), copied(net.criterion_))

    def on_train_end(self, net: "NoisyLabelNet", **kwargs: Any) -> None:
        """Restore the best epoch."""
        if self.best_ is not None:
            net.plain_module_.load_state_dict(self.best_[0])
            net.criterion_.load_state_dict(self.best_[1])
            self.best_ = None
