"""Checks of what a module makes of rows of the data, before it is trained."""

from collections.abc import Callable

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..nets import NoisyLabelNet, Rows

# tolerance for the sum of a row of softmax outputs, far above the rounding of float32; a choice, not measured
_SUM_TO_ONE = 1e-4
# random signs of the weights that are tried where no output is negative. Logits of two rows and two classes are all
# positive by chance for about one in four.
_TRIALS = 20
# weight that is tried where a weight starts at 0, as those of a last layer may; a choice, not measured
_IN_PLACE_OF_ZERO = 0.1
# relative difference of a row's logits alone and beside another row: far above the rounding of each type
_ROUNDING = 1e-3
_HALF_ROUNDING = 0.1


def check_output(net: NoisyLabelNet, rows: Rows, classes: NDArray) -> None:
    """Run two rows through an initialised module, and raise if it does not return one logit per class.

    Logits must be finite, may be negative, and those of a row must not depend on the other rows.
    """
    _check_batch_size(net, len(rows))
    module = net.plain_module_.eval()
    x = _inputs(rows)
    try:
        with torch.no_grad():
            x, logits = _outputs(net, module, x)
            _check_shape(logits, module, len(x), classes)
            _check_finite(logits, module)
            _check_logits(lambda: module(x), logits, module)
            _check_rows_apart(module, x, logits)
    finally:
        module.train()


def _check_batch_size(net: NoisyLabelNet, n: int) -> None:
    if getattr(net, "iterator_train__drop_last", False) and net.batch_size > n:
        raise ValueError(
            f"an epoch has no batch: iterator_train__drop_last=True with batch_size={net.batch_size} for {n} rows. "
            "Give fewer rows in a batch, or leave drop_last out."
        )


def _inputs(rows: Rows) -> Tensor:
    try:
        x = rows.take([0, len(rows) - 1]).inputs()
    except (RuntimeError, TypeError) as error:
        raise ValueError(
            f"rows cannot be put together as a batch: {error}. Give samples of one shape and type."
        ) from error
    if not isinstance(x, Tensor):
        raise ValueError(
            f"a batch of rows is a {type(x).__name__}; give samples that are tensors or arrays of numbers."
        )
    return x


def _outputs(net: NoisyLabelNet, module: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    try:
        x = net.prepare(x)
        return x, module(x)
    except Exception as error:
        raise ValueError(
            f"{type(module).__name__} cannot take a batch of shape {tuple(x.shape)} and type {x.dtype}: {error}. "
            "Check the module's input size; dtype= sets the type that batches are cast to."
        ) from error


def _check_shape(logits: Tensor, module: nn.Module, n: int, classes: NDArray) -> None:
    if not isinstance(logits, Tensor) or logits.ndim != 2 or logits.shape != (n, len(classes)):
        shape = tuple(getattr(logits, "shape", ())) or type(logits).__name__
        raise ValueError(
            f"{type(module).__name__} gives an output of shape {shape} for {n} rows, but there are "
            f"{len(classes)} classes {classes.tolist()}: it must give one logit per class, {(n, len(classes))}."
        )
    if not logits.is_floating_point():
        raise ValueError(f"{type(module).__name__} gives an output of type {logits.dtype}; logits are real numbers.")


def _check_finite(logits: Tensor, module: nn.Module) -> None:
    if bool(torch.isnan(logits).any()) or bool(torch.isposinf(logits).any()):
        raise ValueError(
            f"{type(module).__name__} gives NaN or infinite logits before training: scale X (StandardScaler; images to "
            "0..1), and check the module."
        )


def _check_logits(output: Callable[[], Tensor], logits: Tensor, module: nn.Module) -> None:
    """Raise for probabilities: logits can be negative, whatever the weights are."""
    if bool((logits < 0).any()):
        return
    if bool(((logits.double().sum(1) - 1).abs() < _SUM_TO_ONE).all()):
        raise ValueError(
            f"{type(module).__name__} gives probabilities (no output is negative, rows sum to 1): it must give "
            "logits. Remove its last softmax; predict_proba applies one."
        )
    highest = _highest_where_never_negative(output, module)
    if highest is not None:
        raise ValueError(
            f"{type(module).__name__} gives no negative output, whatever the signs of its weights (0 to {highest:.2g} "
            "here), as after a sigmoid, exp or ReLU: it must give logits. Remove its last activation, as predict_proba "
            "applies a softmax; from logits of this kind subtract a constant."
        )


def _highest_where_never_negative(output: Callable[[], Tensor], module: nn.Module) -> float | None:
    """Highest output over weights with random signs, or None if an output is negative for any of them."""
    weights = [p for p in module.parameters() if p.is_floating_point()]
    kept, generator, highest = [p.clone() for p in weights], torch.Generator().manual_seed(0), 0.0
    try:
        for _ in range(_TRIALS):
            for weight in weights:
                signs = torch.randint(2, weight.shape, generator=generator) * 2 - 1
                weight.copy_(torch.where(weight == 0, _IN_PLACE_OF_ZERO, weight) * signs.to(weight))
            found = _repeatable(output)
            if not bool((found >= 0).all()):
                return None
            highest = max(highest, float(found.max()))
    finally:
        for weight, before in zip(weights, kept, strict=True):
            weight.copy_(before)
    return highest


def _check_rows_apart(module: nn.Module, x: Tensor, logits: Tensor) -> None:
    """Raise for a module whose logits of a row change with the other rows of the batch."""
    wrong = f"{type(module).__name__} gives a row other logits if it is alone in the batch"
    try:
        alone = _repeatable(lambda: module(x[:1]))
    except Exception as error:
        raise ValueError(
            f"{type(module).__name__} cannot take a batch of one row in evaluation mode: {error}. If it normalises "
            "batches, let it track their statistics."
        ) from error
    tolerance = _ROUNDING if logits.dtype in (torch.float32, torch.float64) else _HALF_ROUNDING
    if _near(alone, logits[:1], tolerance) or not torch.equal(
        _repeatable(lambda: module(x), seed=0), _repeatable(lambda: module(x), seed=1)
    ):
        return  # a module that draws random numbers to predict is not told apart
    raise ValueError(
        f"{wrong}, in evaluation mode: predictions would depend on the rows beside it. Normalise and pool within rows "
        "(dim=1, not dim=0), and let batch normalisation track its statistics."
    )


def _near(one: Tensor, other: Tensor, tolerance: float) -> bool:
    """Whether two rows of logits differ by little beside the largest; one of them may be minus infinity in both."""
    if one.shape != other.shape:
        return False
    allowed = tolerance * torch.where(other.isfinite(), other, 0.0).abs().max().clamp_min(1.0)
    return bool(((one == other) | ((one - other).abs() <= allowed)).all())


def _repeatable(output: Callable[[], Tensor], seed: int = 0) -> Tensor:
    """Output of a module that may draw random numbers; the generators stay where they are."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return output()
