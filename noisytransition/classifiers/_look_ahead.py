"""What methods that learn by looking ahead share: clean batches, the look-ahead's rate and route."""

from typing import Any

from ..meta_gradient import ROUTES
from ..nets import LookAheadNet, MetaStep, Rows
from ._base import NoisyLabelClassifier
from ._checks import check_batch_size, check_number


class LookAheadClassifier(NoisyLabelClassifier):
    """Classifier whose loss has parameters of its own, moved by the clean loss one step ahead of the network.

    Parameters
    ----------
    module : nn.Module class or instance, optional
        As in `NoisyLabelClassifier`.
    meta_batch_size : int, optional
        Clean rows in a step; default: `batch_size`.
    look_ahead_lr : float, optional
        Rate of the look-ahead; default: the optimiser's current one, per parameter group.
    meta_gradient_route : str, default="auto"
        How the gradient is computed: a name in `noisytransition.meta_gradient.ROUTES`. All are exact but
        "difference"; "auto" takes the cheapest that the module allows.
    **net_params
        As in `NoisyLabelClassifier`.
    """

    _needs_clean_data = True

    def __init__(
        self,
        module: Any = None,
        *,
        meta_batch_size: int | None = None,
        look_ahead_lr: float | None = None,
        meta_gradient_route: str = "auto",
        **net_params: Any,
    ) -> None:
        super().__init__(module, **net_params)
        self.meta_batch_size = meta_batch_size
        self.look_ahead_lr = look_ahead_lr
        self.meta_gradient_route = meta_gradient_route

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_batch_size(self, "meta_batch_size")
        if self.look_ahead_lr is not None:
            check_number(self, "look_ahead_lr")
        if self.meta_gradient_route not in ("auto", *ROUTES):
            raise ValueError(f"meta_gradient_route={self.meta_gradient_route!r}; valid are {['auto', *ROUTES]}.")

    def _train_ahead(
        self, stage: str, noisy: Rows, meta: Rows, *, step_lr: float, step_optimizer: Any, every: int, **net_params: Any
    ) -> LookAheadNet:
        """Train a net whose loss takes a meta-step, of size `step_lr`, in every `every`-th iteration."""
        step = MetaStep(
            meta,
            step_lr,
            optimizer=step_optimizer,
            batch_size=self.meta_batch_size,
            every=every,
            look_ahead_lr=self.look_ahead_lr,
            route=self.meta_gradient_route,
        )
        net: Any = self._train(stage, noisy, net=LookAheadNet, meta_step=step, **net_params)
        net.meta_step = None  # the clean rows are not kept
        self.meta_gradient_route_ = step.route
        return net
