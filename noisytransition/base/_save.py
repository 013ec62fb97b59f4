"""Save a fitted classifier as plain data and tensors, which are safe to load."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from ..labels._columns import SourceLabels
from ..likelihood._calibration import Calibration
from ..likelihood._channels import LogLinear, OneT
from ..likelihood._held_out import Candidate, HeldOut
from ..likelihood._sources import Dependence, SourceFit
from ..likelihood._uncertainty import TransitionUncertainty
from ..nets import NoisyLabelNet
from ..persistence._storage import NAMED, about, is_plain, plain_history, write

if TYPE_CHECKING:
    from ._classifier import NoisyLabelClassifier

KIND = "classifier"
_RECORDS = [Calibration, Candidate, Dependence, HeldOut, LogLinear, OneT, SourceFit, SourceLabels]
NAMED.update({cls.__name__: cls for cls in (*_RECORDS, TransitionUncertainty)})


def save(clf: "NoisyLabelClassifier", path: str | PathLike) -> None:
    """Write class name, plain parameters, fitted attributes and weights of a fitted classifier."""
    check_is_fitted(clf, "net_")
    net = type(clf.net_)
    if (net.infer, net.predict_proba) != (NoisyLabelNet.infer, NoisyLabelNet.predict_proba):
        raise ValueError(f"{net.__name__} overrides how nets predict. Pickle the classifier instead.")
    path = Path(path)
    if path.exists():
        about(path, KIND)  # raises for a file of another kind
    module = clf.net_.plain_module_
    params = clf.get_params(deep=False)
    plain = {k: v for k, v in params.items() if is_plain(v)}
    content = {
        "class": name_of(type(clf)),
        "module": None if isinstance(clf.module, str) else name_of(type(module)),
        "params": plain,
        "not_saved": sorted(k for k in params.keys() - plain.keys() if k.startswith("module__")),
        "fitted": _fitted(clf),
        "weights": module.state_dict(),
        "loss": _loss_state(clf),
    }
    write(path, KIND, content)


def _fitted(clf: "NoisyLabelClassifier") -> dict[str, Any]:
    """Fitted attributes except the net."""
    names = [k for k in vars(clf) if k.endswith("_") and not k.startswith("_") and k not in clf.get_params(deep=False)]
    fitted = {name: getattr(clf, name) for name in names if name != "net_"}
    fitted["histories_"] = {stage: plain_history(history) for stage, history in clf.histories_.items()}
    if "noise_model_" in fitted:
        fitted["noise_model_"] = vars(fitted["noise_model_"])
    for name, value in fitted.items():
        if not is_plain(value):
            raise ValueError(f"{type(clf).__name__}.{name} is not plain data. Pickle the classifier instead.")
    return fitted


def _loss_state(clf: "NoisyLabelClassifier") -> dict[str, Tensor]:
    """Weights of the loss, if methods other than `fit` need them."""
    with torch.random.fork_rng(devices=()):
        is_needed = type(clf._loss()) is type(clf.net_.criterion_)
    return clf.net_.criterion_.state_dict() if is_needed else {}


def name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
