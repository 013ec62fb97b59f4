"""Cross-entropy on the noisy labels, then fine-tuning on the clean samples."""

from typing import Any, ClassVar

from ..base._classifier import NoisyLabelClassifier
from ..fitting._parameters import CONSTRAINTS, COUNT_FROM_0, POSITIVE, Module
from ..fitting._run import FitContext


class FineTuningClassifier(NoisyLabelClassifier):
    """Train on the noisy samples by cross-entropy, then fine-tune on the clean samples.

    Fine-tuning starts from the trained weights, with a new optimiser. It estimates no T, and many epochs on few clean
    samples undo the first training (:doc:`/methods/without_t`).

    Parameters
    ----------
    fine_tuning_epochs : int, default=50
        Epochs on the clean samples. 0 disables fine-tuning.
    fine_tuning_lr : float, optional
        Learning rate on the clean samples. Default: `lr`.
    **params
        Parameters of `NoisyLabelClassifier`: `module`, `lr`, `max_epochs`, `optimizer`, ...

    Attributes
    ----------
    classes_, net_, histories_, n_features_in_
        As in `CrossEntropyClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from noisytransition import CrossEntropyClassifier, FineTuningClassifier, flip_labels
    >>> from noisytransition.transition import pair_noise
    >>> X, y = load_iris(return_X_y=True)
    >>> X, y_noisy = (X - X.mean(0)) / X.std(0), flip_labels(y, pair_noise(3, 0.4), random_state=0)
    >>> for cls in (CrossEntropyClassifier, FineTuningClassifier):
    ...     clf = cls(random_state=0).fit(X[::2], y_noisy[::2], meta=(X[1::6], y[1::6]))
    ...     print(f"{cls.__name__}: {clf.score(X[3::6], y[3::6]):.1f}")
    CrossEntropyClassifier: 0.6
    FineTuningClassifier: 1.0
    """

    _needs_clean_data = True
    _PUBLISHED: ClassVar = {}
    _parameter_constraints: ClassVar = CONSTRAINTS | {
        "fine_tuning_epochs": [COUNT_FROM_0],
        "fine_tuning_lr": [POSITIVE, None],
    }

    def __init__(
        self,
        module: Module = "mlp",
        *,
        fine_tuning_epochs: int = 50,
        fine_tuning_lr: float | None = None,
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.fine_tuning_epochs = fine_tuning_epochs
        self.fine_tuning_lr = fine_tuning_lr

    def _fit(self, run: FitContext) -> None:
        noisy_net = run.train("cross_entropy")
        self.net_ = run.train(
            "fine_tuning",
            run.clean,
            labels="clean",  # used in the names of validation scores
            module=noisy_net.plain_module_,
            lr=run.params["lr"] if self.fine_tuning_lr is None else self.fine_tuning_lr,
            max_epochs=self.fine_tuning_epochs,
        )
