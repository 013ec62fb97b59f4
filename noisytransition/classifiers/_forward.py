"""Forward correction: T from anchor points of a net trained by cross-entropy, which is then trained through T."""

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..losses import ForwardLoss
from ..selection import BestEpoch
from ..transition import anchor_transition_matrix, check_count
from ._checks import check_fraction
from ._parameters import Module
from ._run import Run
from ._starts import Anchor, Start, starts
from ._transition import TransitionClassifier


class ForwardClassifier(TransitionClassifier):
    """Estimate T at the anchor points of a cross-entropy net, then train this net through T (forward correction).

    The loss of a row is ``- log sum_i f_i(x) T[i, y]``.

    Clean data is accepted in every form, but used only if `transition_init` needs it.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    transition_init : str or array-like, default="anchor"
        Estimate of T, as in `TransitionClassifier`; an array is a known T.
    anchor_percentile : float, "auto" or None, default=None
        As `percentile` in `anchor_transition_matrix`. The constant 97 of the paper's code fails for classes rarer
        than 3 %.
    n_anchors : int, default=1
        Rows averaged for each class.
    validation_fraction : float in [0, 1), default=0.1
        Fraction of the noisy rows held out of the warm-up, whose epoch with the lowest loss on them is kept: a net
        that has memorised the noisy labels would give a T near the identity. 0: the last epoch is kept. A
        `train_split` replaces it.
    from_warm_up : bool or "auto", default="auto"
        Train on from the weights of the warm-up, as in `GLCClassifier`; False, as published: a new net.
    transition_floor, warm_up_epochs
        As in `TransitionClassifier`.
    lr, max_epochs, batch_size, optimizer, device, dtype, precision
        As in `NoisyLabelClassifier`.
    batch_transform, callbacks, distributed
        As in `NoisyLabelClassifier`.
    random_state, verbose
        As in `NoisyLabelClassifier`, which see also for ``**net_params``.

    Attributes
    ----------
    transition_matrix_ : ndarray of shape (n_classes, n_classes)
        T: row i, column j is P(noisy = classes_[j] | true = classes_[i]).
    transition_init_ : ndarray of shape (n_classes, n_classes)
        The same: T does not change after its start.
    transition_history_ : ndarray of shape (1, n_classes, n_classes)
        T alone, since it is not changed: in the form of methods that learn T.
    class_counts_ : ndarray of shape (n_classes,)
        Expected number of noisy rows of each true class: the most likely, given T and the noisy labels.
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    References
    ----------
    Patrini, Rozza, Menon, Nock, Qu, "Making Deep Neural Networks Robust to Label Noise: a Loss Correction Approach",
    CVPR 2017, equations (6), (12), (13).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import ForwardClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.3), random_state=0)
    >>> clf = ForwardClassifier(random_state=0).fit(X, y_noisy)
    >>> clf.transition_matrix_.round(1)
    array([[0.9, 0.1, 0. ],
           [0.2, 0.6, 0.2],
           [0.2, 0. , 0.8]])
    """

    _PUBLISHED: ClassVar = {"from_warm_up": False}

    def __init__(
        self,
        module: Module = None,
        *,
        transition_init: str | ArrayLike = "anchor",
        anchor_percentile: float | Literal["auto"] | None = None,
        n_anchors: int = 1,
        validation_fraction: float = 0.1,
        from_warm_up: bool | str = "auto",
        **net_params: Any,
    ) -> None:
        super().__init__(module, transition_init=transition_init, **net_params)
        self.anchor_percentile = anchor_percentile
        self.n_anchors = n_anchors
        self.validation_fraction = validation_fraction
        self.from_warm_up = from_warm_up

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_fraction(self, "validation_fraction")
        check_count(self.n_anchors, 1, "n_anchors")
        anchor_transition_matrix(np.ones((1, 1)), percentile=self.anchor_percentile)  # raises for a bad percentile

    def _starts(self) -> dict[str, Start]:
        return starts(Anchor(self.anchor_percentile, self.n_anchors))

    def _fit(self, run: Run) -> None:
        selection: dict[str, Any] = {"select": BestEpoch("valid_noisy_loss"), "held_out": self.validation_fraction}
        warm_up = self._warm_up_to_go_on_from(run, **selection)
        T = self._start(run, warm_up=warm_up, **selection)
        self.net_ = run.train("forward", module=warm_up and warm_up.plain_module_, loss=ForwardLoss(T))
        self._keep_transition(run, T)
