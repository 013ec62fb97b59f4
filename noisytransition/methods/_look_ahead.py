"""What methods with a meta-gradient share: checks of its parameters, and the update that is made of them."""

from typing import Any, ClassVar

from ..base._classifier import NoisyLabelClassifier
from ..fitting._checks import ALL_ROWS, COUNT, NUMBER
from ..fitting._run import Run
from ..nets import CleanBatches
from ..updates import MetaGradient


class LooksAhead(NoisyLabelClassifier):
    """Method that looks ahead on batches of clean rows: with parameters `inner_lr` and `meta_batch_size`."""

    inner_lr: float | None
    meta_batch_size: int | None
    #: how the gradient is computed, as `method` of `MetaGradient`; "auto": the cheapest
    _meta_gradient_method = "auto"
    _parameter_constraints: ClassVar = {
        **NoisyLabelClassifier._parameter_constraints,
        "inner_lr": [NUMBER, None],
        "meta_batch_size": [COUNT, ALL_ROWS, None],
    }

    def _update(self, run: Run, **params: Any) -> MetaGradient:
        """Update of the loss's parameters by the meta-gradient."""
        clean = CleanBatches(run.clean, self.meta_batch_size or self.batch_size)
        return MetaGradient(clean, inner_lr=self.inner_lr, method=self._meta_gradient_method, **params)
