"""Cross-entropy on the noisy labels, as if they were true."""

from typing import Any, ClassVar

from torch import nn

from ..nets import Rows
from ._base import NoisyLabelClassifier
from ._checks import check_number
from ._parameters import Module
from ._run import Run
from ._weights import ClassWeight


class CrossEntropyClassifier(NoisyLabelClassifier):
    """Plain cross-entropy on the noisy labels: the baseline of all others.

    Clean data is accepted in every form and never trained on.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    label_smoothing : float in [0, 1], default=0.0
        Share of each label that is spread over all classes in the loss, as in `torch.nn.CrossEntropyLoss`; a remedy for
        noise itself (Lukasik et al.).
    class_weight : dict, "balanced" or None, default=None
        Weight of each label: how often its rows are drawn, relative to others. "balanced": n_samples / (n_classes *
        count of the label), as in scikit-learn.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks, distributed
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted labels.
    net_ : skorch net
        Trained net: ``net_.module_``, ``net_.save_params(...)``.
    histories_ : dict of str to History
        skorch's history of each training stage.
    n_features_in_ : int
        Columns of X.

    References
    ----------
    Lukasik, Bhojanapalli, Menon, Kumar, "Does Label Smoothing Mitigate Label Noise?", ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = CrossEntropyClassifier(max_epochs=100, random_state=0).fit(X, y)
    >>> clf.predict(X[[0, 50, 100]]), y[[0, 50, 100]]
    (array([0, 1, 2]), array([0, 1, 2]))
    """

    _PUBLISHED: ClassVar = {}

    def __init__(
        self,
        module: Module = None,
        *,
        label_smoothing: float = 0.0,
        class_weight: ClassWeight = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.label_smoothing = label_smoothing
        self.class_weight = class_weight

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number(self, "label_smoothing", high=1.0)

    def _fit(self, run: Run) -> None:
        self.net_ = run.train(
            "cross_entropy", self._rows(run), loss=nn.CrossEntropyLoss(label_smoothing=self.label_smoothing)
        )

    def _rows(self, run: Run) -> Rows:
        """Rows to train on."""
        return run.noisy
